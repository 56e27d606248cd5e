// SPDX-License-Identifier: Apache-2.0
// exp(x) - 1, ELU and tanh of sixteen fp32 lanes, for leaf files.
//
//   n and r as in exp.inl;  p = r + r^2 (c2 + r (c3 + r (c4 + r (c5 + r c6)))), which is exp(r) - 1
//   exp(x) - 1 = fma(p, 2^n, 2^n - 1)
//
// With n = 0, |x| <= 0.3466, the result is p: nothing cancels near zero. Otherwise |exp(x) - 1| >= 0.29 and 2^n - 1 is exact or as
// good as the result.
#pragma once

#include "kernels/activation/lanes.inl"

namespace okl {
namespace {

// For x in [-80, 80].
OMNI_LANE_FN F32 expm1_lanes(F32 x) {
  constexpr float kLn2High = 0x1.62e4p-1F;    // 15 bits: n times it is exact
  constexpr float kLn2Low = 0x1.7f7d1cp-20F;  // ln2 - kLn2High
  const F32 magic = splat(0x1.8p23F);         // adding it rounds to an integer, which then stands in the low bits
  const F32 shifted = fma(x, splat(0x1.715476p+0F), magic);
  const F32 n = shifted - magic;
  F32 r = fma(n, splat(-kLn2High), x);
  r = fma(n, splat(-kLn2Low), r);
  F32 p = fma(splat(0x1.6a2430p-10F), r, splat(0x1.1239e2p-7F));
  p = fma(p, r, splat(0x1.5558f2p-5F));
  p = fma(p, r, splat(0x1.555492p-3F));
  p = fma(p, r, splat(0x1.fffffcp-2F));
  p = fma(p * r, r, r);
  const F32 power = as_float(splat_bits(0x3F800000) + shift_left<23>(as_bits(shifted)));  // 2^n
  return fma(p, power, power - splat(1.0F));
}

// -1 below -80 by far; -0 stays, and so does a NaN.
OMNI_LANE_FN F32 elu_lanes(F32 x) { return select(less(x, splat(0.0F)), expm1_lanes(max(splat(-80.0F), x)), x); }

// e / (e + 2) with e = exp(2 |x|) - 1, and the sign of x. From 9.1 on it is 1 in fp32.
OMNI_LANE_FN F32 tanh_lanes(F32 x) {
  const F32 t = min(splat(9.1F), abs(x));  // a NaN stays
  const F32 e = expm1_lanes(t + t);
  const U32 sign = as_bits(x) & splat_bits(0x80000000);
  return as_float(as_bits(e / (e + splat(2.0F))) | sign);
}

}  // namespace
}  // namespace okl
