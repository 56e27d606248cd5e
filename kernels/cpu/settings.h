// SPDX-License-Identifier: Apache-2.0
// OMNI_MAX_ISA, OMNI_KERNEL, OMNI_NUM_THREADS, OMNI_VERBOSE and OMNI_JIT_PROFILE: read once, each also an API call.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/cpu/isa.h"
#include "omni/status.h"

namespace okl {

struct Settings {
  IsaMask max_isa = ~IsaMask{0};  // every bit: no cap
  std::string kernel;             // "" : none forced
  uint32_t num_threads = 0;       // OMNI_NUM_THREADS; 0: not set
  bool verbose = false;           // OMNI_VERBOSE
  std::string jit_profile;        // OMNI_JIT_PROFILE
};

inline constexpr uint32_t kMostThreads = 1024;

// Reads the five variables through `get` (getenv's contract: nullptr when unset; "" counts as unset). On an unknown value `error`
// names variable and value, and the result is OMNI_ERR_ENVIRONMENT with `out` untouched.
using GetEnvironment = const char* (*)(const char* name);
omni_status read_environment(GetEnvironment get, Settings* out, std::string* error);

// Reads the environment on the first call. Every call after an unknown value fails alike, with the same line in omni_last_error();
// so every entry that needs the machine starts with it. Thread-safe.
omni_status ensure_initialised();

// A copy of what holds now; the defaults when the environment was refused. Thread-safe.
Settings settings();

// For the API entries: both after ensure_initialised(), with a value that was checked.
void set_max_isa(IsaMask mask);
void set_forced_kernel(std::string_view name);

}  // namespace okl
