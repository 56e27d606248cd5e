// SPDX-License-Identifier: Apache-2.0
// Rows 64 elements at a time and the sum of 64 lanes, for the leaf files of the norms.
//
// Elements are taken as four vectors, either in order or split, where a vector holds the even or the odd ones of 32 (one
// instruction less to widen bf16). Either way element i stays in lane i mod 64 of the contract, and only the tree has to know where
// that lane lies.
#pragma once

#include <cstddef>

#include "kernels/activation/lanes.inl"

namespace okl {
namespace {

constexpr int64_t kChunk = 64;

struct Vectors {
  F32 v[4];
};

enum class Order { kInOrder, kSplit };

template <Order order>
OMNI_LANE_FN Vectors load64(const uint16_t* p) {
  Vectors x;
  if constexpr (order == Order::kSplit) {
    load_bf16_split(p, &x.v[0], &x.v[1]);
    load_bf16_split(p + 2 * kLanes, &x.v[2], &x.v[3]);
  } else {
    for (int i = 0; i < 4; ++i) x.v[i] = load_bf16(p + i * kLanes);
  }
  return x;
}
template <Order order>
OMNI_LANE_FN Vectors load64(const float* p) {
  static_assert(order == Order::kInOrder);
  Vectors x;
  for (int i = 0; i < 4; ++i) x.v[i] = load(p + i * kLanes);
  return x;
}
template <Order order>
OMNI_LANE_FN void store64(uint16_t* p, const Vectors& x) {
  if constexpr (order == Order::kSplit) {
    store_bf16_split(p, x.v[0], x.v[1]);
    store_bf16_split(p + 2 * kLanes, x.v[2], x.v[3]);
  } else {
    for (int i = 0; i < 4; ++i) store_bf16(p + i * kLanes, x.v[i]);
  }
}
template <Order order>
OMNI_LANE_FN void store64(float* p, const Vectors& x) {
  static_assert(order == Order::kInOrder);
  for (int i = 0; i < 4; ++i) store(p + i * kLanes, canonical(x.v[i]));
}
template <Order order>
OMNI_LANE_FN void store64(int8_t* p, const Vectors& x) {
  if constexpr (order == Order::kSplit) {
    store_s8_split(p, x.v[0], x.v[1]);
    store_s8_split(p + 2 * kLanes, x.v[2], x.v[3]);
  } else {
    for (int i = 0; i < 4; ++i) store_s8(p + i * kLanes, x.v[i]);
  }
}

// The last elements of an operand, fewer than 64, with zeros behind them.
template <typename Element>
struct LastChunk {
  Element v[kChunk] = {};

  OMNI_LANE_FN LastChunk(const Element* from, int64_t count) {
    __builtin_memcpy(v, from, static_cast<size_t>(count) * sizeof(Element));
  }
  OMNI_LANE_FN void copy_to(Element* to, int64_t count) const {
    __builtin_memcpy(to, v, static_cast<size_t>(count) * sizeof(Element));
  }
};

// Lane i+32 onto i, then +16, +8, +4, +2, +1.
template <Order order>
OMNI_LANE_FN float tree_sum(const Vectors& lanes) {
  if constexpr (order == Order::kSplit) {
    F32 even = lanes.v[0] + lanes.v[2], odd = lanes.v[1] + lanes.v[3];
    even = fold<1>(fold<2>(fold<4>(fold<8>(even))));
    odd = fold<1>(fold<2>(fold<4>(fold<8>(odd))));
    return first(even) + first(odd);
  } else {
    const F32 sum = (lanes.v[0] + lanes.v[2]) + (lanes.v[1] + lanes.v[3]);
    return first(fold<1>(fold<2>(fold<4>(fold<8>(sum)))));
  }
}

}  // namespace
}  // namespace okl
