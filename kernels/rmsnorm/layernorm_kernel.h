// SPDX-License-Identifier: Apache-2.0
// The contract between the driver of LayerNorm and its kernels: one row.
#pragma once

#include <cstdint>

#include "kernels/dispatch/kernel.h"

namespace okl {

struct LayernormRow {
  const void* x;        // [n]
  const float* weight;  // [n], or NULL: 1
  const float* bias;    // [n], or NULL: 0
  void* y;              // [n] out; may be x
  int64_t n;
  float eps;
};
using LayernormRowFn = void (*)(const LayernormRow*);

struct LayernormKernel {
  LayernormRowFn (*row_for)(uint16_t x_type, uint16_t y_type);
};

}  // namespace okl
