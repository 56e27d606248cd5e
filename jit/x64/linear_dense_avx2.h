// SPDX-License-Identifier: Apache-2.0
// Dense tiles on AVX2: up to twelve accumulators, so one row by 64 channels, two or three rows by 32, up to six rows by 16, in as
// many passes over the block.
#pragma once

#include "jit/x64/linear_dense.h"
#include "jit/x64/store_avx2.h"

namespace okl::jit {

class LinearDenseAvx2 : public StoreAvx2<LinearDense> {
 public:
  static constexpr bool kSeveralPasses = true;
  LinearDenseAvx2(const DenseConfig& config, DenseElement element)
      : StoreAvx2<LinearDense>(config, VectorWidth::kYmm, element, kStackBase + kSpillBytes) {}

 private:
  static constexpr int kSpillBytes = 12 * 32;

  int vectors_in_pass() const override;
  void load_masks() override;
  void load_scale(int vector) override;
  void store_rows(int pass) override;
};

}  // namespace okl::jit
