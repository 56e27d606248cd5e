// SPDX-License-Identifier: Apache-2.0
// Rows of x as class fast multiplies them: bf16 with zeros behind, and the sum of each block for the zeros of tg4.
#pragma once

#include <cstdint>

#include "kernels/fast/fast_kernel.h"
#include "omni/linear.h"

namespace okl {

struct FastRows {
  const FastConfig* config;
  const omni_linear_args* args;
  uint16_t* rows;  // [m][row_bytes() / 2]
  float* sums;     // tg4: [m][blocks()]
};

// Fills rows [first, last). Never allocates. With tg4 |x| < 2^-119 becomes +0, as in class group.
void prepare_fast_rows(const FastRows& rows, uint32_t first, uint32_t last);

}  // namespace okl
