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

// The tree of every accumulator: lane i+8 onto i, then +4, +2, +1.
template <int heads>
OMNI_LANE_FN void store_tree_sums(const F32 (&d)[kHeadsAtOnce], float* sums) {
#if defined(__AVX512F__)
  if constexpr (heads == 8) {
    // Two accumulators share the shuffles of each level: 17 instead of 32 for the eight.
    __m512 eights[4], fours[2];
    for (int i = 0; i < 4; ++i) {
      const __m512 a = d[2 * i].v, b = d[2 * i + 1].v;
      eights[i] = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xEE));
    }
    for (int i = 0; i < 2; ++i) {
      const __m512 ab = eights[2 * i], cd = eights[2 * i + 1];
      fours[i] = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xDD));
    }
    const __m512 twos = _mm512_add_ps(_mm512_shuffle_ps(fours[0], fours[1], 0x44), _mm512_shuffle_ps(fours[0], fours[1], 0xEE));
    const __m512 ones = _mm512_add_ps(twos, _mm512_permute_ps(twos, 0xB1));
    const __m512i order = _mm512_setr_epi32(0, 4, 8, 12, 2, 6, 10, 14, 0, 0, 0, 0, 0, 0, 0, 0);
    // A whole register, of which the next eight heads overwrite half: a load of sixteen is then served by one store.
    _mm512_storeu_ps(sums, _mm512_permutexvar_ps(order, ones));
    return;
  }
#endif
  for (int h = 0; h < heads; ++h) sums[h] = first(fold<1>(fold<2>(fold<4>(fold<8>(d[h])))));
}

OMNI_LANE_FN PairStep load_step(const uint16_t* x) {
  return PairStep(scrub_bf16(load_bits(x), splat_bits(kGateLeast << 16 | kGateLeast)));
}
template <int heads>
OMNI_LANE_FN void add_step(const uint16_t* x, const uint16_t* weights, F32 (&d)[kHeadsAtOnce]) {
  const PairStep step = load_step(x);
  for (int h = 0; h < heads; ++h) d[h] = step.add(weights + h * kGateStep, d[h]);
}

// `last` holds the inputs of a last, short step, or is nullptr; there is one step at least.
template <int heads>
[[gnu::noinline]] void sum_steps(const uint16_t* x, const uint16_t* weights, int64_t stride, int64_t whole, const uint16_t* last,
                                 float* sums) {
  const uint16_t* const end = x + whole * kGateStep;
  F32 d[kHeadsAtOnce];
  // The first step adds to zeros in a register. Clearing an array would become a REP STOS, which takes 30 cycles to start.
  const PairStep first_step = load_step(whole > 0 ? x : last);
  for (int h = 0; h < heads; ++h) d[h] = first_step.add(weights + h * kGateStep, splat(0.0F));
  if (whole > 0) {
    // Two steps a turn: the counting of the loop competes for the ports of the products.
    for (x += kGateStep, weights += stride; end - x >= 2 * kGateStep; x += 2 * kGateStep, weights += 2 * stride) {
      add_step<heads>(x, weights, d);
      add_step<heads>(x + kGateStep, weights + stride, d);
    }
    if (x != end) {
      add_step<heads>(x, weights, d);
      weights += stride;
    }
    if (last != nullptr) add_step<heads>(last, weights, d);
  }
  store_tree_sums<heads>(d, sums);
}

template <int heads>
OMNI_LANE_FN void sum_heads(const HeadgateRow* row, const uint16_t* weights, int64_t stride, float* sums) {
  const auto* x = static_cast<const uint16_t*>(row->x);
  const int64_t whole = row->k / kGateStep, rest = row->k % kGateStep;
  if (rest == 0) {
    sum_steps<heads>(x, weights, stride, whole, nullptr, sums);
    return;
  }
  uint16_t last[kGateStep] = {};
  __builtin_memcpy(last, x + whole * kGateStep, static_cast<size_t>(rest) * sizeof *x);
  sum_steps<heads>(x, weights, stride, whole, last, sums);
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
    store(sums + block, c);
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

// Lanes beyond the heads hold anything; they lie in the room behind the gates.
template <void (*sum)(const HeadgateRow*, float*), uint16_t activation>
void gates(const HeadgateRow* row) {
  sum(row, row->gates);
  for (int64_t h = 0; h < row->heads; h += kLanes) {
    F32 gate = load(row->gates + h);
    if (row->bias != nullptr) {
      const int64_t count = row->heads - h < kLanes ? row->heads - h : kLanes;
      float bias[kLanes] = {};
      __builtin_memcpy(bias, row->bias + h, static_cast<size_t>(count) * sizeof(float));
      gate = gate + load(bias);
    }
    store(row->gates + h, canonical(activated<activation>(gate)));
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
