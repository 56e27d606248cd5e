// SPDX-License-Identifier: Apache-2.0
// The contract between the GEGLU driver and its kernels: one row.
#pragma once

#include <cstdint>

#include "kernels/dispatch/kernel.h"

namespace okl {

struct GegluRow {
  const void* gate;  // [n]
  const void* up;    // [n]
  void* y;           // [n] out; may be `gate`
  int64_t n;
};
using GegluRowFn = void (*)(const GegluRow*);

struct GegluKernel {
  GegluRowFn (*row_for)(uint16_t x_type, uint16_t y_type);
};

}  // namespace okl
