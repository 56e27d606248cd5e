// SPDX-License-Identifier: Apache-2.0
// The contract between depthwise convolution and its kernels: output rows of all channels.
#pragma once

#include <cstdint>

#include "kernels/dispatch/kernel.h"

namespace okl {

struct DepthwiseConfig {
  uint16_t x_type, y_type;
};

// Strides count elements.
struct DepthwiseRows {
  const void* x;  // of the first output row
  int64_t ldx;
  int64_t tap_x;         // from a tap's row to the next: dilation * ldx
  const float* weights;  // [taps][n]
  const float* bias;     // [n] or nullptr
  void* y;
  int64_t ldy;
  int64_t rows, taps, n;
};

struct DepthwiseKernel {
  void (*(*steps)(const DepthwiseConfig&))(const DepthwiseRows*);
};

}  // namespace okl
