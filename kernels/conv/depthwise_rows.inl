// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution, for leaf files: sixteen channels at a time, so that the taps of a channel are one chain in a register.
#pragma once

#include "kernels/activation/lanes.inl"
#include "kernels/conv/depthwise_kernel.h"
#include "omni/layout.h"

namespace okl {
namespace {

constexpr int kRowsAtOnce = 4;  // share the weights, and are chains enough to hide an FMA's latency

OMNI_LANE_FN F32 load_x(const float* p) { return load(p); }
OMNI_LANE_FN F32 load_x(const uint16_t* p) { return load_bf16(p); }
OMNI_LANE_FN void store_y(float* p, F32 y) { store(p, canonical(y)); }
OMNI_LANE_FN void store_y(uint16_t* p, F32 y) { store_bf16(p, y); }

// Rows [0, rows) of sixteen channels.
template <int rows, typename X, typename Y>
OMNI_LANE_FN void sixteen(const DepthwiseRows& all, const X* x, int64_t ldx, int64_t tap_x, const float* weights,
                          int64_t ld_weights, const float* bias, Y* y, int64_t ldy) {
  F32 sum[rows];
  for (int row = 0; row < rows; ++row) sum[row] = splat(0);
  for (int64_t tap = 0; tap < all.taps; ++tap) {
    const F32 w = load(weights + tap * ld_weights);
    for (int row = 0; row < rows; ++row) sum[row] = fma(w, load_x(x + row * ldx + tap * tap_x), sum[row]);
  }
  if (bias != nullptr) {
    const F32 b = load(bias);
    for (int row = 0; row < rows; ++row) sum[row] = sum[row] + b;
  }
  for (int row = 0; row < rows; ++row) store_y(y + row * ldy, sum[row]);
}

// The last channels, fewer than sixteen: copied, so that nothing beyond them is touched.
template <typename X, typename Y>
OMNI_LANE_FN void last_channels(const DepthwiseRows& all, const X* x, int64_t count, const float* weights, const float* bias,
                                Y* y) {
  constexpr int64_t kMostTaps = 64;
  X padded_x[kMostTaps * kLanes] = {};
  float padded_weights[kMostTaps * kLanes] = {}, padded_bias[kLanes] = {};
  Y padded_y[kLanes];
  for (int64_t tap = 0; tap < all.taps; ++tap) {
    __builtin_memcpy(padded_weights + tap * kLanes, weights + tap * all.n, static_cast<size_t>(count) * sizeof(float));
  }
  if (bias != nullptr) __builtin_memcpy(padded_bias, bias, static_cast<size_t>(count) * sizeof(float));
  for (int64_t row = 0; row < all.rows; ++row) {
    for (int64_t tap = 0; tap < all.taps; ++tap) {
      __builtin_memcpy(padded_x + tap * kLanes, x + row * all.ldx + tap * all.tap_x, static_cast<size_t>(count) * sizeof(X));
    }
    sixteen<1>(all, padded_x, 0, kLanes, padded_weights, kLanes, bias != nullptr ? padded_bias : nullptr, padded_y, 0);
    __builtin_memcpy(y + row * all.ldy, padded_y, static_cast<size_t>(count) * sizeof(Y));
  }
}

template <typename X, typename Y>
void run_rows(const DepthwiseRows* all) {
  const auto* x = static_cast<const X*>(all->x);
  auto* y = static_cast<Y*>(all->y);
  const int64_t whole = all->n / kLanes * kLanes;
  int64_t row = 0;
  for (; row + kRowsAtOnce <= all->rows; row += kRowsAtOnce) {
    for (int64_t c = 0; c < whole; c += kLanes) {
      sixteen<kRowsAtOnce>(*all, x + row * all->ldx + c, all->ldx, all->tap_x, all->weights + c, all->n,
                           all->bias != nullptr ? all->bias + c : nullptr, y + row * all->ldy + c, all->ldy);
    }
  }
  for (; row < all->rows; ++row) {
    for (int64_t c = 0; c < whole; c += kLanes) {
      sixteen<1>(*all, x + row * all->ldx + c, all->ldx, all->tap_x, all->weights + c, all->n,
                 all->bias != nullptr ? all->bias + c : nullptr, y + row * all->ldy + c, all->ldy);
    }
  }
  if (whole < all->n) {
    last_channels(*all, x + whole, all->n - whole, all->weights + whole, all->bias != nullptr ? all->bias + whole : nullptr,
                  y + whole);
  }
}

using DepthwiseFn = void (*)(const DepthwiseRows*);

DepthwiseFn depthwise_steps(const DepthwiseConfig& config) {
  const bool x_is_f32 = config.x_type == OMNI_DTYPE_F32, y_is_f32 = config.y_type == OMNI_DTYPE_F32;
  if (x_is_f32) return y_is_f32 ? &run_rows<float, float> : &run_rows<float, uint16_t>;
  return y_is_f32 ? &run_rows<uint16_t, float> : &run_rows<uint16_t, uint16_t>;
}

}  // namespace
}  // namespace okl
