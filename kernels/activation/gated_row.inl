// SPDX-License-Identifier: Apache-2.0
// f(gate) * up of one row, for leaf files.
#pragma once

#include "kernels/activation/gated_kernel.h"
#include "kernels/activation/steps.inl"

namespace okl {
namespace {

// Function::of(gate) is f of sixteen lanes.
template <typename Function>
struct Gated {
  // 32 elements. Where all of them are bf16 the order inside does not matter, and even and odd ones are cheaper.
  OMNI_LANE_FN static void step(const uint16_t* gate, const uint16_t* up, uint16_t* y) {
    F32 gate_even, gate_odd, up_even, up_odd;
    load_bf16_split(gate, &gate_even, &gate_odd);
    load_bf16_split(up, &up_even, &up_odd);
    store_bf16_split(y, Function::of(gate_even) * up_even, Function::of(gate_odd) * up_odd);
  }
  template <typename X, typename Y>
  OMNI_LANE_FN static void step(const X* gate, const X* up, Y* y) {
    for (int i = 0; i < 2; ++i) {
      store_element(y + i * kLanes, Function::of(load_element(gate + i * kLanes)) * load_element(up + i * kLanes));
    }
  }

  template <typename X, typename Y>
  [[gnu::noinline]] static void steps(const X* gate, const X* up, Y* y, int64_t n) {
    for (int64_t i = 0; i < n; i += kStep) step(gate + i, up + i, y + i);
  }

  template <typename X, typename Y>
  struct Rows {
    static void run(const GatedRow* row) {
      const auto* gate = static_cast<const X*>(row->gate);
      const auto* up = static_cast<const X*>(row->up);
      auto* y = static_cast<Y*>(row->y);
      const int64_t whole = row->n / kStep * kStep, rest = row->n - whole;
      steps(gate, up, y, whole);
      if (rest == 0) return;
      const LastStep<X> last_gate(gate + whole, rest), last_up(up + whole, rest);
      Y last[kStep];
      steps(last_gate.v, last_up.v, last, kStep);
      __builtin_memcpy(y + whole, last, static_cast<size_t>(rest) * sizeof(Y));
    }
  };

  static GatedRowFn row_for(uint16_t x_type, uint16_t y_type) { return rows_for<Rows>(x_type, y_type); }
};

}  // namespace
}  // namespace okl
