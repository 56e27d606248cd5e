// SPDX-License-Identifier: Apache-2.0
// lanes.inl in plain C++: the definition of what every lane function does. fmaf() rounds once with and without the instruction.
#pragma once

#include <cstdint>

#include "kernels/format/bf16.h"

namespace okl {
namespace {

struct F32 {
  float v[kLanes];
};
struct U32 {
  uint32_t v[kLanes];
};
struct Mask {
  bool v[kLanes];
};

template <typename Result, typename Function>
OMNI_LANE_FN Result each(const Function& function) {
  Result result;
  for (int i = 0; i < kLanes; ++i) result.v[i] = function(i);
  return result;
}

OMNI_LANE_FN F32 splat(float x) {
  return each<F32>([&](int) { return x; });
}
OMNI_LANE_FN U32 splat_bits(uint32_t x) {
  return each<U32>([&](int) { return x; });
}
OMNI_LANE_FN F32 load(const float* p) {
  return each<F32>([&](int i) { return p[i]; });
}
OMNI_LANE_FN void store(float* p, F32 x) {
  for (int i = 0; i < kLanes; ++i) p[i] = x.v[i];
}
OMNI_LANE_FN U32 load_bits(const void* p) {
  U32 result;
  __builtin_memcpy(&result, p, sizeof result);
  return result;
}

OMNI_LANE_FN U32 as_bits(F32 x) { return __builtin_bit_cast(U32, x); }
OMNI_LANE_FN F32 as_float(U32 x) { return __builtin_bit_cast(F32, x); }

OMNI_LANE_FN F32 operator+(F32 a, F32 b) {
  return each<F32>([&](int i) { return a.v[i] + b.v[i]; });
}
OMNI_LANE_FN F32 operator-(F32 a, F32 b) {
  return each<F32>([&](int i) { return a.v[i] - b.v[i]; });
}
OMNI_LANE_FN F32 operator*(F32 a, F32 b) {
  return each<F32>([&](int i) { return a.v[i] * b.v[i]; });
}
OMNI_LANE_FN F32 operator/(F32 a, F32 b) {
  return each<F32>([&](int i) { return a.v[i] / b.v[i]; });
}
OMNI_LANE_FN F32 fma(F32 a, F32 b, F32 c) {
  return each<F32>([&](int i) { return __builtin_fmaf(a.v[i], b.v[i], c.v[i]); });
}
OMNI_LANE_FN F32 max(F32 a, F32 b) {
  return each<F32>([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
OMNI_LANE_FN F32 min(F32 a, F32 b) {
  return each<F32>([&](int i) { return a.v[i] < b.v[i] ? a.v[i] : b.v[i]; });
}

OMNI_LANE_FN U32 operator&(U32 a, U32 b) {
  return each<U32>([&](int i) { return a.v[i] & b.v[i]; });
}
OMNI_LANE_FN U32 operator|(U32 a, U32 b) {
  return each<U32>([&](int i) { return a.v[i] | b.v[i]; });
}
OMNI_LANE_FN U32 operator^(U32 a, U32 b) {
  return each<U32>([&](int i) { return a.v[i] ^ b.v[i]; });
}
OMNI_LANE_FN U32 operator+(U32 a, U32 b) {
  return each<U32>([&](int i) { return a.v[i] + b.v[i]; });
}
OMNI_LANE_FN U32 max(U32 a, U32 b) {
  return each<U32>([&](int i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
}
OMNI_LANE_FN U32 max_halves(U32 a, U32 b) {
  const U32 low = each<U32>([&](int i) { return a.v[i] << 16 > b.v[i] << 16 ? a.v[i] & 0xFFFF : b.v[i] & 0xFFFF; });
  return each<U32>([&](int i) { return (a.v[i] > b.v[i] ? a.v[i] & 0xFFFF0000 : b.v[i] & 0xFFFF0000) | low.v[i]; });
}
template <int count>
OMNI_LANE_FN U32 shift_left(U32 x) {
  return each<U32>([&](int i) { return x.v[i] << count; });
}
template <int count>
OMNI_LANE_FN U32 shift_right(U32 x) {
  return each<U32>([&](int i) { return x.v[i] >> count; });
}

OMNI_LANE_FN Mask less(F32 a, F32 b) {
  return each<Mask>([&](int i) { return a.v[i] < b.v[i]; });
}
OMNI_LANE_FN Mask not_less_equal(F32 a, F32 b) {
  return each<Mask>([&](int i) { return !(a.v[i] <= b.v[i]); });
}
OMNI_LANE_FN Mask unordered(F32 a, F32 b) {
  return each<Mask>([&](int i) { return a.v[i] != a.v[i] || b.v[i] != b.v[i]; });
}
OMNI_LANE_FN Mask operator|(Mask a, Mask b) {
  return each<Mask>([&](int i) { return a.v[i] || b.v[i]; });
}
OMNI_LANE_FN bool any(Mask m) {
  bool result = false;
  for (const bool lane : m.v) result = result || lane;
  return result;
}
OMNI_LANE_FN F32 select(Mask m, F32 yes, F32 no) {
  return each<F32>([&](int i) { return m.v[i] ? yes.v[i] : no.v[i]; });
}
OMNI_LANE_FN F32 zero_where(Mask m, F32 x) {
  return each<F32>([&](int i) { return m.v[i] ? 0.0F : x.v[i]; });
}

OMNI_LANE_FN F32 lookup(const float* table, U32 index) {
  return each<F32>([&](int i) { return table[index.v[i] & 15]; });
}

// Lane i + half onto lane i, for lanes below half; other lanes are of no use afterwards.
template <int half>
OMNI_LANE_FN F32 fold(F32 x) {
  return each<F32>([&](int i) { return i < half ? x.v[i] + x.v[i + half] : x.v[i]; });
}
OMNI_LANE_FN float first(F32 x) { return x.v[0]; }
OMNI_LANE_FN uint32_t largest(U32 x) {
  uint32_t most = 0;
  for (const uint32_t lane : x.v) most = lane > most ? lane : most;
  return most;
}

OMNI_LANE_FN F32 load_bf16(const uint16_t* p) {
  return each<F32>([&](int i) { return bf16_to_float(p[i]); });
}
// Pairs of bf16 without those below the magnitude, which is given in both halves.
OMNI_LANE_FN U32 scrub_bf16(U32 pairs, U32 least) {
  return each<U32>([&](int i) {
    const uint32_t pair = pairs.v[i];
    const uint32_t low = (pair & 0x7FFF) >= (least.v[i] & 0xFFFF) ? pair & 0xFFFF : 0;
    return ((pair & 0x7FFF0000) >= (least.v[i] & 0xFFFF0000) ? pair & 0xFFFF0000 : 0) | low;
  });
}
OMNI_LANE_FN void split_bf16(U32 pairs, F32* even, F32* odd) {
  *even = as_float(shift_left<16>(pairs));
  *odd = as_float(pairs & splat_bits(0xFFFF0000));
}
OMNI_LANE_FN void store_bf16(uint16_t* p, F32 x) {
  for (int i = 0; i < kLanes; ++i) p[i] = bf16_round_group(x.v[i]);
}
// The even and the odd elements of 32 as bf16, in order.
OMNI_LANE_FN U32 pack_bf16(F32 even, F32 odd) {
  return each<U32>([&](int i) { return static_cast<uint32_t>(bf16_round_group(odd.v[i])) << 16 | bf16_round_group(even.v[i]); });
}
OMNI_LANE_FN void store_bits(void* p, U32 x) { __builtin_memcpy(p, &x, sizeof x); }
// To bf16 and back.
OMNI_LANE_FN F32 round_to_bf16(F32 x) {
  return each<F32>([&](int i) { return bf16_to_float(bf16_round_group(x.v[i])); });
}

// rint(x), ties to even, of values in -128..127: adding 1.5 * 2^23 leaves no bits after the point.
OMNI_LANE_FN int8_t nearest_s8(float x) { return static_cast<int8_t>(x + 0x1.8p23F - 0x1.8p23F); }
OMNI_LANE_FN void store_s8(int8_t* p, F32 x) {
  for (int i = 0; i < kLanes; ++i) p[i] = nearest_s8(x.v[i]);
}
OMNI_LANE_FN void store_s8_split(int8_t* p, F32 even, F32 odd) {
  for (int i = 0; i < kLanes; ++i) {
    p[2 * i] = nearest_s8(even.v[i]);
    p[2 * i + 1] = nearest_s8(odd.v[i]);
  }
}

}  // namespace
}  // namespace okl
