// SPDX-License-Identifier: Apache-2.0
// Scale and zero of one group of 4-bit weights: nearest, or searched for the least error.
#pragma once

#include <cstdint>
#include <vector>

namespace ref {

// What may stand for zero: code 8; any of the codes; any bf16 number.
enum class Zeros : uint8_t { kNone, kPoints, kOffsets };

struct GroupScale {
  float scale = 1;   // bf16-exact
  float offset = 0;  // w = (code - 8) * scale + offset; (8 - zero) * scale, or a bf16 number of its own with kOffsets
  int zero = 8;      // 0..15; with kOffsets 8
};

// One group: its weights, and how much their errors count, in rows padded with zeros to whole steps of the loops that read them.
class WeightGroup {
 public:
  static constexpr int64_t kLanes = 16;

  // Error = sum importance[i] * e[i]^2; `importance` may be null: all ones, which also stand in for all zeros.
  void assign(const float* w, const float* importance, int64_t count);
  // Error = sum e[i] * moments[i][j] * e[j], at least to choose among the best by the former. Null: none. Rows of
  // padded() floats, zeros behind `count`; lives as long as the group.
  void set_moments(const float* moments) { moments_ = moments; }

  static int64_t padded(int64_t count) { return (count + kLanes - 1) / kLanes * kLanes; }
  int64_t size() const { return size_; }
  int64_t padded() const { return static_cast<int64_t>(w_.size()); }
  const float* w() const { return w_.data(); }
  const float* importance() const { return importance_.data(); }
  const float* moments() const { return moments_; }

 private:
  std::vector<float> w_, importance_;
  const float* moments_ = nullptr;
  int64_t size_ = 0;
};

// (max - min) / 15 over a range that includes 0, or absolute maximum / 7.5; rounded to bf16.
GroupScale nearest_scale(const float* w, int64_t count, Zeros zeros);

// The one of least error that a grid and its refinement find; never worse than nearest_scale() of the same zeros.
GroupScale search_scale(const WeightGroup& group, Zeros zeros);

// Nearest codes, ties to even.
void codes_of(const float* w, int64_t count, const GroupScale& scale, Zeros zeros, uint8_t* codes);
// What a code stands for.
float value_of(int code, const GroupScale& scale, Zeros zeros);

// The group's error with nearest codes: with its moments where it has them.
double group_error(const WeightGroup& group, const GroupScale& scale, Zeros zeros);

}  // namespace ref
