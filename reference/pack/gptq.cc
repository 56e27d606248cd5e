// SPDX-License-Identifier: Apache-2.0
// With T^T T the moments of the inputs, the error of a row e = w - w' costs |T e|^2, and element j of T e knows no input behind j.
// So codes are chosen for ascending j, each against what the errors before it have left: |sum_{i < j} T_ji e_i + T_jj e_j|. This is
// GPTQ with its updates of later weights put off until they are due.
#include <algorithm>
#include <string>
#include <vector>

#include "reference/core/error.h"
#include "reference/core/parallel.h"
#include "reference/pack/dense_product.h"
#include "reference/pack/lane_math.h"
#include "reference/pack/quantiser.h"
#include "reference/pack/scale_search.h"
#include "reference/pack/store_scale.h"
#include "reference/pack/weight_check.h"

namespace ref {
namespace {

// Inputs between products with all errors so far, where one scale spans more.
constexpr int64_t kBlock = 128;

// The triangle of some inputs: row i holds T_ji for j > i, and 1 / T_ii and T_ii^2 apart.
struct Triangle {
  Triangle(const InputMoments& inputs, int64_t first, int64_t size)
      : begin(first), count(size), later(static_cast<size_t>(size * size)), inverse(static_cast<size_t>(size)), square(inverse) {
    const float* factor = inputs.factor().data();
    for (int64_t j = 0; j < count; ++j) {
      const float* row = factor + (begin + j) * inputs.k() + begin;
      inverse[static_cast<size_t>(j)] = 1 / row[j];
      square[static_cast<size_t>(j)] = row[j] * row[j];
      for (int64_t i = 0; i < j; ++i) later[static_cast<size_t>(i * count + j)] = row[i];
    }
  }

  int64_t begin, count;
  std::vector<float> later, inverse, square;
};

class GptqRows {
 public:
  GptqRows(const float* w, int64_t rows, int64_t k, int64_t ld, int64_t group, bool symmetric, const InputMoments& inputs,
           const QuantisedRows& out, const omni_parallel* parallel)
      : w_(w),
        rows_(rows),
        k_(k),
        ld_(ld),
        group_(group),
        groups_((k + group - 1) / group),
        zeros_(symmetric                ? Zeros::kNone
               : out.offsets != nullptr ? Zeros::kOffsets
                                        : Zeros::kPoints),
        inputs_(inputs),
        out_(out),
        parallel_(parallel),
        errors_(static_cast<size_t>(rows * k)),
        scales_(static_cast<size_t>(batches())) {}

  void run() {
    // Scales of long groups are found in the weights as they are: their errors are still to come.
    const bool long_groups = group_ > InputMoments::kBlock;
    for (int64_t begin = 0; begin < k_; begin += group_) {
      const int64_t end = std::min(k_, begin + group_);
      if (!long_groups) {
        run_block(begin, end, begin, true);
        continue;
      }
      find_plain_scales(begin, end);
      for (int64_t at = begin; at < end; at += kBlock) run_block(at, std::min(end, at + kBlock), begin, false);
    }
  }

 private:
  int64_t batches() const { return (rows_ + kLanes - 1) / kLanes; }
  int64_t rows_of(int64_t batch) const { return std::min(kLanes, rows_ - batch * kLanes); }

  void find_plain_scales(int64_t begin, int64_t end) {
    std::vector<float> square;
    for (int64_t j = begin; j < end; ++j) {
      const float pivot = inputs_.factor()[static_cast<size_t>(j * k_ + j)];
      square.push_back(pivot * pivot);
    }
    parallel_for(parallel_, batches(), [&](int64_t batch) {
      thread_local GroupBatch weights;
      weights.resize(end - begin);
      weights.load(w_ + batch * kLanes * ld_ + begin, rows_of(batch), ld_);
      find_scales(batch, begin, square, &weights);
    });
  }

  void find_scales(int64_t batch, int64_t begin, const std::vector<float>& importance, GroupBatch* weights) {
    GroupScales& scales = scales_[static_cast<size_t>(batch)];
    weights->set_importance(importance.data());
    search_scales(*weights, zeros_, &scales);
    for (int64_t lane = 0; lane < rows_of(batch); ++lane) {
      store_scale(scales, lane, (batch * kLanes + lane) * groups_ + begin / group_, out_);
    }
  }

