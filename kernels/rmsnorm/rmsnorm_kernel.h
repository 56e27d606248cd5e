// SPDX-License-Identifier: Apache-2.0
// The contract between the RMSNorm driver and its kernels: one row in two steps, so that the kinds of input and output multiply
// neither code nor tests.
#pragma once

#include <cstdint>

#include "kernels/dispatch/kernel.h"
#include "omni/rmsnorm.h"

namespace okl {

// What the functions are chosen by.
struct RmsnormConfig {
  uint16_t x_type, weight_type, residual_type, y_type, code_source, rounding;

  uint16_t h_type() const { return residual_type != OMNI_DTYPE_NONE ? residual_type : x_type; }
};

struct RmsnormRow {
  const RmsnormConfig* config;
  const void* x;
  const void* weight;
  void* residual;
  void* y;
  float* scale;  // with codes
  int64_t n;
  float eps;
  float r;  // from `measure` to `scale_row`
};

struct RmsnormSteps {
  // With a residual stream h = residual + x in place; r = 1 / sqrt(sum(h^2) / n + eps).
  void (*measure)(RmsnormRow*);
  // y = (h * r) * w.
  void (*scale)(const RmsnormRow*);
};

struct RmsnormKernel {
  RmsnormSteps (*steps)(const RmsnormConfig&);
};

}  // namespace okl
