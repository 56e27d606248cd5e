// SPDX-License-Identifier: Apache-2.0
// Names for generated code in profiles: perf's map file and jitdump, both off unless asked for. docs/jit.md shows the commands.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace okl::jit {

// Switches profile outputs on, as OMNI_JIT_PROFILE does: a comma list of "perfmap" (perf-PID.map where perf looks for it),
// "jitdump" (jit-PID.dump in the current directory) and "jitdump=DIR" (in DIR). "" switches both off. Code published before is
// written too. False with one line in *error for an unknown word or a file that cannot be made; then nothing changes.
// Thread-safe.
bool set_perf_modes(std::string_view modes, std::string* error);

// Called by publish() for every piece of code. A write that fails (a full disk) switches that output off. Thread-safe.
void perf_register(const void* code, size_t bytes, std::string_view name);

}  // namespace okl::jit
