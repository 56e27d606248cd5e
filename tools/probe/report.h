// SPDX-License-Identifier: Apache-2.0
// Everything that omni-probe found, and its two forms.
#pragma once

#include <string>
#include <vector>

#include "omni/omni.h"
#include "tools/probe/bandwidth.h"
#include "tools/probe/choices.h"
#include "tools/probe/system_state.h"

namespace probe {

struct Report {
  omni_machine machine{};
  std::string profile_json;  // the machine as omni_get_profile_json() writes it
  std::string profile_file;  // --profile, or ""
  uint32_t num_threads = 0;
  SystemState system;
  bool bandwidth_measured = false;
  std::vector<Bandwidth> bandwidth;
  std::string bandwidth_error;
  std::vector<omni_kernel_info> kernels;
  std::vector<Choice> choices;
};

// The text that people read.
std::string to_text(const Report& report);
// The profile with a "probe" section: what --profile and omni_set_profile_json() take.
std::string to_json(const Report& report);

// Where generated code lives, as the plans say: "jit", "jit (double mapping)", or "compiled" when executable memory is refused or
// the machine has no generated kernels; "unknown" without a plan.
std::string code_state(const Report& report);

// Words of OMNI_ISA_* bits, as the profile has them in `key` of "machine".
std::vector<std::string> profile_words(const std::string& profile_json, const char* key);

}  // namespace probe
