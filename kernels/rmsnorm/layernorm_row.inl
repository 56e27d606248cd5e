// SPDX-License-Identifier: Apache-2.0
// LayerNorm of one row, for leaf files. Elements are taken in order, so that lane i mod 64 of the contract is lane i mod 64 here.
#pragma once

#include "kernels/rmsnorm/chunks.inl"
#include "kernels/rmsnorm/layernorm_kernel.h"
#include "omni/layout.h"

namespace okl {
namespace {

constexpr Order kOrder = Order::kInOrder;

// The last elements of x, fewer than 64, as fp32 with `fill` behind them.
template <typename X>
struct LastFloats {
  float v[kChunk];

  OMNI_LANE_FN LastFloats(const X* x, int64_t count, float fill) {
    const Vectors values = load64<kOrder>(LastChunk<X>(x, count).v);
    for (int i = 0; i < 4; ++i) store(v + i * kLanes, values.v[i]);
    for (int64_t i = count; i < kChunk; ++i) v[i] = fill;
  }
};

template <typename X>
OMNI_LANE_FN void add_values(Vectors& lanes, const X* x) {
  const Vectors values = load64<kOrder>(x);
  for (int i = 0; i < 4; ++i) lanes.v[i] = lanes.v[i] + values.v[i];
}

template <typename X>
OMNI_LANE_FN void add_deviations(Vectors& lanes, const X* x, F32 mean) {
  const Vectors values = load64<kOrder>(x);
  for (int i = 0; i < 4; ++i) {
    const F32 d = values.v[i] - mean;
    lanes.v[i] = fma(d, d, lanes.v[i]);
  }
}

template <typename X>
OMNI_LANE_FN float mean_of(const X* x, int64_t n) {
  const int64_t whole = n / kChunk * kChunk;
  Vectors lanes = {{splat(0), splat(0), splat(0), splat(0)}};
  for (int64_t i = 0; i < whole; i += kChunk) add_values(lanes, x + i);
  if (whole < n) add_values(lanes, LastChunk<X>(x + whole, n - whole).v);
  return tree_sum<kOrder>(lanes) / static_cast<float>(n);
}

// Behind the last element stands the mean, whose deviation is zero. A mean that is not finite makes a row of NaN either way.
template <typename X>
OMNI_LANE_FN float variance_of(const X* x, int64_t n, float mean) {
  const int64_t whole = n / kChunk * kChunk;
  Vectors lanes = {{splat(0), splat(0), splat(0), splat(0)}};
  for (int64_t i = 0; i < whole; i += kChunk) add_deviations(lanes, x + i, splat(mean));
  if (whole < n) add_deviations(lanes, LastFloats<X>(x + whole, n - whole, mean).v, splat(mean));
  return tree_sum<kOrder>(lanes) / static_cast<float>(n);
}

// The last of an operand that may be missing.
struct LastColumns {
  float v[kChunk] = {};
  bool there;

  OMNI_LANE_FN LastColumns(const float* from, int64_t whole, int64_t count) : there(from != nullptr) {
    if (there) __builtin_memcpy(v, from + whole, static_cast<size_t>(count) * sizeof(float));
  }
  OMNI_LANE_FN const float* data() const { return there ? v : nullptr; }
};

struct Normal {
  F32 mean, r;
};

// Whole chunks. Without a weight or a bias the product and the sum with 1 and 0 are exact.
template <typename X, typename Y>
[[gnu::noinline]] void normalise(const X* x, const float* weight, const float* bias, const Normal& normal, Y* y, int64_t n) {
  const Normal local = normal;  // which a store to y cannot change
  for (int64_t i = 0; i < n; i += kChunk) {
    Vectors values = load64<kOrder>(x + i);
    for (int j = 0; j < 4; ++j) {
      const F32 scaled = (values.v[j] - local.mean) * local.r;
      const F32 w = weight != nullptr ? load(weight + i + j * kLanes) : splat(1.0F);
      const F32 b = bias != nullptr ? load(bias + i + j * kLanes) : splat(0.0F);
      values.v[j] = fma(scaled, w, b);
    }
    store64<kOrder>(y + i, values);
  }
}

template <typename X, typename Y>
void layernorm_row(const LayernormRow* row) {
  const auto* x = static_cast<const X*>(row->x);
  auto* y = static_cast<Y*>(row->y);
  const int64_t n = row->n, whole = n / kChunk * kChunk, rest = n - whole;
  const float mean = mean_of(x, n);
  const Normal normal = {splat(mean), splat(1.0F / __builtin_sqrtf(variance_of(x, n, mean) + row->eps))};
  normalise(x, row->weight, row->bias, normal, y, whole);
  if (rest == 0) return;
  const LastChunk<X> last_x(x + whole, rest);
  const LastColumns weight(row->weight, whole, rest), bias(row->bias, whole, rest);
  Y last[kChunk];
  normalise(last_x.v, weight.data(), bias.data(), normal, last, kChunk);
  __builtin_memcpy(y + whole, last, static_cast<size_t>(rest) * sizeof(Y));
}

LayernormRowFn layernorm_row_for(uint16_t x_type, uint16_t y_type) {
  if (x_type == OMNI_DTYPE_F32) return y_type == OMNI_DTYPE_F32 ? layernorm_row<float, float> : layernorm_row<float, uint16_t>;
  return y_type == OMNI_DTYPE_F32 ? layernorm_row<uint16_t, float> : layernorm_row<uint16_t, uint16_t>;
}

}  // namespace
}  // namespace okl
