// SPDX-License-Identifier: Apache-2.0
// Element-wise rows 32 elements at a time, for leaf files: loads, stores and copies of what is left at the end of a row.
#pragma once

#include <cstddef>

#include "kernels/activation/lanes.inl"
#include "omni/layout.h"

namespace okl {
namespace {

constexpr int64_t kStep = 2 * kLanes;

OMNI_LANE_FN F32 load_element(const uint16_t* p) { return load_bf16(p); }
OMNI_LANE_FN F32 load_element(const float* p) { return load(p); }
OMNI_LANE_FN void store_element(uint16_t* p, F32 x) { store_bf16(p, x); }
OMNI_LANE_FN void store_element(float* p, F32 x) { store(p, canonical(x)); }

// The last elements of an operand, fewer than a step, with zeros behind them.
template <typename Element>
struct LastStep {
  Element v[kStep] = {};

  OMNI_LANE_FN LastStep(const Element* from, int64_t count) {
    __builtin_memcpy(v, from, static_cast<size_t>(count) * sizeof(Element));
  }
};

// The row function for the two types, each `Rows<X, Y>::run`.
template <template <typename X, typename Y> typename Rows>
auto rows_for(uint16_t x_type, uint16_t y_type) {
  if (x_type == OMNI_DTYPE_F32) return y_type == OMNI_DTYPE_F32 ? Rows<float, float>::run : Rows<float, uint16_t>::run;
  return y_type == OMNI_DTYPE_F32 ? Rows<uint16_t, float>::run : Rows<uint16_t, uint16_t>::run;
}

}  // namespace
}  // namespace okl
