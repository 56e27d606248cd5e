// SPDX-License-Identifier: Apache-2.0
// What dense_prepare.cc is made of: moving rows of bf16, one set of functions for each ISA, all with the same bits.
#pragma once

#include <cstdint>

namespace okl {

inline constexpr int64_t kDenseRowStep = 32;  // inputs: every count is a multiple of it

// `count` inputs; those of a magnitude below `below` (bf16 bits without a sign) become +0.
struct DenseRowsKernel {
  void (*copy)(const uint16_t* x, int64_t count, uint16_t below, uint16_t* out);
  void (*widen)(const uint16_t* x, int64_t count, uint16_t below, float* out);
  void (*widen_odd_first)(const uint16_t* x, int64_t count, uint16_t below, float* out);  // inputs of a pair exchanged
};

extern const DenseRowsKernel dense_rows_portable, dense_rows_avx2, dense_rows_avx512;

}  // namespace okl
