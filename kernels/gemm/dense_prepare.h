// SPDX-License-Identifier: Apache-2.0
// Lays out the rows of x for the dense kernels: scrubbed, widened, pairs exchanged, chunk by chunk.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemm/dense_kernel.h"
#include "kernels/gemm/dense_rows_kernel.h"
#include "omni/layout.h"

namespace okl {

// Where prepared rows stand: [ceil(K / chunk)][m][chunk], so that the rows of one chunk are neighbours. Zeros beyond K.
struct DenseRows {
  int64_t k, chunk;  // inputs; chunk is a multiple of 32
  int64_t element;   // bytes
  int64_t m;

  int64_t chunks() const { return (k + chunk - 1) / chunk; }
  int64_t row_bytes() const { return chunk * element; }
  int64_t offset(int64_t chunk_index, int64_t row) const { return (chunk_index * m + row) * row_bytes(); }
  size_t total() const { return static_cast<size_t>(chunks() * m * row_bytes()); }
};

struct DensePrepareArgs {
  const DenseRowsKernel* kernel;
  DenseRows rows;
  DenseElement element;
  DenseOrder order;
  uint16_t scrub_below;  // bf16 x: magnitudes below this become +0; 0 keeps all
  omni_dtype x_type;
  const void* x;
  int64_t ldx;
  const int32_t* permutation;  // checked by the caller, or nullptr
  uint8_t* out;
};

// Of the tier of a kernel that needs `isa`.
const DenseRowsKernel& dense_rows_kernel(IsaMask isa);

// Rows [first, last). Never allocates.
void prepare_dense_rows(const DensePrepareArgs& args, int64_t first, int64_t last);

}  // namespace okl
