// SPDX-License-Identifier: Apache-2.0
// The contract between the driver of omni/activation.h and its kernels: one row.
#pragma once

#include <cstdint>

#include "kernels/dispatch/kernel.h"

namespace okl {

struct ActivationRow {
  const void* x;   // [n]
  const float* a;  // [n] of SnakeBeta
  const float* b;  // [n] of SnakeBeta
  void* y;         // [n] out; may be x
  int64_t n;
};
using ActivationRowFn = void (*)(const ActivationRow*);

struct ActivationKernel {
  ActivationRowFn (*row_for)(uint16_t function, uint16_t x_type, uint16_t y_type);
};

}  // namespace okl
