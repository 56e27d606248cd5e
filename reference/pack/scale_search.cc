// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/scale_search.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "reference/core/half.h"
#include "reference/pack/vector_clones.h"

namespace ref {
namespace {

constexpr int64_t kLanes = WeightGroup::kLanes;

// Scales below this, which fp16 holds with fewer bits, become 2^-14: as the goldens have it.
constexpr float kLeastNearestScale = 6.2e-5F, kNearestScaleOfNothing = 1.0F / 16384;
// The least magnitude that a search may choose: its products with codes stay normal numbers.
constexpr float kLeastScale = 0x1p-100F;

// Adding and taking away 1.5 * 2^23 rounds to an integer, ties to even, in vectors of any machine.
constexpr float kRound = 12582912.0F;

float to_bf16(float value) { return widen_bf16(round_bf16(value)); }

// The tree keeps the order of additions fixed, so every build has the same sums.
inline float sum(float (&lanes)[kLanes]) {
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

// Code - 8 of w. Products with 1 / scale differ from quotients in ties at most: good enough to compare scales by.
inline float quick_code(float w, float inverse, float offset) {
  float q = (w - offset) * inverse;
  q = q < -8.0F ? -8.0F : q;
  q = q > 7.0F ? 7.0F : q;
  return (q + kRound) - kRound;
}

REF_VECTOR_CLONES float quick_error(const float* w, const float* importance, int64_t padded, float scale, float offset) {
  const float inverse = 1 / scale;
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < padded; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) {
      const float d = (w[i + j] - offset) - quick_code(w[i + j], inverse, offset) * scale;
      lanes[j] += importance[i + j] * (d * d);
    }
  }
  return sum(lanes);
}

// Weighted sums over a group and its codes: what the best scale for these codes follows from.
struct Sums {
  float q, qq, qw;
};
REF_VECTOR_CLONES Sums code_sums(const float* w, const float* importance, int64_t padded, float scale, float offset) {
  const float inverse = 1 / scale;
  float q1[kLanes] = {}, q2[kLanes] = {}, qw[kLanes] = {};
  for (int64_t i = 0; i < padded; i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) {
      const float q = quick_code(w[i + j], inverse, offset), weighted = importance[i + j] * q;
      q1[j] += weighted;
      q2[j] += weighted * q;
      qw[j] += weighted * w[i + j];
    }
  }
  return {sum(q1), sum(q2), sum(qw)};
}

REF_VECTOR_CLONES void residuals(const float* w, int64_t padded, float scale, float offset, float* out) {
  const float inverse = 1 / scale;
  for (int64_t i = 0; i < padded; ++i) out[i] = (w[i] - offset) - quick_code(w[i], inverse, offset) * scale;
}

// e^T M e.
REF_VECTOR_CLONES float quadratic(const float* moments, const float* e, int64_t count, int64_t padded) {
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < count; ++i) {
    const float* row = moments + i * padded;
    const float factor = e[i];
    for (int64_t k = 0; k < padded; k += kLanes) {
      for (int64_t j = 0; j < kLanes; ++j) lanes[j] += factor * (row[k + j] * e[k + j]);
    }
  }
  return sum(lanes);
}

// The candidates of least error so far.
class Search {
 public:
  Search(const WeightGroup& group, Zeros zeros) : group_(group), zeros_(zeros) {
    for (int64_t i = 0; i < group.padded(); ++i) {
      total_ += static_cast<double>(group.importance()[i]);
      total_w_ += static_cast<double>(group.importance()[i]) * static_cast<double>(group.w()[i]);
    }
    const auto [low, high] = std::minmax_element(group.w(), group.w() + group.size());
    low_ = *low;
    high_ = *high;
  }

  GroupScale run() {
    const GroupScale nearest = nearest_scale(group_.w(), group_.size(), zeros_);
    offer(nearest);
    switch (zeros_) {
      case Zeros::kNone:
        search_scales();
        break;
      case Zeros::kPoints:
        search_points();
        break;
      case Zeros::kOffsets:
        search_offsets();
        break;
    }
    refine();
    const GroupScale best = choose();
    // Ties and roundings of the quick sums apart, the promise is on the codes that are stored.
    return group_error(group_, best, zeros_) <= group_error(group_, nearest, zeros_) ? best : nearest;
  }

