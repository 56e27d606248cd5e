// SPDX-License-Identifier: Apache-2.0
// GEGLU of one row, for leaf files.
#pragma once

#include "kernels/activation/geglu_kernel.h"
#include "kernels/activation/gelu.inl"
#include "omni/layout.h"

namespace okl {
namespace {

constexpr int64_t kGegluStep = 2 * kLanes;

OMNI_LANE_FN F32 geglu_lanes(F32 gate, F32 up) { return gelu_lanes(gate) * up; }

// 32 elements. Where all of them are bf16 the order inside does not matter, and even and odd ones are cheaper.
OMNI_LANE_FN void geglu_step(const uint16_t* gate, const uint16_t* up, uint16_t* y) {
  F32 gate_even, gate_odd, up_even, up_odd;
  load_bf16_split(gate, &gate_even, &gate_odd);
  load_bf16_split(up, &up_even, &up_odd);
  store_bf16_split(y, geglu_lanes(gate_even, up_even), geglu_lanes(gate_odd, up_odd));
}
OMNI_LANE_FN F32 load_element(const uint16_t* p) { return load_bf16(p); }
OMNI_LANE_FN F32 load_element(const float* p) { return load(p); }
OMNI_LANE_FN void store_element(uint16_t* p, F32 x) { store_bf16(p, x); }
OMNI_LANE_FN void store_element(float* p, F32 x) { store(p, canonical(x)); }
template <typename X, typename Y>
OMNI_LANE_FN void geglu_step(const X* gate, const X* up, Y* y) {
  for (int i = 0; i < 2; ++i) {
    store_element(y + i * kLanes, geglu_lanes(load_element(gate + i * kLanes), load_element(up + i * kLanes)));
  }
}

template <typename X, typename Y>
[[gnu::noinline]] void geglu_steps(const X* gate, const X* up, Y* y, int64_t n) {
  for (int64_t i = 0; i < n; i += kGegluStep) geglu_step(gate + i, up + i, y + i);
}

template <typename X, typename Y>
void geglu_row(const GegluRow* row) {
  const auto* gate = static_cast<const X*>(row->gate);
  const auto* up = static_cast<const X*>(row->up);
  auto* y = static_cast<Y*>(row->y);
  const int64_t whole = row->n / kGegluStep * kGegluStep, rest = row->n - whole;
  geglu_steps(gate, up, y, whole);
  if (rest == 0) return;
  X last_gate[kGegluStep] = {}, last_up[kGegluStep] = {};
  Y last[kGegluStep];
  __builtin_memcpy(last_gate, gate + whole, static_cast<size_t>(rest) * sizeof(X));
  __builtin_memcpy(last_up, up + whole, static_cast<size_t>(rest) * sizeof(X));
  geglu_steps(last_gate, last_up, last, kGegluStep);
  __builtin_memcpy(y + whole, last, static_cast<size_t>(rest) * sizeof(Y));
}

GegluRowFn geglu_row_for(uint16_t x_type, uint16_t y_type) {
  if (x_type == OMNI_DTYPE_F32) return y_type == OMNI_DTYPE_F32 ? geglu_row<float, float> : geglu_row<float, uint16_t>;
  return y_type == OMNI_DTYPE_F32 ? geglu_row<uint16_t, float> : geglu_row<uint16_t, uint16_t>;
}

}  // namespace
}  // namespace okl
