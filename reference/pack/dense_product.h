// SPDX-License-Identifier: Apache-2.0
// Products of fp32 matrices on the library's own kernels: the ascending chain of class dense, the same bits on every machine with
// FMA and for any thread count.
#pragma once

#include <cstdint>

#include "omni/omni.h"

namespace ref {

struct MatrixView {
  const float* data;
  int64_t rows, ld;
};

// y[a.rows][b.rows] += a b^T over `depth` columns; y has rows `ld` apart.
void add_product(const MatrixView& a, const MatrixView& b, int64_t depth, float* y, int64_t ld, const omni_parallel* parallel);

// out[columns][rows] = sign * in[rows][columns], rows of `in` `ld` apart.
void transpose(const float* in, int64_t rows, int64_t columns, int64_t ld, float sign, float* out, const omni_parallel* parallel);

}  // namespace ref
