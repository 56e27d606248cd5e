// SPDX-License-Identifier: Apache-2.0
// A function of every element of one row, for leaf files.
#pragma once

#include "kernels/activation/activation_kernel.h"
#include "kernels/activation/expm1.inl"
#include "kernels/activation/gelu.inl"
#include "kernels/activation/sigmoid.inl"
#include "kernels/activation/sine.inl"
#include "kernels/activation/steps.inl"
#include "omni/activation.h"

namespace okl {
namespace {

struct Relu {
  OMNI_LANE_FN static F32 of(F32 x) { return select(not_less_equal(x, splat(0.0F)), x, splat(0.0F)); }  // a NaN stays
};
struct Elu {
  OMNI_LANE_FN static F32 of(F32 x) { return elu_lanes(x); }
};
struct Tanh {
  OMNI_LANE_FN static F32 of(F32 x) { return tanh_lanes(x); }
};
struct Exp {
  OMNI_LANE_FN static F32 of(F32 x) { return exp_lanes(x); }
};

// Function::of(x) is the function of sixteen lanes.
template <typename Function>
struct Activation {
  // 32 elements. Where all of them are bf16 the order inside does not matter, and even and odd ones are cheaper.
  OMNI_LANE_FN static void step(const uint16_t* x, uint16_t* y) {
    F32 even, odd;
    load_bf16_split(x, &even, &odd);
    store_bf16_split(y, Function::of(even), Function::of(odd));
  }
  template <typename X, typename Y>
  OMNI_LANE_FN static void step(const X* x, Y* y) {
    for (int i = 0; i < 2; ++i) store_element(y + i * kLanes, Function::of(load_element(x + i * kLanes)));
  }

  template <typename X, typename Y>
  [[gnu::noinline]] static void steps(const X* x, Y* y, int64_t n) {
    for (int64_t i = 0; i < n; i += kStep) step(x + i, y + i);
  }

  template <typename X, typename Y>
  struct Rows {
    static void run(const ActivationRow* row) {
      const auto* x = static_cast<const X*>(row->x);
      auto* y = static_cast<Y*>(row->y);
      const int64_t whole = row->n / kStep * kStep, rest = row->n - whole;
      steps(x, y, whole);
      if (rest == 0) return;
      Y last[kStep];
      steps(LastStep<X>(x + whole, rest).v, last, kStep);
      __builtin_memcpy(y + whole, last, static_cast<size_t>(rest) * sizeof(Y));
    }
  };
};

struct Snake {
  template <typename X, typename Y>
  [[gnu::noinline]] static void steps(const X* x, const float* a, const float* b, Y* y, int64_t n) {
    for (int64_t i = 0; i < n; i += kLanes) {
      const F32 value = load_element(x + i), sine = unsigned_sin_lanes(value * load(a + i));
      store_element(y + i, fma(sine * sine, load(b + i), value));
    }
  }

  template <typename X, typename Y>
  struct Rows {
    static void run(const ActivationRow* row) {
      const auto* x = static_cast<const X*>(row->x);
      auto* y = static_cast<Y*>(row->y);
      const int64_t whole = row->n / kStep * kStep, rest = row->n - whole;
      steps(x, row->a, row->b, y, whole);
      if (rest == 0) return;
      const LastStep<float> a(row->a + whole, rest), b(row->b + whole, rest);
      Y last[kStep];
      steps(LastStep<X>(x + whole, rest).v, a.v, b.v, last, kStep);
      __builtin_memcpy(y + whole, last, static_cast<size_t>(rest) * sizeof(Y));
    }
  };
};

ActivationRowFn activation_row_for(uint16_t function, uint16_t x_type, uint16_t y_type) {
  switch (function) {
    case OMNI_ACTIVATION_RELU:
      return rows_for<Activation<Relu>::Rows>(x_type, y_type);
    case OMNI_ACTIVATION_ELU:
      return rows_for<Activation<Elu>::Rows>(x_type, y_type);
    case OMNI_ACTIVATION_GELU:
      return rows_for<Activation<Gelu>::Rows>(x_type, y_type);
    case OMNI_ACTIVATION_SILU:
      return rows_for<Activation<Silu>::Rows>(x_type, y_type);
    case OMNI_ACTIVATION_SIGMOID:
      return rows_for<Activation<Sigmoid>::Rows>(x_type, y_type);
    case OMNI_ACTIVATION_TANH:
      return rows_for<Activation<Tanh>::Rows>(x_type, y_type);
    case OMNI_ACTIVATION_EXP:
      return rows_for<Activation<Exp>::Rows>(x_type, y_type);
    default:
      return rows_for<Snake::Rows>(x_type, y_type);
  }
}

}  // namespace
}  // namespace okl
