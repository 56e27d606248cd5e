// SPDX-License-Identifier: Apache-2.0
// RMSNorm of one row, for leaf files.
#pragma once

#include "kernels/rmsnorm/chunks.inl"
#include "kernels/rmsnorm/rmsnorm_kernel.h"

namespace okl {
namespace {

// A missing operand: no residual stream, no weight.
struct Nothing {};

template <typename... Elements>
constexpr Order order_of() {
  const bool wide = ((__is_same(Elements, float)) || ...);
  return wide ? Order::kInOrder : Order::kSplit;
}

// --- the sum of squares
// -----------------------------------------------------------------------------------------------------------

template <Order order, typename X>
OMNI_LANE_FN void add_squares(Vectors& lanes, const X* x) {
  const Vectors h = load64<order>(x);
  for (int i = 0; i < 4; ++i) lanes.v[i] = fma(h.v[i], h.v[i], lanes.v[i]);
}

// Stores h and gives what was stored.
template <Order order>
OMNI_LANE_FN void store_and_round(uint16_t* p, Vectors& h) {
  if constexpr (order == Order::kSplit) {
    for (int i = 0; i < 4; i += 2) {
      const U32 stored = pack_bf16(h.v[i], h.v[i + 1]);
      store_bits(p + i * kLanes, stored);
      split_bf16(stored, &h.v[i], &h.v[i + 1]);
    }
  } else {
    for (int i = 0; i < 4; ++i) h.v[i] = round_to_bf16(h.v[i]);
    store64<order>(p, h);
  }
}
template <Order order>
OMNI_LANE_FN void store_and_round(float* p, Vectors& h) {
  store64<order>(p, h);
}

template <Order order, typename X, typename H>
OMNI_LANE_FN void add_residual_squares(Vectors& lanes, const X* x, H* residual) {
  const Vectors a = load64<order>(x);
  Vectors h = load64<order>(static_cast<const H*>(residual));
  for (int i = 0; i < 4; ++i) h.v[i] = h.v[i] + a.v[i];
  store_and_round<order>(residual, h);
  for (int i = 0; i < 4; ++i) lanes.v[i] = fma(h.v[i], h.v[i], lanes.v[i]);
}

template <typename X, typename H>
void measure(RmsnormRow* row) {
  constexpr Order order = order_of<X, H>();
  const auto* x = static_cast<const X*>(row->x);
  const int64_t n = row->n, whole = n / kChunk * kChunk;
  Vectors lanes = {{splat(0), splat(0), splat(0), splat(0)}};
  if constexpr (__is_same(H, Nothing)) {
    for (int64_t i = 0; i < whole; i += kChunk) add_squares<order>(lanes, x + i);
    if (whole < n) add_squares<order>(lanes, LastChunk<X>(x + whole, n - whole).v);
  } else {
    auto* residual = static_cast<H*>(row->residual);
    for (int64_t i = 0; i < whole; i += kChunk) add_residual_squares<order>(lanes, x + i, residual + i);
    if (whole < n) {
      LastChunk<H> last(residual + whole, n - whole);
      add_residual_squares<order>(lanes, LastChunk<X>(x + whole, n - whole).v, last.v);
      last.copy_to(residual + whole, n - whole);
    }
  }
  const float mean = tree_sum<order>(lanes) / static_cast<float>(n);
  row->r = 1.0F / __builtin_sqrtf(mean + row->eps);
}

// --- the scaled row
// ---------------------------------------------------------------------------------------------------------------

template <Order order, typename H, typename W>
OMNI_LANE_FN Vectors scaled(const H* h, const W* weight, F32 r, bool two_roundings) {
  Vectors y = load64<order>(h);
  for (int i = 0; i < 4; ++i) y.v[i] = y.v[i] * r;
  if (two_roundings) {
    for (int i = 0; i < 4; ++i) y.v[i] = round_to_bf16(y.v[i]);
  }
  if constexpr (!__is_same(W, Nothing)) {
    const Vectors w = load64<order>(weight);
    for (int i = 0; i < 4; ++i) y.v[i] = y.v[i] * w.v[i];
  }
  return y;
}

// The operands of some chunks: whole ones of the row, or copies of its last one.
template <typename H, typename W>
struct Chunks {
  const H* h;
  const W* weight;
  int64_t n;  // a multiple of kChunk
  F32 r;
  bool two_roundings, codes_from_bf16;  // not template parameters: they would double the code to save a branch in 64 elements

  OMNI_LANE_FN const W* weight_at(int64_t i) const {
    if constexpr (__is_same(W, Nothing)) return weight;
    return weight + i;
  }
};

// visit(chunks, index of the first element, elements that count) for the whole chunks and, through copies, for the last one.
template <typename H, typename W, typename Visit>
OMNI_LANE_FN void for_chunks(const RmsnormRow* row, const Visit& visit) {
  const auto* h = static_cast<const H*>(row->residual != nullptr ? row->residual : row->x);
  const auto* weight = static_cast<const W*>(row->weight);
  const int64_t n = row->n, whole = n / kChunk * kChunk;
  const F32 r = splat(row->r);
  const bool two_roundings = row->config->rounding == OMNI_RMSNORM_TWO_ROUNDINGS;
  const bool from_bf16 = row->config->code_source == OMNI_DTYPE_BF16;
  visit(Chunks<H, W>{h, weight, whole, r, two_roundings, from_bf16}, int64_t{0}, whole);
  if (whole == n) return;
  const LastChunk<H> last(h + whole, n - whole);
  if constexpr (__is_same(W, Nothing)) {
    visit(Chunks<H, W>{last.v, weight, kChunk, r, two_roundings, from_bf16}, whole, n - whole);
  } else {
    const LastChunk<W> last_weight(weight + whole, n - whole);
    visit(Chunks<H, W>{last.v, last_weight.v, kChunk, r, two_roundings, from_bf16}, whole, n - whole);
  }
}

template <typename H, typename W, typename Y>
[[gnu::noinline]] void scale_chunks(const Chunks<H, W>& chunks, Y* y) {
  constexpr Order order = order_of<H, W, Y>();
  const Chunks<H, W> local = chunks;  // which a store to y cannot change
  for (int64_t i = 0; i < local.n; i += kChunk) {
    store64<order>(y + i, scaled<order>(local.h + i, local.weight_at(i), local.r, local.two_roundings));
  }
}

template <typename H, typename W, typename Y>
void scale(const RmsnormRow* row) {
  auto* y = static_cast<Y*>(row->y);
  for_chunks<H, W>(row, [&](const Chunks<H, W>& chunks, int64_t at, int64_t count) {
    if (count == chunks.n) {
      scale_chunks<H, W>(chunks, y + at);
      return;
    }
    Y last[kChunk];
    scale_chunks<H, W>(chunks, last);
    __builtin_memcpy(y + at, last, static_cast<size_t>(count) * sizeof(Y));
  });
}

}  // namespace
}  // namespace okl
