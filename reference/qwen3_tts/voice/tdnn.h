// SPDX-License-Identifier: Apache-2.0
// A convolution of the speaker encoder over all of a recording: as many rows out as in, rows beyond either end mirrored.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/qwen3_tts/voice/parts.h"

namespace ref::tts {

// Rows [rows][ld] of a recording, or some columns of them.
struct TimeRows {
  float* data;
  int64_t ld;

  float* at(int64_t row) const { return data + row * ld; }
  TimeRows columns(int64_t first) const { return {data + first, ld}; }
};

class Tdnn {
 public:
  static constexpr int64_t kBlock = 512;  // rows of a run

  // NAME.conv of a checkpoint, or NAME itself where that is kBare; an odd number of taps.
  enum Naming : uint8_t { kConv, kBare };
  Tdnn(const ModelContext& context, const std::string& name, int64_t inputs, int64_t outputs, int64_t taps, int64_t dilation,
       Naming naming = kConv);

  // More rows than padding(). y may be x where there is no padding and one block, else overlaps nothing.
  void run(int64_t rows, const TimeRows& x, const TimeRows& y, bool relu);
  int64_t outputs() const { return conv_.shape().outputs; }
  int64_t padding() const { return conv_.shape().history() / 2; }

 private:
  Conv1d conv_;
  Elementwise relu_;
  std::vector<float> padded_;
};

}  // namespace ref::tts
