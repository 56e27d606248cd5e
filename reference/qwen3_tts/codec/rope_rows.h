// SPDX-License-Identifier: Apache-2.0
// Cosines and sines for rows that only ever go forward: a stream of any length needs those of the rows at hand.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reference/core/memory.h"
#include "reference/core/self_attention.h"

namespace ref::tts {

class RopeRows {
 public:
  // For calls of up to `most` rows.
  RopeRows(int64_t rot, double theta, int64_t most)
      : rot_(rot), theta_(theta), most_(most + kAhead), memory_(static_cast<size_t>(most_ * rot) * sizeof(float)) {}

  // A slice that holds positions [first, last). Never allocates.
  RopeSlice reach(int64_t first, int64_t last) {
    if (first < p0_ || last > p1_) make(first);
    return {memory_.data(), static_cast<size_t>((p1_ - p0_) * rot_) * sizeof(float), p0_, p1_};
  }

 private:
  static constexpr int64_t kAhead = 64;  // rows that are made at once when calls are short

  void make(int64_t first) {
    p0_ = first;
    p1_ = std::min(first + most_, OMNI_ROPE_MOST_POSITIONS);
    const omni_rope_range range = {sizeof(omni_rope_range), static_cast<uint32_t>(rot_), theta_, p0_, p1_};
    check(omni_rope_table(&range, memory_.data(), memory_.size()), "rope");
  }

  int64_t rot_;
  double theta_;
  int64_t most_, p0_ = 0, p1_ = 0;
  Memory memory_;
};

}  // namespace ref::tts
