// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/quantiser.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "reference/core/error.h"
#include "reference/core/half.h"
#include "reference/core/parallel.h"
#include "reference/pack/lane_math.h"
#include "reference/pack/scale_search.h"
#include "reference/pack/store_scale.h"
#include "reference/pack/weight_check.h"

namespace ref {
namespace {

int64_t group_size(int64_t group, int64_t k) { return group <= 0 ? k : std::min(group, k); }

class RowQuantiser {
 public:
  RowQuantiser(int64_t k, int64_t group, bool symmetric, Quantiser quantiser, const InputMoments* inputs, const QuantisedRows& out)
      : k_(k),
        group_(group),
        groups_((k + group - 1) / group),
        quantiser_(quantiser),
        // Nearest zeros are points whatever they are stored as.
        zeros_(symmetric                                                     ? Zeros::kNone
               : out.offsets != nullptr && quantiser_ != Quantiser::kNearest ? Zeros::kOffsets
                                                                             : Zeros::kPoints),
        inputs_(inputs),
        out_(out) {
    if (inputs != nullptr && group <= InputMoments::kBlock) copy_moments();
  }

  // Rows [row, row + rows), up to kLanes of them; `w` is the first.
  void run(const float* w, int64_t ld, int64_t row, int64_t rows) const {
    thread_local GroupBatch batch;
    thread_local std::vector<uint8_t> codes;
    for (int64_t g = 0; g < groups_; ++g) {
      const int64_t begin = g * group_, count = std::min(group_, k_ - begin);
      batch.resize(count);
      batch.load(w + begin, rows, ld);
      GroupScales scales;
      find_scales(&batch, g, &scales);
      codes.resize(static_cast<size_t>(count * kLanes));
      nearest_codes(batch.w(), count, scales, zeros_, codes.data());
      for (int64_t lane = 0; lane < rows; ++lane) {
        for (int64_t i = 0; i < count; ++i)
          out_.codes[(row + lane) * k_ + begin + i] = codes[static_cast<size_t>(i * kLanes + lane)];
        store_scale(scales, lane, (row + lane) * groups_ + g, out_);
      }
    }
  }

 private:
  void find_scales(GroupBatch* batch, int64_t g, GroupScales* scales) const {
    if (quantiser_ == Quantiser::kNearest) return nearest_scales(*batch, zeros_, scales);
    batch->set_importance(inputs_ == nullptr ? nullptr : inputs_->diagonal().data() + g * group_);
    if (!moments_.empty()) batch->set_moments(moments_.data() + g * group_ * group_, group_);
    search_scales(*batch, zeros_, scales);
  }

  // Each group's in rows of its own, as the search reads them for every row of the matrix.
  void copy_moments() {
    moments_.resize(static_cast<size_t>(groups_ * group_ * group_));
    for (int64_t g = 0; g < groups_; ++g) {
      const int64_t count = std::min(group_, k_ - g * group_);
      inputs_->copy_block(g * group_, count, group_, moments_.data() + g * group_ * group_);
    }
  }

  int64_t k_, group_, groups_;
  Quantiser quantiser_;
  Zeros zeros_;
  const InputMoments* inputs_;
  const QuantisedRows& out_;
  std::vector<float> moments_;
};

}  // namespace

void quantise_rows(const float* w, int64_t rows, int64_t k, int64_t ld, int64_t group, bool symmetric, Quantiser quantiser,
                   const InputMoments* inputs, const QuantisedRows& out, const omni_parallel* parallel) {
  if (inputs != nullptr && inputs->k() != k) {
    throw Error("statistics of " + std::to_string(inputs->k()) + " inputs for a matrix of " + std::to_string(k));
  }
  check_weights(w, rows, k, ld, parallel);
  const RowQuantiser quantise(k, group_size(group, k), symmetric, quantiser, inputs, out);
  parallel_for(parallel, (rows + kLanes - 1) / kLanes, [&](int64_t batch) {
    const int64_t row = batch * kLanes;
    quantise.run(w + row * ld, ld, row, std::min(kLanes, rows - row));
  });
}

void quantise_rows_s8(const float* w, int64_t rows, int64_t k, int64_t ld, int64_t group, bool bf16_scales, int8_t* codes,
                      float* scales, const omni_parallel* parallel) {
  check_weights(w, rows, k, ld, parallel);
  const int64_t size = group_size(group, k), groups = (k + size - 1) / size;
  parallel_for(parallel, rows, [&](int64_t row) {
    for (int64_t begin = 0; begin < k; begin += size) {
      const int64_t end = std::min(begin + size, k);
      float most = 0;
      for (int64_t i = begin; i < end; ++i) most = std::max(most, std::fabs(w[row * ld + i]));
      float scale = most / 127;
      if (bf16_scales) scale = widen_bf16(round_bf16(scale));
      // A group of nothing, or of what vanishes in a quotient.
      if (scale < 0x1p-120F) scale = 1;
      for (int64_t i = begin; i < end; ++i) {
        codes[row * k + i] = static_cast<int8_t>(std::clamp(std::nearbyint(w[row * ld + i] / scale), -127.0F, 127.0F));
      }
      scales[row * groups + begin / size] = scale;
    }
  });
}

}  // namespace ref
