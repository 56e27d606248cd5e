// SPDX-License-Identifier: Apache-2.0
// exp of sixteen fp32 lanes, for leaf files: the same bits on every tier.
//
//   n = the integer nearest to x * log2(e);  r = x - n * ln2 in two steps;  exp(x) = 2^n * P(r)
//   P(r) = 1 + r (1 + r (c2 + r (c3 + r (c4 + r (c5 + r c6))))), |r| <= 0.3466, minimax in relative error: 3.1e-9
//
// exp(0) = 1 and exp(-Inf) = +0 exactly, exp(+Inf) = +Inf, NaN gives NaN. A result below 2^-126 is +0 and one above the largest
// float is +Inf. Over every float x the error is at most 0.895 ulp.
#pragma once

#include "kernels/activation/lanes.inl"

namespace okl {
namespace {

OMNI_LANE_FN F32 exp_lanes(F32 x) {
  constexpr float kLowest = -0x1.5d589ep+6F;  // the least x with exp(x) >= 2^-126
  constexpr float kHighest = 0x1.62e42ep+6F;  // the greatest x with a finite exp(x)
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
  p = fma(p, r, splat(1.0F));
  p = fma(p, r, splat(1.0F));
  const F32 scaled = as_float(as_bits(p) + shift_left<23>(as_bits(shifted)));  // n onto the exponent
  const F32 result = select(not_less_equal(x, splat(kHighest)), x + splat_bits_float(0x7F800000), scaled);
  return zero_where(less(x, splat(kLowest)), result);
}

}  // namespace
}  // namespace okl