  // Inputs [begin, end), all of the group that begins at `group_begin`.
  void run_block(int64_t begin, int64_t end, int64_t group_begin, bool find) {
    const int64_t count = end - begin;
    const Triangle triangle(inputs_, begin, count);
    // Row j of T times the errors so far, for each row of weights.
    std::vector<float> carried(static_cast<size_t>(rows_ * count));
    if (begin > 0) {
      const MatrixView errors{errors_.data(), rows_, k_}, factor{inputs_.factor().data() + begin * k_, count, k_};
      add_product(errors, factor, begin, carried.data(), count, parallel_);
    }
    parallel_for(parallel_, batches(), [&](int64_t batch) {
      thread_local GroupBatch weights, left, targets;
      for (GroupBatch* each : {&weights, &left, &targets}) each->resize(count);
      weights.load(w_ + batch * kLanes * ld_ + begin, rows_of(batch), ld_);
      if (find) {
        left.load(carried.data() + batch * kLanes * count, rows_of(batch), count);
        shift(weights, triangle, &left, &targets);
        find_scales(batch, group_begin, triangle.square, &targets);
      }
      left.load(carried.data() + batch * kLanes * count, rows_of(batch), count);
      quantise(batch, weights, triangle, &left);
    });
  }

  // The weights that would make up for the errors so far, if they needed no codes.
  static void shift(const GroupBatch& weights, const Triangle& triangle, GroupBatch* left, GroupBatch* shifted) {
    const int64_t count = triangle.count;
    for (int64_t j = 0; j < count; ++j) {
      alignas(64) float e[kLanes];
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        const int64_t at = j * kLanes + lane;
        e[lane] = -left->w()[at] * triangle.inverse[static_cast<size_t>(j)];
        shifted->w()[at] = weights.w()[at] - e[lane];
      }
      add_outer(triangle.later.data() + j * count + j + 1, e, count - j - 1, left->w() + (j + 1) * kLanes);
    }
  }

  void quantise(int64_t batch, const GroupBatch& weights, const Triangle& triangle, GroupBatch* left) {
    const GroupScales& scales = scales_[static_cast<size_t>(batch)];
    const int64_t count = triangle.count;
    for (int64_t j = 0; j < count; ++j) {
      alignas(64) float target[kLanes], e[kLanes];
      uint8_t codes[kLanes];
      const float* w = weights.w() + j * kLanes;
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        target[lane] = w[lane] + left->w()[j * kLanes + lane] * triangle.inverse[static_cast<size_t>(j)];
      }
      nearest_codes(target, 1, scales, zeros_, codes);
      code_residuals(w, codes, 1, scales, zeros_, e);
      add_outer(triangle.later.data() + j * count + j + 1, e, count - j - 1, left->w() + (j + 1) * kLanes);
      for (int64_t lane = 0; lane < rows_of(batch); ++lane) {
        const int64_t at = (batch * kLanes + lane) * k_ + triangle.begin + j;
        out_.codes[at] = codes[lane];
        errors_[static_cast<size_t>(at)] = e[lane];
      }
    }
  }

  const float* w_;
  int64_t rows_, k_, ld_, group_, groups_;
  Zeros zeros_;
  const InputMoments& inputs_;
  const QuantisedRows& out_;
  const omni_parallel* parallel_;
  std::vector<float> errors_;        // w - w', of inputs so far
  std::vector<GroupScales> scales_;  // of the group at hand, by batch
};

}  // namespace

void quantise_rows_gptq(const float* w, int64_t rows, int64_t k, int64_t ld, int64_t group, bool symmetric,
                        const InputMoments& inputs, const QuantisedRows& out, const omni_parallel* parallel) {
  if (inputs.k() != k || inputs.factor().empty()) {
    throw Error("statistics of " + std::to_string(inputs.k()) + " inputs" + (inputs.factor().empty() ? ", not factorised," : "") +
                " for a matrix of " + std::to_string(k));
  }
  check_weights(w, rows, k, ld, parallel);
  GptqRows(w, rows, k, ld, group <= 0 ? k : std::min(group, k), symmetric, inputs, out, parallel).run();
}

}  // namespace ref
