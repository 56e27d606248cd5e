// SPDX-License-Identifier: Apache-2.0
// The gates of one row and their products, for leaf files.
#pragma once

#include "kernels/activation/sigmoid.inl"
#include "kernels/headgate/headgate_kernel.h"

namespace okl {
namespace {

// --- sums
// -------------------------------------------------------------------------------------------------------------------------

// One step of pairs: the odd element first, as VDPBF16PS has it.
#if defined(__AVX512BF16__)
struct PairStep {
  U32 x;
  OMNI_LANE_FN explicit PairStep(U32 pairs) : x(pairs) {}
  OMNI_LANE_FN F32 add(const uint16_t* weights, F32 d) const {
    return {_mm512_dpbf16_ps(d.v, (__m512bh)x.v, (__m512bh)load_bits(weights).v)};
  }
};
#else
struct PairStep {
  F32 even, odd;
  OMNI_LANE_FN explicit PairStep(U32 pairs) { split_bf16(pairs, &even, &odd); }
  OMNI_LANE_FN F32 add(const uint16_t* weights, F32 d) const {
    F32 w_even, w_odd;
    load_bf16_split(weights, &w_even, &w_odd);
    return fma(even, w_even, fma(odd, w_odd, d));
  }
};
#endif

// Accumulators that fit the registers: an F32 is two of sixteen with AVX2, one of 32 with AVX-512.
#if defined(__AVX512F__)
constexpr int kHeadsAtOnce = 8;
#else
constexpr int kHeadsAtOnce = 4;
#endif

template <int heads>
OMNI_LANE_FN void add_steps(const uint16_t* x, const uint16_t* weights, int64_t steps, int64_t stride, F32 (&d)[kHeadsAtOnce]) {
  const U32 least = splat_bits(kGateLeast << 16 | kGateLeast);
  for (int64_t s = 0; s < steps; ++s) {
    const PairStep step(scrub_bf16(load_bits(x + s * kGateStep), least));
    for (int h = 0; h < heads; ++h) d[h] = step.add(weights + s * stride + h * kGateStep, d[h]);
  }
}

template <int heads>
[[gnu::noinline]] void sum_heads(const HeadgateRow* row, const uint16_t* weights, int64_t stride, float* sums) {
  const auto* x = static_cast<const uint16_t*>(row->x);
  const int64_t whole = row->k / kGateStep, rest = row->k % kGateStep;
  F32 d[kHeadsAtOnce];
  for (int h = 0; h < heads; ++h) d[h] = splat(0.0F);
  add_steps<heads>(x, weights, whole, stride, d);
  if (rest != 0) {
    uint16_t last[kGateStep] = {};
    __builtin_memcpy(last, x + whole * kGateStep, static_cast<size_t>(rest) * sizeof *x);
    add_steps<heads>(last, weights + whole * stride, 1, stride, d);
  }
  for (int h = 0; h < heads; ++h) sums[h] = first(fold<1>(fold<2>(fold<4>(fold<8>(d[h])))));
}

OMNI_LANE_FN void sum_some_heads(const HeadgateRow* row, const uint16_t* weights, int64_t stride, int64_t heads, float* sums) {
  if (heads == kHeadsAtOnce) {
    sum_heads<kHeadsAtOnce>(row, weights, stride, sums);
    return;
  }
  int64_t done = 0;
  if (kHeadsAtOnce > 4 && heads >= 4) {
    sum_heads<4>(row, weights, stride, sums);
    done = 4;
  }
  for (; done < heads; ++done) sum_heads<1>(row, weights + done * kGateStep, stride, sums + done);
}

void sum_pairs(const HeadgateRow* row, float* sums) {
  const auto* weights = static_cast<const uint16_t*>(row->weights);
  const int64_t steps = (row->k + kGateStep - 1) / kGateStep;
  for (int64_t block = 0; block < row->heads; block += kGateBlock) {
    const int64_t heads = row->heads - block < kGateBlock ? row->heads - block : kGateBlock, stride = heads * kGateStep;
    for (int64_t h = 0; h < heads; h += kHeadsAtOnce) {
      const int64_t some = heads - h < kHeadsAtOnce ? heads - h : kHeadsAtOnce;
      sum_some_heads(row, weights + h * kGateStep, stride, some, sums + block + h);
    }
    weights += steps * stride;
  }
}

OMNI_LANE_FN F32 load_weights(const uint16_t* p) { return load_bf16(p); }
OMNI_LANE_FN F32 load_weights(const float* p) { return load(p); }
OMNI_LANE_FN float widen(uint16_t x) { return __builtin_bit_cast(float, static_cast<uint32_t>(x) << 16); }
OMNI_LANE_FN float widen(float x) { return x; }

template <typename X, typename W>
void sum_chain(const HeadgateRow* row, float* sums) {
  const auto* x = static_cast<const X*>(row->x);
  const auto* weights = static_cast<const W*>(row->weights);
  for (int64_t block = 0; block < row->heads; block += kGateLanes) {
    F32 c = splat(0.0F);
    for (int64_t k = 0; k < row->k; ++k) c = fma(splat(widen(x[k])), load_weights(weights + k * kGateLanes), c);
    float lanes[kGateLanes];
    store(lanes, c);
    const int64_t heads = row->heads - block < kGateLanes ? row->heads - block : kGateLanes;
    __builtin_memcpy(sums + block, lanes, static_cast<size_t>(heads) * sizeof(float));
    weights += row->k * kGateLanes;
  }
}

// --- gates
// ------------------------------------------------------------------------------------------------------------------------

template <uint16_t activation>
OMNI_LANE_FN F32 activated(F32 c) {
  if constexpr (activation == OMNI_HEADGATE_SIGMOID) return sigmoid_lanes(c);
  if constexpr (activation == OMNI_HEADGATE_SILU) return silu_lanes(c);
  return c;
}

template <void (*sum)(const HeadgateRow*, float*), uint16_t activation>
void gates(const HeadgateRow* row) {
  sum(row, row->gates);
  for (int64_t h = 0; h < row->heads; h += kLanes) {
    const int64_t count = row->heads - h < kLanes ? row->heads - h : kLanes;
    const auto bytes = static_cast<size_t>(count) * sizeof(float);
    float c[kLanes] = {}, bias[kLanes] = {};
    __builtin_memcpy(c, row->gates + h, bytes);
    F32 gate = load(c);
    if (row->bias != nullptr) {
      __builtin_memcpy(bias, row->bias + h, bytes);
      gate = gate + load(bias);
    }
    store(c, canonical(activated<activation>(gate)));
    __builtin_memcpy(row->gates + h, c, bytes);
  }
}

// --- products
// ---------------------------------------------------------------------------------------------------------------------

OMNI_LANE_FN void multiply_step(const uint16_t* values, F32 gate, uint16_t* out) {
  F32 even, odd;
  load_bf16_split(values, &even, &odd);
  store_bf16_split(out, even * gate, odd * gate);
}
OMNI_LANE_FN void multiply_step(const float* values, F32 gate, float* out) {
  store(out, canonical(load(values) * gate));
  store(out + kLanes, canonical(load(values + kLanes) * gate));
}

template <typename Value>
void multiply(const HeadgateRow* row) {
  constexpr int64_t kStep = 2 * kLanes;
  const int64_t whole = row->head_dim / kStep * kStep, rest = row->head_dim - whole;
  for (int64_t h = 0; h < row->heads; ++h) {
    const auto* values = static_cast<const Value*>(row->values) + h * row->head_dim;
    auto* out = static_cast<Value*>(row->out) + h * row->head_dim;
    const F32 gate = splat(row->gates[h]);
    for (int64_t i = 0; i < whole; i += kStep) multiply_step(values + i, gate, out + i);
    if (rest != 0) {
      Value last[kStep] = {};
      __builtin_memcpy(last, values + whole, static_cast<size_t>(rest) * sizeof(Value));
      multiply_step(last, gate, last);
      __builtin_memcpy(out + whole, last, static_cast<size_t>(rest) * sizeof(Value));
    }
  }
}

// --- choosing
// ---------------------------------------------------------------------------------------------------------------------

template <void (*sum)(const HeadgateRow*, float*)>
auto gates_of(uint16_t activation) {
  if (activation == OMNI_HEADGATE_SIGMOID) return gates<sum, OMNI_HEADGATE_SIGMOID>;
  return activation == OMNI_HEADGATE_SILU ? gates<sum, OMNI_HEADGATE_SILU> : gates<sum, OMNI_HEADGATE_LINEAR>;
}

HeadgateSteps headgate_steps(const HeadgateConfig& config) {
  HeadgateSteps steps = {};
  if (config.pairs()) {
    steps.gates = gates_of<sum_pairs>(config.activation);
  } else if (config.x_type == OMNI_DTYPE_BF16) {
    steps.gates = gates_of<sum_chain<uint16_t, float>>(config.activation);
  } else if (config.weight_type == OMNI_DTYPE_BF16) {
    steps.gates = gates_of<sum_chain<float, uint16_t>>(config.activation);
  } else {
    steps.gates = gates_of<sum_chain<float, float>>(config.activation);
  }
  if (config.value_type == OMNI_DTYPE_F32) steps.multiply = multiply<float>;
  if (config.value_type == OMNI_DTYPE_BF16) steps.multiply = multiply<uint16_t>;
  return steps;
}

}  // namespace
}  // namespace okl
