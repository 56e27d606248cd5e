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
#include "reference/pack/quantiser.h"
#include "reference/pack/scale_search.h"
#include "reference/pack/vector_clones.h"
#include "reference/pack/weight_check.h"

namespace ref {
namespace {

// Inputs between products with all errors so far, where one scale spans more.
constexpr int64_t kBlock = 128;

// y += factor * x.
REF_VECTOR_CLONES void accumulate(const float* x, float factor, int64_t count, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] += factor * x[i];
}

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
        scales_(static_cast<size_t>(rows)) {}

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
  void find_plain_scales(int64_t begin, int64_t end) {
    std::vector<float> square;
    for (int64_t j = begin; j < end; ++j) {
      const float pivot = inputs_.factor()[static_cast<size_t>(j * k_ + j)];
      square.push_back(pivot * pivot);
    }
    parallel_for(parallel_, rows_, [&](int64_t row) { find_scale(row, begin, w_ + row * ld_ + begin, square, end - begin); });
  }

  void find_scale(int64_t row, int64_t begin, const float* w, const std::vector<float>& importance, int64_t count) {
    thread_local WeightGroup weights;
    weights.assign(w, importance.data(), count);
    const GroupScale scale = search_scale(weights, zeros_);
    scales_[static_cast<size_t>(row)] = scale;
    const int64_t at = row * groups_ + begin / group_;
    out_.scales[at] = scale.scale;
    if (out_.offsets != nullptr) {
      out_.offsets[at] = scale.offset;
    } else {
      out_.zeros[at] = static_cast<uint8_t>(scale.zero);
    }
  }

  // Inputs [begin, end), all of the group that begins at `group_begin`.
  void run_block(int64_t begin, int64_t end, int64_t group_begin, bool find_scales) {
    const int64_t count = end - begin;
    const Triangle triangle(inputs_, begin, count);
    std::vector<float> carried(static_cast<size_t>(rows_ * count));
    if (begin > 0) {
      const MatrixView errors{errors_.data(), rows_, k_}, factor{inputs_.factor().data() + begin * k_, count, k_};
      add_product(errors, factor, begin, carried.data(), count, parallel_);
    }
    parallel_for(parallel_, rows_, [&](int64_t row) {
      float* left = carried.data() + row * count;
      if (find_scales) find_scale(row, group_begin, shifted(row, triangle, left), triangle.square, count);
      quantise(row, triangle, left);
    });
  }

  // The weights that would make up for the errors so far, if they needed no codes.
  const float* shifted(int64_t row, const Triangle& triangle, const float* carried) const {
    thread_local std::vector<float> left, w;
    const int64_t count = triangle.count;
    left.assign(carried, carried + count);
    w.resize(left.size());
    for (int64_t j = 0; j < count; ++j) {
      const float e = -left[static_cast<size_t>(j)] * triangle.inverse[static_cast<size_t>(j)];
      w[static_cast<size_t>(j)] = w_[row * ld_ + triangle.begin + j] - e;
      accumulate(triangle.later.data() + j * count + j + 1, e, count - j - 1, left.data() + j + 1);
    }
    return w.data();
  }

  void quantise(int64_t row, const Triangle& triangle, float* left) {
    const GroupScale scale = scales_[static_cast<size_t>(row)];
    const int64_t count = triangle.count;
    uint8_t* codes = out_.codes + row * k_ + triangle.begin;
    float* errors = errors_.data() + row * k_ + triangle.begin;
    for (int64_t j = 0; j < count; ++j) {
      const float w = w_[row * ld_ + triangle.begin + j];
      const float target = w + left[j] * triangle.inverse[static_cast<size_t>(j)];
      codes_of(&target, 1, scale, zeros_, codes + j);
      errors[j] = w - value_of(codes[j], scale, zeros_);
      accumulate(triangle.later.data() + j * count + j + 1, errors[j], count - j - 1, left + j + 1);
    }
  }

  const float* w_;
  int64_t rows_, k_, ld_, group_, groups_;
  Zeros zeros_;
  const InputMoments& inputs_;
  const QuantisedRows& out_;
  const omni_parallel* parallel_;
  std::vector<float> errors_;  // w - w', of inputs so far
  std::vector<GroupScale> scales_;
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
