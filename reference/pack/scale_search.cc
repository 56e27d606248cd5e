// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/scale_search.h"

#include <array>
#include <cmath>
#include <limits>

#include "reference/pack/lane_math.h"

namespace ref {
namespace {

// Scales below this, which fp16 holds with fewer bits, become 2^-14: as the goldens have it.
constexpr float kLeastNearestScale = 6.2e-5F, kNearestScaleOfNothing = 1.0F / 16384;
// The least magnitude that a search may choose: its products with codes stay normal numbers.
constexpr float kLeastScale = 0x1p-100F;

constexpr int kSteps = 26, kOffsetSteps = 18, kOffsetRounds = 2, kRounds = 4;
// Of the scale that spans the whole range: clipping the extremes pays, and so may a little slack.
constexpr float kFirst = 0.6F, kOffsetFirst = 0.7F, kStep = 0.02F;
// Few of a group's moments count, so that candidates of about the same plain error differ much by them.
constexpr int kKept = 8;
constexpr int kMostCandidates = 1 + 3 * kSteps + kRounds;
static_assert(kMostCandidates >= 1 + kOffsetSteps * (1 + kOffsetRounds) + kRounds);

struct Range {
  float low[kLanes], high[kLanes];
};
Range range_of(const GroupBatch& batch) {
  Range range;
  for (int64_t j = 0; j < kLanes; ++j) range.low[j] = range.high[j] = batch.w()[j];
  for (int64_t i = 1; i < batch.count(); ++i) {
    for (int64_t j = 0; j < kLanes; ++j) {
      const float w = batch.w()[i * kLanes + j];
      range.low[j] = w < range.low[j] ? w : range.low[j];
      range.high[j] = w > range.high[j] ? w : range.high[j];
    }
  }
  return range;
}

void set_point(GroupScales* at, int64_t lane, float scale, float zero) {
  at->scale[lane] = nearest_bf16(scale);
  at->zero[lane] = zero;
  at->offset[lane] = (8 - zero) * at->scale[lane];
}
void set_offset(GroupScales* at, int64_t lane, float scale, float offset) {
  at->scale[lane] = nearest_bf16(scale);
  at->zero[lane] = 8;
  at->offset[lane] = nearest_bf16(offset);
}

bool is_valid(const GroupScales& at, int64_t lane) {
  return std::fabs(at.scale[lane]) >= kLeastScale && std::fabs(at.scale[lane]) < std::numeric_limits<float>::infinity() &&
         at.zero[lane] >= 0 && at.zero[lane] <= 15;
}

void copy_lane(const GroupScales& from, int64_t lane, GroupScales* to) {
  to->scale[lane] = from.scale[lane];
  to->offset[lane] = from.offset[lane];
  to->zero[lane] = from.zero[lane];
}

class Search {
 public:
  Search(const GroupBatch& batch, Zeros zeros) : batch_(batch), zeros_(zeros), range_(range_of(batch)) {
    for (int64_t i = 0; i < batch.count(); ++i) {
      const double weight = batch.importance()[i];
      total_ += weight;
      for (int64_t j = 0; j < kLanes; ++j) total_w_[j] += weight * static_cast<double>(batch.w()[i * kLanes + j]);
    }
  }

  void run(GroupScales* out) {
    GroupScales nearest;
    nearest_scales(batch_, zeros_, &nearest);
    offer(nearest);
    switch (zeros_) {
      case Zeros::kNone:
        try_signs();
        break;
      case Zeros::kPoints:
        try_points();
        break;
      case Zeros::kOffsets:
        try_offsets();
        break;
    }
    for (int round = 0; round < kRounds; ++round) {
      GroupScales next;
      refit(best_, &next);
      offer(next);
    }
    // Ties and roundings of quick sums apart, the promise is on the codes that are stored.
    if (batch_.moments() != nullptr) choose_by_moments();
    keep_better(nearest, best_, out);
  }

