// SPDX-License-Identifier: Apache-2.0
// The rotation of one row's heads, for leaf files. Products and sums are rounded one by one: PyTorch's bits in fp32.
#pragma once

#include "kernels/activation/lanes.inl"
#include "kernels/rope/rope_kernel.h"

namespace okl {
namespace {

OMNI_LANE_FN F32 load_element(const uint16_t* p) { return load_bf16(p); }
OMNI_LANE_FN F32 load_element(const float* p) { return load(p); }
OMNI_LANE_FN void store_element(uint16_t* p, F32 x) { store_bf16(p, x); }
OMNI_LANE_FN void store_element(float* p, F32 x) { store(p, canonical(x)); }

template <typename Element>
OMNI_LANE_FN void rotate(Element* first, Element* second, const float* cos, const float* sin) {
  const F32 a = load_element(first), b = load_element(second), c = load(cos), s = load(sin);
  store_element(first, a * c - b * s);
  store_element(second, b * c + a * s);
}

// Fewer than sixteen pairs.
template <typename Element>
[[gnu::noinline]] void rotate_last(Element* first, Element* second, const float* cos, const float* sin, int64_t count) {
  Element a[kLanes] = {}, b[kLanes] = {};
  float c[kLanes] = {}, s[kLanes] = {};
  const auto bytes = static_cast<size_t>(count) * sizeof(Element), table_bytes = static_cast<size_t>(count) * sizeof(float);
  __builtin_memcpy(a, first, bytes);
  __builtin_memcpy(b, second, bytes);
  __builtin_memcpy(c, cos, table_bytes);
  __builtin_memcpy(s, sin, table_bytes);
  rotate(a, b, c, s);
  __builtin_memcpy(first, a, bytes);
  __builtin_memcpy(second, b, bytes);
}

template <typename Element>
void rope_row(const RopeRow* row) {
  const int64_t half = row->half, whole = half / kLanes * kLanes;
  for (int64_t head = 0; head < row->heads; ++head) {
    auto* x = static_cast<Element*>(row->x) + head * row->head_dim;
    for (int64_t j = 0; j < whole; j += kLanes) rotate(x + j, x + half + j, row->cos + j, row->sin + j);
    if (whole < half) rotate_last(x + whole, x + half + whole, row->cos + whole, row->sin + whole, half - whole);
  }
}

}  // namespace
}  // namespace okl
