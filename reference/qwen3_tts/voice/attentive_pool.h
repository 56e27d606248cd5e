// SPDX-License-Identifier: Apache-2.0
// Attentive statistics pooling: mean and deviation over time, with weights that a softmax over time gives to each channel.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/qwen3_tts/config.h"
#include "reference/qwen3_tts/voice/tdnn.h"

namespace ref::tts {

class AttentivePool {
 public:
  AttentivePool(const SpeakerEncoderConfig& config, const ModelContext& context);

  // [means | deviations] of x [rows][channels]. Sums over time are in double, in ascending order. Scores are made twice instead of
  // kept: ten minutes of them would be 345 MB.
  std::vector<float> run(int64_t rows, const TimeRows& x);

 private:
  // Hidden rows of the attention, from x beside its mean and deviation.
  std::vector<float> attend(int64_t rows, const TimeRows& x);

  int64_t channels_, attention_;
  Tdnn hidden_, scores_;
  Elementwise tanh_, exp_;
};

}  // namespace ref::tts
