// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/input_moments.h"

#include <cmath>
#include <string>

#include "reference/core/error.h"
#include "reference/pack/cholesky.h"
#include "reference/pack/dense_product.h"

namespace ref {
namespace {

// Rows at once: their transpose stays small, and a product is long enough to pay for packing.
constexpr int64_t kMostRows = 512;
constexpr int64_t kColumns = 512;  // of the upper triangle at once

}  // namespace

InputMoments::InputMoments(int64_t k, bool whole)
    : k_(k),
      whole_(whole ? static_cast<size_t>(k * k) : 0),
      blocks_(static_cast<size_t>(blocks() * kBlock * kBlock)),
      diagonal_(static_cast<size_t>(k)) {}

void InputMoments::add(const float* x, int64_t rows, int64_t ld, const omni_parallel* parallel) {
  std::vector<float> columns(static_cast<size_t>(k_ * std::min(rows, kMostRows)));
  for (int64_t begin = 0; begin < rows; begin += kMostRows) {
    const int64_t count = std::min(kMostRows, rows - begin);
    transpose(x + begin * ld, count, k_, ld, 1, columns.data(), parallel);
    if (whole_.empty()) {
      for (int64_t b = 0; b < blocks(); ++b) {
        const MatrixView inputs{columns.data() + b * kBlock * count, block_size(b), count};
        add_product(inputs, inputs, count, block(b), kBlock, parallel);
      }
    } else {
      for (int64_t c0 = 0; c0 < k_; c0 += kColumns) {
        const int64_t c1 = std::min(k_, c0 + kColumns);
        add_product({columns.data(), c1, count}, {columns.data() + c0 * count, c1 - c0, count}, count, whole_.data() + c0, k_,
                    parallel);
      }
    }
    rows_ += count;
  }
}

void InputMoments::copy_blocks_from_whole() {
  for (int64_t b = 0; b < blocks(); ++b) {
    for (int64_t i = 0; i < block_size(b); ++i) {
      const float* row = whole_.data() + (b * kBlock + i) * k_ + b * kBlock;
      std::copy(row, row + block_size(b), block(b) + i * kBlock);
    }
  }
}

void InputMoments::finish() {
  if (rows_ == 0) throw Error("statistics of no rows");
  if (!whole_.empty()) copy_blocks_from_whole();
  const float share = 1 / static_cast<float>(rows_);
  for (float& value : blocks_) value *= share;
  for (float& value : whole_) value *= share;
  double sum = 0;
  for (int64_t i = 0; i < k_; ++i) {
    const float value = block(i / kBlock)[i % kBlock * (kBlock + 1)];
    if (!std::isfinite(value)) throw Error("statistics: input " + std::to_string(i) + " is not finite");
    diagonal_[static_cast<size_t>(i)] = value;
    sum += static_cast<double>(value);
  }
  // Inputs that are always 0 give no diagonal to damp by.
  const auto mean = static_cast<float>(sum / static_cast<double>(k_));
  const float damping = mean > 0 ? kDamping * mean : 1;
  for (int64_t i = 0; i < k_; ++i) {
    diagonal_[static_cast<size_t>(i)] += damping;
    block(i / kBlock)[i % kBlock * (kBlock + 1)] += damping;
    if (!whole_.empty()) whole_[static_cast<size_t>(i * k_ + i)] += damping;
  }
}

void InputMoments::factorise(const omni_parallel* parallel) {
  if (factorised_) return;
  if (whole_.empty()) throw Error("statistics of blocks have no factor");
  factorise_from_below(whole_.data(), k_, parallel);
  factorised_ = true;
}

void InputMoments::copy_block(int64_t begin, int64_t count, int64_t ld, float* out) const {
  const int64_t first = begin % kBlock;
  const float* from = block(begin / kBlock) + first * (kBlock + 1);
  for (int64_t i = 0; i < count; ++i) {
    std::copy(from + i * kBlock, from + i * kBlock + count, out + i * ld);
    std::fill(out + i * ld + count, out + (i + 1) * ld, 0.0F);
  }
}

}  // namespace ref
