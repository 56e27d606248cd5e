// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/scale_search.h"

#include <algorithm>
#include <cmath>

#include "reference/core/half.h"

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
float sum(float (&lanes)[kLanes]) {
  for (int64_t width = kLanes / 2; width > 0; width /= 2) {
    for (int64_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
  }
  return lanes[0];
}

// The error with codes from a product with 1 / scale, which differ from code_of() in ties at most.
float quick_error(const WeightGroup& group, float scale, int zero) {
  const float inverse = 1 / scale, low = static_cast<float>(-zero), high = static_cast<float>(15 - zero);
  const float *w = group.w(), *importance = group.importance();
  float lanes[kLanes] = {};
  for (int64_t i = 0; i < group.padded(); i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) {
      float q = w[i + j] * inverse;
      q = q < low ? low : q;
      q = q > high ? high : q;
      q = (q + kRound) - kRound;
      const float d = w[i + j] - q * scale;
      lanes[j] += importance[i + j] * (d * d);
    }
  }
  return sum(lanes);
}

// The scale that serves the codes of (scale, zero) best: sum h w q / sum h q^2 with q = code - zero.
float refit(const WeightGroup& group, float scale, int zero) {
  const float inverse = 1 / scale, low = static_cast<float>(-zero), high = static_cast<float>(15 - zero);
  const float *w = group.w(), *importance = group.importance();
  float products[kLanes] = {}, squares[kLanes] = {};
  for (int64_t i = 0; i < group.padded(); i += kLanes) {
    for (int64_t j = 0; j < kLanes; ++j) {
      float q = w[i + j] * inverse;
      q = q < low ? low : q;
      q = q > high ? high : q;
      q = (q + kRound) - kRound;
      const float weighted = importance[i + j] * q;
      products[j] += weighted * w[i + j];
      squares[j] += weighted * q;
    }
  }
  const float square = sum(squares);
  return square > 0 ? sum(products) / square : scale;
}

// Keeps the best candidate.
class Best {
 public:
  Best(const WeightGroup& group, const GroupScale& start)
      : group_(group), best_(start), error_(quick_error(group, start.scale, start.zero)) {}

  void offer(float scale, int zero) {
    scale = to_bf16(scale);
    if (!(std::fabs(scale) >= kLeastScale) || zero < 0 || zero > 15) return;
    const float error = quick_error(group_, scale, zero);
    if (error < error_) {
      error_ = error;
      best_ = {scale, zero};
    }
  }
  // Codes and scale in turn, while that helps.
  void refine() {
    constexpr int kMostRounds = 4;
    for (int round = 0; round < kMostRounds; ++round) {
      const GroupScale before = best_;
      offer(refit(group_, best_.scale, best_.zero), best_.zero);
      if (best_.scale == before.scale) return;
    }
  }
  const GroupScale& result() const { return best_; }

 private:
  const WeightGroup& group_;
  GroupScale best_;
  float error_;
};

constexpr int kSteps = 25;
// Of the scale that spans the whole range: clipping the extremes pays, and so may a little slack.
constexpr float kFirst = 0.6F, kStep = 0.02F;

// Codes reach -8 on one side and 7 on the other: a negative scale gives the eighth step to the positive weights.
void search_symmetric(float most, Best* best) {
  for (int i = 0; i <= kSteps; ++i) {
    const float scale = most / 7.5F * (kFirst + kStep * static_cast<float>(i));
    best->offer(scale, 8);
    best->offer(-scale, 8);
  }
}

void search_asymmetric(float low, float high, Best* best) {
  for (int i = 0; i <= kSteps; ++i) {
    const float scale = (high - low) / 15 * (kFirst + kStep * static_cast<float>(i));
    // Centred, as one unit of the zero point is a whole step: its neighbours too.
    const int middle = static_cast<int>(std::clamp(std::nearbyint(7.5F - (high + low) / 2 / scale), -1.0F, 16.0F));
    for (int zero = middle - 1; zero <= middle + 1; ++zero) best->offer(scale, zero);
  }
}

}  // namespace

void WeightGroup::assign(const float* w, const float* importance, int64_t count) {
  size_ = count;
  const auto padded = static_cast<size_t>((count + kLanes - 1) / kLanes * kLanes);
  w_.assign(padded, 0);
  importance_.assign(padded, 0);
  std::copy(w, w + count, w_.begin());
  bool any = false;
  for (int64_t i = 0; importance != nullptr && i < count; ++i) any = any || importance[i] > 0;
  for (int64_t i = 0; i < count; ++i) importance_[static_cast<size_t>(i)] = any ? importance[i] : 1;
}

GroupScale nearest_scale(const float* w, int64_t count, bool symmetric) {
  float low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    low = std::min(low, w[i]);
    high = std::max(high, w[i]);
  }
  float scale = symmetric ? std::max(-low, high) / 7.5F : (high - low) / 15;
  scale = to_bf16(scale < kLeastNearestScale ? kNearestScaleOfNothing : scale);
  return {scale, symmetric ? 8 : static_cast<int>(std::clamp(std::nearbyint(-low / scale), 0.0F, 15.0F))};
}

uint8_t code_of(float w, const GroupScale& scale) {
  const float code = std::nearbyint(w / scale.scale) + static_cast<float>(scale.zero);
  return static_cast<uint8_t>(std::clamp(code, 0.0F, 15.0F));
}

double group_error(const WeightGroup& group, const GroupScale& scale) {
  double error = 0;
  for (int64_t i = 0; i < group.size(); ++i) {
    const float w = group.w()[i];
    const double d = static_cast<double>(w) - static_cast<double>(code_of(w, scale) - scale.zero) * scale.scale;
    error += group.importance()[i] * d * d;
  }
  return error;
}

GroupScale search_scale(const WeightGroup& group, bool symmetric) {
  const GroupScale nearest = nearest_scale(group.w(), group.size(), symmetric);
  const auto [low, high] = std::minmax_element(group.w(), group.w() + group.size());
  Best best(group, nearest);
  if (symmetric) {
    search_symmetric(std::max(-*low, *high), &best);
  } else {
    search_asymmetric(*low, *high, &best);
  }
  best.refine();
  // Ties and roundings of the quick sums apart, the promise is on the codes that are stored.
  return group_error(group, best.result()) <= group_error(group, nearest) ? best.result() : nearest;
}

}  // namespace ref
