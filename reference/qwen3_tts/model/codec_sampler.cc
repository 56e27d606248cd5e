// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/model/codec_sampler.h"

#include <algorithm>
#include <limits>
#include <string>

#include "reference/core/error.h"

namespace ref::tts {
namespace {

// Tokens before the end of speech may be picked.
constexpr uint32_t kLeastTokens = 2;

// One step of SplitMix64 (Steele, Lea and Flood, 2014): any two seeds give unlike halves.
uint64_t mix(uint64_t seed) {
  seed += 0x9E3779B97F4A7C15u;
  seed = (seed ^ seed >> 30) * 0xBF58476D1CE4E5B9u;
  seed = (seed ^ seed >> 27) * 0x94D049BB133111EBu;
  return seed ^ seed >> 31;
}

SamplingOptions drawing(bool sample, double temperature, int64_t top_k, double top_p) {
  SamplingOptions options;
  options.temperature = temperature;
  options.top_k = top_k;
  options.top_p = top_p;
  check_sampling(options, 0);  // also where nothing is drawn
  if (top_k < 0) throw Error("top-k must be at least 0, not " + std::to_string(top_k));
  if (!sample) options.temperature = 0;
  return options;
}

}  // namespace

uint32_t CodecSampler::made(std::span<const int32_t> history) {
  return static_cast<uint32_t>(std::min<size_t>(history.size(), kLeastTokens));
}

int32_t CodecSampler::pick(std::span<float> scores) {
  narrow(scores);
  const int32_t greedy = pick_greedy(scores);  // also the check that an id can be drawn
  if (is_greedy(draw_)) return greedy;
  ids_.clear();
  left_.clear();
  for (size_t id = 0; id < scores.size(); ++id) {
    if (scores[id] == -std::numeric_limits<float>::infinity()) continue;
    ids_.push_back(static_cast<int32_t>(id));
    left_.push_back(scores[id]);
  }
  return ids_[static_cast<size_t>(draw(probabilities(left_), &random_))];
}

CodecSampler CodecSampler::of_talker(const SpeechSampling& sampling, const TalkerConfig& config) {
  SamplingOptions scores;
  scores.temperature = 0;
  scores.repetition_penalty = sampling.repetition_penalty;
  scores.min_new_tokens = kLeastTokens;
  scores.end_tokens = {config.eos};
  for (int64_t id = config.vocabulary - kControlIds; id < config.vocabulary; ++id) {
    if (id != config.eos) scores.suppressed.push_back(static_cast<int32_t>(id));
  }
  check_sampling(scores, config.vocabulary);
  return {std::move(scores), drawing(sampling.sample, sampling.temperature, sampling.top_k, sampling.top_p),
          static_cast<uint32_t>(mix(sampling.seed))};
}

CodecSampler CodecSampler::of_predictor(const SpeechSampling& sampling) {
  try {
    return {{},
            drawing(sampling.predictor_sample, sampling.predictor_temperature, sampling.predictor_top_k, sampling.predictor_top_p),
            static_cast<uint32_t>(mix(sampling.seed) >> 32)};
  } catch (const Error& error) {
    throw Error(std::string("sub-talker ") + error.what());
  }
}

}  // namespace ref::tts
