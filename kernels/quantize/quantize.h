// SPDX-License-Identifier: Apache-2.0
// Rows to s8 with one scale each, as class exact quantises activations (docs/numerics.md).
//
// A driver that quantises on its way takes the function once, when it selects, and calls it for every row:
//
//   const QuantizeRowFn quantize_row = quantize_row_for(machine_isa, OMNI_DTYPE_BF16);   // never nullptr
//   const QuantizeRow row = {x, k, codes, &scale};
//   quantize_row(&row);
#pragma once

#include <cstdint>

#include "kernels/dispatch/kernel.h"

namespace okl {

struct QuantizeRow {
  const void* x;  // [k], aligned to its element
  int64_t k;      // >= 0
  int8_t* codes;  // [k] out, any alignment; nothing is written beyond k
  float* scale;   // out; NaN for a row with a NaN or an infinity, whose codes are 0
};
using QuantizeRowFn = void (*)(const QuantizeRow*);

struct QuantizeKernel {
  QuantizeRowFn bf16, f32;

  QuantizeRowFn for_type(uint16_t x_type) const { return x_type == OMNI_DTYPE_F32 ? f32 : bf16; }
};

// Of the best row that `allowed` covers; x_type is OMNI_DTYPE_BF16 or OMNI_DTYPE_F32.
QuantizeRowFn quantize_row_for(IsaMask allowed, uint16_t x_type);

}  // namespace okl