 private:
  struct Candidate {
    GroupScales scales;
    alignas(64) float error[kLanes];
  };

  void offer(const GroupScales& at) {
    Candidate& candidate = candidates_[static_cast<size_t>(count_++)];
    candidate.scales = at;
    // Lanes without a meaning are computed with the best so far.
    for (int64_t j = 0; j < kLanes; ++j) {
      if (!is_valid(at, j)) copy_lane(best_, j, &candidate.scales);
    }
    quick_errors(batch_, candidate.scales, candidate.error);
    for (int64_t j = 0; j < kLanes; ++j) {
      if (count_ > 1 && !(candidate.error[j] < best_error_[j])) continue;
      best_error_[j] = candidate.error[j];
      copy_lane(candidate.scales, j, &best_);
    }
    if (batch_.moments() == nullptr) count_ = 1;  // only the best counts
  }

  // Codes reach -8 on one side and 7 on the other: a negative scale gives the eighth step to the positive weights.
  void try_signs() {
    for (int i = 0; i < kSteps; ++i) {
      const float share = (kFirst + kStep * static_cast<float>(i)) / 7.5F;
      GroupScales up, down;
      for (int64_t j = 0; j < kLanes; ++j) {
        const float most = -range_.low[j] > range_.high[j] ? -range_.low[j] : range_.high[j];
        set_point(&up, j, most * share, 8);
        set_point(&down, j, -most * share, 8);
      }
      offer(up);
      offer(down);
    }
  }

  // Zero points are whole steps, so the one that centres the range has rivals.
  void try_points() {
    for (int i = 0; i < kSteps; ++i) {
      const float share = (kFirst + kStep * static_cast<float>(i)) / 15;
      for (int shift = -1; shift <= 1; ++shift) {
        GroupScales at;
        for (int64_t j = 0; j < kLanes; ++j) {
          const float scale = (range_.high[j] - range_.low[j]) * share;
          const float middle = 7.5F - (range_.high[j] + range_.low[j]) / 2 / scale;
          // A range of one point has no scale; is_valid() drops it.
          const float zero = std::fabs(middle) < 100 ? nearest_whole(middle) : -1;
          set_point(&at, j, scale, zero + static_cast<float>(shift));
        }
        offer(at);
      }
    }
  }

  // Two rounds bring most of what there is to gain from each beginning.
  void try_offsets() {
    for (int i = 0; i < kOffsetSteps; ++i) {
      const float share = (kOffsetFirst + kStep * static_cast<float>(i)) / 15;
      GroupScales at;
      for (int64_t j = 0; j < kLanes; ++j) {
        const float scale = (range_.high[j] - range_.low[j]) * share;
        set_offset(&at, j, scale, (range_.high[j] + range_.low[j]) / 2 + scale / 2);
      }
      offer(at);
      for (int round = 0; round < kOffsetRounds; ++round) {
        GroupScales next;
        refit(at, &next);
        offer(next);
        at = next;
      }
    }
  }

  // The scales, and offsets, that serve the codes of `at` best.
  void refit(const GroupScales& at, GroupScales* next) const {
    CodeSums sums;
    code_sums(batch_, at, &sums);
    for (int64_t j = 0; j < kLanes; ++j) {
      const double q = sums.q[j], qq = sums.qq[j], qw = sums.qw[j];
      if (zeros_ == Zeros::kOffsets) {
        const double variance = qq - q * q / total_, covariance = qw - q * total_w_[j] / total_;
        const float scale = variance > 0 ? nearest_bf16(static_cast<float>(covariance / variance)) : at.scale[j];
        set_offset(next, j, scale, static_cast<float>((total_w_[j] - static_cast<double>(scale) * q) / total_));
      } else {
        const double shift = 8 - at.zero[j], square = qq + 2 * shift * q + shift * shift * total_;
        set_point(next, j, square > 0 ? static_cast<float>((qw + shift * total_w_[j]) / square) : at.scale[j], at.zero[j]);
      }
    }
  }

