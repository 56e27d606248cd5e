// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/settings.h"

#include <cstdlib>
#include <mutex>
#include <optional>

#include "jit/memory/perf.h"
#include "kernels/api/error.h"
#include "kernels/cpu/system_files.h"
#include "kernels/cpu/trace.h"
#include "kernels/dispatch/kernel.h"

namespace okl {
namespace {

struct State {
  std::once_flag once;
  omni_status status = OMNI_OK;
  std::string error;
  std::mutex mutex;
  Settings settings;
};

// Never destroyed: threads may still ask while the process exits.
State& state() {
  static State& instance = *new State;
  return instance;
}

const char* get_from_process(const char* name) { return std::getenv(name); }

std::string refuse(std::string_view name, std::string_view value, std::string_view expected) {
  std::string text(name);
  text.append("=\"").append(value.substr(0, 80)).append("\" is unknown: ").append(expected);
  return text;
}

std::string tier_names() {
  std::string names = "expected";
  for (const Tier& tier : tiers()) names.append(" ").append(tier.name);
  return names;
}

}  // namespace

omni_status read_environment(GetEnvironment get, Settings* out, std::string* error) {
  const auto value_of = [get](const char* name) {
    const char* value = get(name);
    return std::string_view(value == nullptr ? "" : value);
  };
  Settings read;
  if (const auto value = value_of("OMNI_MAX_ISA"); !value.empty()) {
    const std::optional<IsaMask> mask = tier_mask(value);
    if (!mask) {
      *error = refuse("OMNI_MAX_ISA", value, tier_names());
      return OMNI_ERR_ENVIRONMENT;
    }
    read.max_isa = *mask;
  }
  if (const auto value = value_of("OMNI_KERNEL"); !value.empty()) {
    if (find_kernel(value) == nullptr) {
      *error = refuse("OMNI_KERNEL", value, "no kernel of the registry has this name");
      return OMNI_ERR_ENVIRONMENT;
    }
    read.kernel = value;
  }
  if (const auto value = value_of("OMNI_NUM_THREADS"); !value.empty()) {
    const std::optional<uint64_t> threads = parse_number(value);
    if (!threads || *threads == 0 || *threads > kMostThreads) {
      *error = refuse("OMNI_NUM_THREADS", value, "expected 1 to 1024");
      return OMNI_ERR_ENVIRONMENT;
    }
    read.num_threads = static_cast<uint32_t>(*threads);
  }
  if (const auto value = value_of("OMNI_VERBOSE"); !value.empty()) {
    if (value != "0" && value != "1") {
      *error = refuse("OMNI_VERBOSE", value, "expected 0 or 1");
      return OMNI_ERR_ENVIRONMENT;
    }
    read.verbose = value == "1";
  }
  read.jit_profile = value_of("OMNI_JIT_PROFILE");  // its words are jit::set_perf_modes()'s to judge
  *out = std::move(read);
  return OMNI_OK;
}

omni_status ensure_initialised() {
  State& s = state();
  std::call_once(s.once, [&s] {
    s.status = read_environment(get_from_process, &s.settings, &s.error);
    if (s.status != OMNI_OK) return;
    if (s.settings.verbose) set_trace_stderr(true);
    if (std::string error; !jit::set_perf_modes(s.settings.jit_profile, &error)) {
      s.error = "OMNI_JIT_PROFILE: " + error;
      s.status = OMNI_ERR_ENVIRONMENT;
      s.settings = Settings();
    }
  });
  return s.status == OMNI_OK ? OMNI_OK : fail(s.status, "%s", s.error.c_str());
}

Settings settings() {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  return s.settings;
}

void set_max_isa(IsaMask mask) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.settings.max_isa = mask;
}

void set_forced_kernel(std::string_view name) {
  State& s = state();
  const std::lock_guard lock(s.mutex);
  s.settings.kernel = name;
}

}  // namespace okl
