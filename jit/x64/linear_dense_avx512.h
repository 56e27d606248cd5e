// SPDX-License-Identifier: Apache-2.0
// Dense tiles of up to 6 rows by 64 channels on AVX-512: fp32 FMA, or VDPBF16PS on bf16 pairs.
#pragma once

#include "jit/x64/linear_dense.h"
#include "jit/x64/store_avx512.h"

namespace okl::jit {

class LinearDenseAvx512 : public StoreAvx512<LinearDense> {
 public:
  static constexpr bool kSeveralPasses = false;
  LinearDenseAvx512(const DenseConfig& config, DenseElement element)
      : StoreAvx512<LinearDense>(config, VectorWidth::kZmm, element, 0) {}

 private:
  int vectors_in_pass() const override { return vectors(); }
  void load_masks() override;
  void load_scale(int vector) override;
  void store_rows(int pass) override;
  bool has_bf16_convert() const override { return multiplies_pairs(); }
};

}  // namespace okl::jit