 private:
  static constexpr int kSteps = 26;
  // Of the scale that spans the whole range: clipping the extremes pays, and so may a little slack.
  static constexpr float kFirst = 0.6F, kStep = 0.02F;
  static constexpr int kOffsetSteps = 18, kMostRounds = 4;
  // Few of a group's moments count, so that candidates of about the same plain error differ much by them.
  static constexpr size_t kKept = 8;

  struct Candidate {
    GroupScale scale;
    float error;
  };

  bool offer(GroupScale scale) {
    const float magnitude = std::fabs(scale.scale);
    if (!(magnitude >= kLeastScale) || !std::isfinite(scale.scale) || !std::isfinite(scale.offset)) return false;
    if (scale.zero < 0 || scale.zero > 15) return false;
    const float error = quick_error(group_.w(), group_.importance(), group_.padded(), scale.scale, scale.offset);
    if (count_ == kept() && !(error < best_[count_ - 1].error)) return false;
    for (size_t i = 0; i < count_; ++i) {
      if (best_[i].scale.scale == scale.scale && best_[i].scale.offset == scale.offset) return false;
    }
    const auto place = std::upper_bound(best_.begin(), best_.begin() + count_, error,
                                        [](float value, const Candidate& candidate) { return value < candidate.error; });
    const bool first = place == best_.begin();
    if (count_ < kept()) ++count_;
    std::move_backward(place, best_.begin() + count_ - 1, best_.begin() + count_);
    *place = {scale, error};
    return first;
  }
  size_t kept() const { return group_.moments() == nullptr ? 1 : kKept; }

  static GroupScale with_point(float scale, int zero) {
    scale = to_bf16(scale);
    return {scale, static_cast<float>(8 - zero) * scale, zero};
  }

  // Codes reach -8 on one side and 7 on the other: a negative scale gives the eighth step to the positive weights.
  void search_scales() {
    const float most = std::max(-low_, high_) / 7.5F;
    for (int i = 0; i < kSteps; ++i) {
      const float scale = most * (kFirst + kStep * static_cast<float>(i));
      offer(with_point(scale, 8));
      offer(with_point(-scale, 8));
    }
  }

  void search_points() {
    for (int i = 0; i < kSteps; ++i) {
      const float scale = (high_ - low_) / 15 * (kFirst + kStep * static_cast<float>(i));
      if (!(scale > 0)) return;
      // Zero points are whole steps, so the one that centres the range has rivals.
      const float middle = std::nearbyint(7.5F - (high_ / 2 + low_ / 2) / scale);
      const int zero = static_cast<int>(std::clamp(middle, -1.0F, 16.0F));
      for (int z = zero - 1; z <= zero + 1; ++z) offer(with_point(scale, z));
    }
  }

  void search_offsets() {
    for (int i = 0; i < kOffsetSteps; ++i) {
      const float scale = (high_ - low_) / 15 * (0.7F + kStep * static_cast<float>(i));
      if (!(scale > 0)) return;
      GroupScale at{to_bf16(scale), to_bf16(high_ / 2 + low_ / 2 + scale / 2), 8};
      offer(at);
      // Two rounds bring most of what there is to gain from here.
      for (int round = 0; round < 2; ++round) {
        at = refit(at);
        offer(at);
      }
    }
  }

  // The scale, and offset, that serve the codes of `at` best.
  GroupScale refit(const GroupScale& at) const {
    const Sums sums = code_sums(group_.w(), group_.importance(), group_.padded(), at.scale, at.offset);
    const double q = sums.q, qq = sums.qq, qw = sums.qw;
    if (zeros_ == Zeros::kOffsets) {
      const double variance = qq - q * q / total_, covariance = qw - q * total_w_ / total_;
      const float scale = variance > 0 ? to_bf16(static_cast<float>(covariance / variance)) : at.scale;
      return {scale, to_bf16(static_cast<float>((total_w_ - static_cast<double>(scale) * q) / total_)), 8};
    }
    const double shift = 8 - at.zero, squares = qq + 2 * shift * q + shift * shift * total_;
    return squares > 0 ? with_point(static_cast<float>((qw + shift * total_w_) / squares), at.zero) : at;
  }

  // Codes and scale in turn, while that helps.
  void refine() {
    for (int round = 0; round < kMostRounds && offer(refit(best_[0].scale)); ++round) {
    }
  }

