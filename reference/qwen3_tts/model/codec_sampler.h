// SPDX-License-Identifier: Apache-2.0
// How ids of the codec are picked: what no logit may escape, then what is drawn from.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "reference/qwen3_tts/config.h"
#include "reference/sampling/sampler.h"

namespace ref::tts {

struct SpeechSampling {
  bool sample = true, predictor_sample = true;  // else greedy
  double temperature = 0.9, top_p = 1.0, repetition_penalty = 1.05;
  int64_t top_k = 50;
  double predictor_temperature = 0.9, predictor_top_p = 1.0;
  int64_t predictor_top_k = 50;
  // Of both samplers, each with a generator of its own: the low half of SplitMix64(seed) for codebook 0, the high half for the
  // others. What one of them draws never depends on the options of the other.
  uint64_t seed = 0;
};

// Codebook 0, or all others.
class CodecSampler {
 public:
  // Throws Error naming the option that is out of range.
  static CodecSampler of_talker(const SpeechSampling& sampling, const TalkerConfig& config);
  static CodecSampler of_predictor(const SpeechSampling& sampling);

  // Of codebook 0, in this order: repetition penalty once for each distinct id of `history` (the run's own codes); no end of speech
  // before two tokens; never a control id but that. What may not be picked becomes -Inf.
  void score(std::span<const int32_t> history, std::span<float> logits) const {
    process_logits(scores_, history, made(history), logits);
  }
  // Temperature, top-k, top-p; nothing when greedy.
  void narrow(std::span<float> logits) const { process_logits(draw_, {}, 0, logits); }
  // Of scores, which it narrows. Greedy: the lowest of equals. Else the generator moves on by one variate for each id that is left,
  // not for each of the vocabulary: a third of a pick's time went into numbers that nobody used.
  int32_t pick(std::span<float> scores);

 private:
  CodecSampler(SamplingOptions scores, SamplingOptions draw, uint32_t seed)
      : scores_(std::move(scores)), draw_(std::move(draw)), random_(seed) {}
  static uint32_t made(std::span<const int32_t> history);

  SamplingOptions scores_, draw_;
  ref::Generator random_;
  std::vector<int32_t> ids_;  // that are left, and their logits
  std::vector<float> left_;
};

}  // namespace ref::tts
