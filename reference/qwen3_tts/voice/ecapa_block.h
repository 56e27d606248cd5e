// SPDX-License-Identifier: Apache-2.0
// A block of ECAPA-TDNN (Desplanques, Thienpondt and Demuynck, 2020): Res2Net between two convolutions of one tap, then squeeze and
// excitation by the mean over time.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/qwen3_tts/config.h"
#include "reference/qwen3_tts/voice/tdnn.h"

namespace ref::tts {

class EcapaBlock {
 public:
  // `index` is 1, 2 or 3.
  EcapaBlock(const SpeakerEncoderConfig& config, size_t index, const ModelContext& context);

  // All are [rows][channels]. `inner` is overwritten.
  void run(int64_t rows, const TimeRows& x, const TimeRows& inner, const TimeRows& y);

 private:
  void res2net(int64_t rows, const TimeRows& inner);
  void excite(int64_t rows, const TimeRows& x, const TimeRows& y);

  int64_t channels_, part_;
  Tdnn first_, second_;
  std::vector<Tdnn> parts_;
  Tdnn squeeze_, expand_;
  Elementwise sigmoid_;
};

// Mean over time by channel, summed in double in ascending order.
std::vector<float> mean_over_time(int64_t rows, const TimeRows& x, int64_t channels);

}  // namespace ref::tts
