// SPDX-License-Identifier: Apache-2.0
// A machine as JSON: what `omni-probe --json` writes and omni_set_profile_json() reads.
//
//   {"omni_profile": 1,
//    "machine": {"vendor": "...", "name": "...", "isa": ["avx2", ...], "isa_hardware": [...], "traits": ["slow_bf16_dot", ...],
//                "cores_online": 8, "cores_usable": 4, "l1d_bytes": ..., "l2_bytes": ..., "l3_bytes": ..., "amx_reason": ""},
//    "probe": ...}
//
// Every key of "machine" must be there and no other may; "probe" (omni-probe's measurements and listings) is optional and ignored.
#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "omni/cpu.h"

namespace okl {

inline constexpr uint32_t kProfileVersion = 1;

// nullopt and one line in `error`, naming the key, for anything but a profile of this version.
std::optional<omni_machine> profile_from_json(std::string_view json, std::string* error);

// The profile with keys in the order above, two spaces of indentation and no "probe".
std::string profile_to_json(const omni_machine& machine);

}  // namespace okl
