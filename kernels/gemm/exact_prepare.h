// SPDX-License-Identifier: Apache-2.0
// Rows of x as class exact multiplies them: s8 codes, one scale a row, and the sum of each block.
#pragma once

#include <cstdint>

#include "kernels/gemm/exact_kernel.h"
#include "kernels/quantize/quantize.h"
#include "omni/linear.h"

namespace okl {

struct ExactRows {
  const ExactConfig* config;   // k, block and row_bytes() are read
  omni_dtype x_type;           // BF16 and F32 rows are quantised, S8 rows are taken as they are
  QuantizeRowFn quantize_row;  // not for S8
  const omni_linear_args* args;
  int8_t* rows;     // [m][row_bytes()]
  int32_t* sums;    // [m][blocks()]
  int32_t* starts;  // [m][blocks()][2]
  float* x_scales;  // [m]
};

// Fills rows [first, last). Never allocates.
void prepare_exact_rows(const ExactRows& rows, uint32_t first, uint32_t last);

}  // namespace okl
