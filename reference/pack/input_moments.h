// SPDX-License-Identifier: Apache-2.0
// Second moments of the inputs of a linear layer over a text: how much an error of each weight, and of each two, counts.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "omni/omni.h"

namespace ref {

class InputMoments {
 public:
  // Of k inputs. `whole`: of each two, as factorise() needs; else only within blocks of kBlock. k^2 or k * kBlock floats.
  InputMoments(int64_t k, bool whole);

  // Adds x x^T of rows [rows][k] of inputs, `ld` apart.
  void add(const float* x, int64_t rows, int64_t ld, const omni_parallel* parallel);
  // Divides by the rows and adds kDamping times the mean of the diagonal to it, so that there is a factor. Nothing may be added
  // from then on. Throws Error when there were no rows, or one was not finite.
  void finish();
  // T, [k][k] with zeros above its diagonal, whose T^T T are the moments: what GPTQ works with. Takes the place of the whole.
  void factorise(const omni_parallel* parallel);

  int64_t k() const { return k_; }
  int64_t rows() const { return rows_; }
  // Means of x_i^2, damped.
  std::span<const float> diagonal() const { return diagonal_; }
  // Moments of inputs [begin, begin + count), within one block: [count][ld], zeros behind count.
  void copy_block(int64_t begin, int64_t count, int64_t ld, float* out) const;
  // Empty before factorise().
  std::span<const float> factor() const { return factorised_ ? whole_ : std::span<const float>(); }

  static constexpr int64_t kBlock = 256;
  static constexpr float kDamping = 0.01F;

 private:
  float* block(int64_t index) { return blocks_.data() + index * kBlock * kBlock; }
  const float* block(int64_t index) const { return blocks_.data() + index * kBlock * kBlock; }
  int64_t block_size(int64_t index) const { return std::min(kBlock, k_ - index * kBlock); }
  int64_t blocks() const { return (k_ + kBlock - 1) / kBlock; }
  void copy_blocks_from_whole();

  int64_t k_, rows_ = 0;
  bool factorised_ = false;
  std::vector<float> whole_;   // upper triangle; then the factor
  std::vector<float> blocks_;  // [blocks][kBlock][kBlock]
  std::vector<float> diagonal_;
};

}  // namespace ref