  GroupScale choose() const {
    if (group_.moments() == nullptr) return best_[0].scale;
    thread_local std::vector<float> e;
    e.resize(static_cast<size_t>(group_.padded()));
    const Candidate* least = &best_[0];
    float least_error = 0;
    for (size_t i = 0; i < count_; ++i) {
      residuals(group_.w(), group_.padded(), best_[i].scale.scale, best_[i].scale.offset, e.data());
      // Behind the group are weights of 0, whose codes mean nothing.
      std::fill(e.begin() + group_.size(), e.end(), 0.0F);
      const float error = quadratic(group_.moments(), e.data(), group_.size(), group_.padded());
      if (i == 0 || error < least_error) {
        least = &best_[i];
        least_error = error;
      }
    }
    return least->scale;
  }

  const WeightGroup& group_;
  Zeros zeros_;
  double total_ = 0, total_w_ = 0;
  float low_ = 0, high_ = 0;
  std::array<Candidate, kKept> best_ = {};
  size_t count_ = 0;
};

REF_VECTOR_CLONES void nearest_codes(const float* w, int64_t count, float scale, float offset, int zero, uint8_t* codes) {
  const float low = static_cast<float>(-zero), high = static_cast<float>(15 - zero);
  for (int64_t i = 0; i < count; ++i) {
    float q = (w[i] - offset) / scale;
    q = q < low ? low : q;
    q = q > high ? high : q;
    q = (q + kRound) - kRound;
    codes[i] = static_cast<uint8_t>(static_cast<int>(q) + zero);
  }
}

}  // namespace

void WeightGroup::assign(const float* w, const float* importance, int64_t count) {
  size_ = count;
  moments_ = nullptr;
  const auto rows = static_cast<size_t>(padded(count));
  w_.assign(rows, 0);
  importance_.assign(rows, 0);
  std::copy(w, w + count, w_.begin());
  const bool any = importance != nullptr && std::any_of(importance, importance + count, [](float value) { return value > 0; });
  for (int64_t i = 0; i < count; ++i) importance_[static_cast<size_t>(i)] = any ? importance[i] : 1;
}

GroupScale nearest_scale(const float* w, int64_t count, Zeros zeros) {
  float low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    low = std::min(low, w[i]);
    high = std::max(high, w[i]);
  }
  float scale = zeros == Zeros::kNone ? std::max(-low, high) / 7.5F : (high - low) / 15;
  scale = to_bf16(scale < kLeastNearestScale ? kNearestScaleOfNothing : scale);
  const int zero = zeros == Zeros::kNone ? 8 : static_cast<int>(std::clamp(std::nearbyint(-low / scale), 0.0F, 15.0F));
  const float offset = static_cast<float>(8 - zero) * scale;
  if (zeros == Zeros::kOffsets) return {scale, to_bf16(offset), 8};
  return {scale, offset, zero};
}

void codes_of(const float* w, int64_t count, const GroupScale& scale, Zeros zeros, uint8_t* codes) {
  nearest_codes(w, count, scale.scale, zeros == Zeros::kOffsets ? scale.offset : 0, scale.zero, codes);
}

float value_of(int code, const GroupScale& scale, Zeros zeros) {
  const float product = static_cast<float>(code - scale.zero) * scale.scale;
  return zeros == Zeros::kOffsets ? product + scale.offset : product;
}

double group_error(const WeightGroup& group, const GroupScale& scale, Zeros zeros) {
  thread_local std::vector<uint8_t> codes;
  thread_local std::vector<float> e;
  codes.resize(static_cast<size_t>(group.size()));
  e.assign(static_cast<size_t>(group.padded()), 0);
  codes_of(group.w(), group.size(), scale, zeros, codes.data());
  double error = 0;
  for (int64_t i = 0; i < group.size(); ++i) {
    const auto at = static_cast<size_t>(i);
    e[at] = group.w()[i] - value_of(codes[at], scale, zeros);
    error += static_cast<double>(group.importance()[i]) * static_cast<double>(e[at]) * static_cast<double>(e[at]);
  }
  return group.moments() == nullptr ? error : quadratic(group.moments(), e.data(), group.size(), group.padded());
}

GroupScale search_scale(const WeightGroup& group, Zeros zeros) { return Search(group, zeros).run(); }

}  // namespace ref
