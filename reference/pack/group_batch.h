// SPDX-License-Identifier: Apache-2.0
// One group of inputs of sixteen rows at once, a row in each lane: every step of a quantiser is then the same step in all lanes,
// and no lane knows of another.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

namespace ref {

constexpr int64_t kLanes = 16;

// What may stand for zero: code 8; any of the codes; any bf16 number.
enum class Zeros : uint8_t { kNone, kPoints, kOffsets };

// Scale and zero of a group in each row.
struct GroupScales {
  alignas(64) float scale[kLanes];   // bf16-exact
  alignas(64) float offset[kLanes];  // w = (code - 8) * scale + offset; (8 - zero) * scale, or with kOffsets any bf16 number
  alignas(64) float zero[kLanes];    // 0..15, a whole number; with kOffsets 8
};

class GroupBatch {
 public:
  // Of `count` inputs. Weights are whatever they were.
  void resize(int64_t count) {
    count_ = count;
    w_.resize(static_cast<size_t>(count * kLanes));
    moments_ = nullptr;
  }
  // Rows [0, rows), `ld` apart; lanes beyond them are 0.
  void load(const float* w, int64_t rows, int64_t ld) {
    for (int64_t i = 0; i < count_; ++i) {
      for (int64_t lane = 0; lane < kLanes; ++lane) w_[static_cast<size_t>(i * kLanes + lane)] = lane < rows ? w[lane * ld + i] : 0;
    }
  }
  // The error of a row is sum importance[i] * e[i]^2. Null: all ones, which also stand in for all zeros.
  void set_importance(const float* importance) {
    const bool any = importance != nullptr && std::any_of(importance, importance + count_, [](float value) { return value > 0; });
    importance_.assign(static_cast<size_t>(count_), 1);
    if (any) std::copy(importance, importance + count_, importance_.begin());
  }
  // The error is sum e[i] * moments[i][j] * e[j], at least to choose among the best by the former. [count][ld], kept by the caller.
  void set_moments(const float* moments, int64_t ld) {
    moments_ = moments;
    moments_ld_ = ld;
  }

  int64_t count() const { return count_; }
  float* w() { return w_.data(); }
  const float* w() const { return w_.data(); }  // [count][kLanes]
  const float* importance() const { return importance_.data(); }
  const float* moments() const { return moments_; }
  int64_t moments_ld() const { return moments_ld_; }

 private:
  int64_t count_ = 0, moments_ld_ = 0;
  std::vector<float> w_, importance_;
  const float* moments_ = nullptr;
};

}  // namespace ref
