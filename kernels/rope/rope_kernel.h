// SPDX-License-Identifier: Apache-2.0
// The contract between the RoPE driver and its kernels: the heads of one row.
#pragma once

#include <cstdint>

#include "kernels/dispatch/kernel.h"

namespace okl {

struct RopeRow {
  void* x;           // [heads][head_dim], in place
  const float* cos;  // [half]
  const float* sin;  // [half]
  int64_t heads, head_dim, half;
};
using RopeRowFn = void (*)(const RopeRow*);

struct RopeKernel {
  RopeRowFn bf16, f32;
};

}  // namespace okl
