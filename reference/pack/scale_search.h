// SPDX-License-Identifier: Apache-2.0
// Scale and zero point of one group of weights.
#pragma once

#include <cstdint>
#include <vector>

namespace ref {

struct GroupScale {
  float scale;  // bf16-exact
  int zero;     // 0..15
};

// One group: weights and how much an error of each counts, padded with zeros to whole steps of the loops that read them.
class WeightGroup {
 public:
  static constexpr int64_t kLanes = 16;

  // `importance` may be null: all count the same. More than one element that counts is needed, else they all do.
  void assign(const float* w, const float* importance, int64_t count);

  int64_t size() const { return size_; }
  int64_t padded() const { return static_cast<int64_t>(w_.size()); }
  const float* w() const { return w_.data(); }
  const float* importance() const { return importance_.data(); }

 private:
  std::vector<float> w_, importance_;
  int64_t size_ = 0;
};

// Range over 15 steps, or absolute maximum over 7.5.
GroupScale nearest_scale(const float* w, int64_t count, bool symmetric);

// The pair of least sum importance * (w - (code - zero) * scale)^2 that a grid and its refinement find; never worse than
// nearest_scale().
GroupScale search_scale(const WeightGroup& group, bool symmetric);

// Code of w: nearest, ties to even.
uint8_t code_of(float w, const GroupScale& scale);

// sum importance * (w - (code - zero) * scale)^2.
double group_error(const WeightGroup& group, const GroupScale& scale);

}  // namespace ref
