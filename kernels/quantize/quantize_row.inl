// SPDX-License-Identifier: Apache-2.0
// Quantising one row, for leaf files.
//
//   amax = max(max|x|, 1e-7);  scale = amax / 127;  code = rint(x * (127 / amax)), ties to even
//
// |x| <= amax bounds the product by 127 and one rounding, so that codes are in -127..127. The maximum is taken over bits, where NaN
// and infinity are the largest: they cannot be missed.
#pragma once

#include "kernels/activation/lanes.inl"
#include "kernels/quantize/quantize.h"

namespace okl {
namespace {

constexpr uint32_t kInfinityBits = 0x7F800000;

struct RowScale {
  float scale, inverse;
  bool finite;
};

// From the largest |x|, as bits.
OMNI_LANE_FN RowScale row_scale(uint32_t most) {
  if (most >= kInfinityBits) return {__builtin_bit_cast(float, kNanBits), 0.0F, false};
  const float value = __builtin_bit_cast(float, most);
  const float amax = value > 1e-7F ? value : 1e-7F;
  return {amax / 127.0F, 127.0F / amax, true};
}

// The last elements of a row, fewer than 32, with zeros behind them.
template <typename Element>
struct RowTail {
  Element x[2 * kLanes] = {};

  OMNI_LANE_FN RowTail(const Element* from, int64_t count) {
    __builtin_memcpy(x, from, static_cast<size_t>(count) * sizeof(Element));
  }
};

OMNI_LANE_FN uint32_t largest_bits(const uint16_t* x, int64_t k) {
  const U32 magnitude = splat_bits(0x7FFF7FFF);
  U32 most = splat_bits(0), other = most;
  int64_t i = 0;
  for (; i + 4 * kLanes <= k; i += 4 * kLanes) {
    most = max_halves(most, load_bits(x + i) & magnitude);
    other = max_halves(other, load_bits(x + i + 2 * kLanes) & magnitude);
  }
  if (i + 2 * kLanes <= k) {
    most = max_halves(most, load_bits(x + i) & magnitude);
    i += 2 * kLanes;
  }
  const RowTail<uint16_t> tail(x + i, k - i);
  most = max_halves(max_halves(most, other), load_bits(tail.x) & magnitude);
  return largest(max(shift_left<16>(most), most & splat_bits(0xFFFF0000)));
}

OMNI_LANE_FN uint32_t largest_bits(const float* x, int64_t k) {
  const U32 magnitude = splat_bits(0x7FFFFFFF);
  U32 most = splat_bits(0), other = most;
  int64_t i = 0;
  for (; i + 2 * kLanes <= k; i += 2 * kLanes) {
    most = max(most, load_bits(x + i) & magnitude);
    other = max(other, load_bits(x + i + kLanes) & magnitude);
  }
  const RowTail<float> tail(x + i, k - i);
  most = max(most, load_bits(tail.x) & magnitude);
  other = max(other, load_bits(tail.x + kLanes) & magnitude);
  return largest(max(most, other));
}

OMNI_LANE_FN void store_codes(int8_t* codes, const uint16_t* x, F32 inverse) {
  F32 even, odd;
  load_bf16_split(x, &even, &odd);
  store_s8_split(codes, even * inverse, odd * inverse);
}
OMNI_LANE_FN void store_codes(int8_t* codes, const float* x, F32 inverse) {
  store_s8(codes, load(x) * inverse);
  store_s8(codes + kLanes, load(x + kLanes) * inverse);
}

template <typename Element>
void quantize_row(const QuantizeRow* row) {
  const auto* x = static_cast<const Element*>(row->x);
  const RowScale scale = row_scale(largest_bits(x, row->k));
  *row->scale = scale.scale;
  if (!scale.finite) {
    __builtin_memset(row->codes, 0, static_cast<size_t>(row->k));
    return;
  }
  const F32 inverse = splat(scale.inverse);
  int64_t i = 0;
  for (; i + 2 * kLanes <= row->k; i += 2 * kLanes) store_codes(row->codes + i, x + i, inverse);
  if (i < row->k) {
    const RowTail<Element> tail(x + i, row->k - i);
    int8_t codes[2 * kLanes];
    store_codes(codes, tail.x, inverse);
    __builtin_memcpy(row->codes + i, codes, static_cast<size_t>(row->k - i));
  }
}

}  // namespace
}  // namespace okl
