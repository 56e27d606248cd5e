// SPDX-License-Identifier: Apache-2.0
// The contract between the driver of GEGLU and SwiGLU and their kernels: one row.
#pragma once

#include <cstdint>

#include "kernels/dispatch/kernel.h"

namespace okl {

struct GatedRow {
  const void* gate;  // [n]
  const void* up;    // [n]
  void* y;           // [n] out; may be `gate`
  int64_t n;
};
using GatedRowFn = void (*)(const GatedRow*);

struct GatedKernel {
  GatedRowFn (*row_for)(uint16_t x_type, uint16_t y_type);
};

}  // namespace okl
