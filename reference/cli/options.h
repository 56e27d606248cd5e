// SPDX-License-Identifier: Apache-2.0
// Options that several commands share, checked as they are read: an error names the flag and the value.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "omni/omni.h"
#include "reference/core/weight_path.h"
#include "reference/pack/options.h"
#include "reference/pack/packer.h"
#include "reference/sampling/sampler.h"
#include "reference/spark/decoder.h"
#include "tools/common/cli_names.h"

namespace ref::cli {

// Whole numbers of min..max, and nothing else: no sign where none belongs, no fraction, no overflow.
CLI::Validator whole(int64_t min, int64_t max);
CLI::Validator whole_u64();
// Finite numbers of min..max; `above`: min itself is refused.
CLI::Validator number(double min, double max, bool above = false);
CLI::Validator one_of(const std::vector<std::string>& words);
// "0,5,7"
CLI::Validator id_list();
std::vector<int32_t> parse_ids(const std::string& text);

// Where the weights come from and in what form they run; for a packed model only what does not change its bytes.
struct WeightOptions {
  std::string weights = "auto", head = "auto", quantiser = "search", precision = "default", kv = "bf16", head_rows = "int8";
  std::optional<int64_t> group;
  bool symmetric = false;
  std::vector<std::string> keep;
};

// Of the process.
struct MachineOptions {
  std::optional<uint32_t> threads;
  std::string priority = "speed", profile, weights_memory = "auto";
  int64_t chunk = 512;
  bool quiet = false, verbose = false;
};

struct SamplingFlags {
  std::optional<double> temperature, top_p, min_p, repetition_penalty;
  std::optional<int64_t> top_k;
  uint32_t min_new_tokens = 0;
  std::optional<uint64_t> seed;
};

// `prefix` is "--" or "--a-".
void add_weight_options(CLI::App* app, const std::string& prefix, WeightOptions* options);
// What `--weights auto` goes by; for programs whose choice depends on the machine.
void add_priority_option(CLI::App* app, MachineOptions* options);
void add_machine_options(CLI::App* app, MachineOptions* options);
void add_sampling_options(CLI::App* app, SamplingFlags* flags);

// The model's own options where no flag says otherwise. A flag that only means something with a temperature brings one of 1.
SamplingOptions resolve_sampling(const SamplingFlags& flags, SamplingOptions defaults);

spark::Precision parse_precision(const std::string& name);
omni_dtype parse_kv(const std::string& name);

}  // namespace ref::cli