  // Of the kKept candidates of least error in a lane, the one that the moments like best.
  void choose_by_moments() {
    std::array<Candidate, kKept> kept;
    for (int64_t j = 0; j < kLanes; ++j) keep_best(j, &kept);
    alignas(64) double least[kLanes] = {}, errors[kLanes];
    for (int slot = 0; slot < kKept; ++slot) {
      const GroupScales& scales = kept[static_cast<size_t>(slot)].scales;
      stored_errors(batch_, scales, zeros_, errors);
      for (int64_t j = 0; j < kLanes; ++j) {
        if (slot > 0 && !(errors[j] < least[j])) continue;
        least[j] = errors[j];
        copy_lane(scales, j, &best_);
      }
    }
  }

  // Ascending errors; the same scale counts once. Lanes with fewer repeat their first.
  void keep_best(int64_t lane, std::array<Candidate, kKept>* kept) const {
    int held = 0;
    for (int c = 0; c < count_; ++c) {
      const Candidate& candidate = candidates_[static_cast<size_t>(c)];
      const float error = candidate.error[lane];
      int place = held;
      while (place > 0 && error < (*kept)[static_cast<size_t>(place - 1)].error[lane]) --place;
      if (place == kKept) continue;
      if (place > 0 && same((*kept)[static_cast<size_t>(place - 1)].scales, candidate.scales, lane)) continue;
      if (held < kKept) ++held;
      for (int i = held - 1; i > place; --i) move_lane((*kept)[static_cast<size_t>(i - 1)], lane, &(*kept)[static_cast<size_t>(i)]);
      move_lane(candidate, lane, &(*kept)[static_cast<size_t>(place)]);
    }
    for (int i = held; i < kKept; ++i) move_lane((*kept)[0], lane, &(*kept)[static_cast<size_t>(i)]);
  }
  static bool same(const GroupScales& a, const GroupScales& b, int64_t lane) {
    return a.scale[lane] == b.scale[lane] && a.offset[lane] == b.offset[lane];
  }
  static void move_lane(const Candidate& from, int64_t lane, Candidate* to) {
    copy_lane(from.scales, lane, &to->scales);
    to->error[lane] = from.error[lane];
  }

  void keep_better(const GroupScales& nearest, const GroupScales& found, GroupScales* out) const {
    alignas(64) double before[kLanes], after[kLanes];
    stored_errors(batch_, nearest, zeros_, before);
    stored_errors(batch_, found, zeros_, after);
    for (int64_t j = 0; j < kLanes; ++j) copy_lane(after[j] <= before[j] ? found : nearest, j, out);
  }

  const GroupBatch& batch_;
  Zeros zeros_;
  Range range_;
  double total_ = 0, total_w_[kLanes] = {};
  GroupScales best_ = {};
  float best_error_[kLanes] = {};
  std::array<Candidate, kMostCandidates> candidates_;
  int count_ = 0;
};

}  // namespace

void nearest_scales(const GroupBatch& batch, Zeros zeros, GroupScales* out) {
  const Range range = range_of(batch);
  for (int64_t j = 0; j < kLanes; ++j) {
    const float low = std::min(range.low[j], 0.0F), high = std::max(range.high[j], 0.0F);
    const float scale = zeros == Zeros::kNone ? std::max(-low, high) / 7.5F : (high - low) / 15;
    set_point(out, j, scale < kLeastNearestScale ? kNearestScaleOfNothing : scale, 8);
    if (zeros == Zeros::kNone) continue;
    set_point(out, j, out->scale[j], std::clamp(std::nearbyint(-low / out->scale[j]), 0.0F, 15.0F));
    if (zeros == Zeros::kOffsets) set_offset(out, j, out->scale[j], out->offset[j]);
  }
}

void search_scales(const GroupBatch& batch, Zeros zeros, GroupScales* out) { Search(batch, zeros).run(out); }

}  // namespace ref
