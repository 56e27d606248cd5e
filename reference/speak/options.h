// SPDX-License-Identifier: Apache-2.0
// Options that several commands of omni-speak share.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reference/cli/options.h"
#include "reference/qwen3_tts/model/codec_sampler.h"
#include "tools/common/cli_names.h"

namespace ref::speak {

// What a source directory is packed as, and in what precision any model runs. `prefix` is "--" or "--a-".
struct WeightOptions {
  cli::WeightOptions common;
  std::string predictor, predictor_head, codec;
};
void add_weight_options(CLI::App* app, const std::string& prefix, WeightOptions* options);

struct SamplingFlags {
  std::optional<double> temperature, top_p, repetition_penalty, subtalker_temperature, subtalker_top_p;
  std::optional<int64_t> top_k, subtalker_top_k;
  std::optional<uint64_t> seed;
  bool greedy = false;
};
void add_sampling_options(CLI::App* app, SamplingFlags* flags);
// The model's own options where no flag says otherwise; the seed is a random one of 32 bits when none is given.
tts::SpeechSampling resolve_sampling(const SamplingFlags& flags, tts::SpeechSampling defaults);

// Whether frames are made beside their decoding: "overlap", "alternate", or "auto", by the threads there are. With two, taking
// turns was measured to be a twentieth faster (docs/latency.md): both sides' regions want the whole pool.
bool overlaps(const std::string& pipeline);

// Reads options of a file in the TOML of CLI11, by their long names; a key that is no option is an error.
void add_config_option(CLI::App* app);

}  // namespace ref::speak
