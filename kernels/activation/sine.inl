// SPDX-License-Identifier: Apache-2.0
// The sine of sixteen fp32 lanes up to its sign, which is all that its square needs, for leaf files.
//
//   n = the integer nearest to t / pi;  r = t - n * pi in three steps, the first of them exact;  |sin(t)| = |r + r^3 Q(r^2)|
//
// Q is a minimax polynomial for |r| <= 1.6 with a relative error of 7.4e-9. The error is at most 2.2 ulp for |t| <= 2^18. Beyond,
// n may be off by so much that r leaves that interval, so it is held there: any finite t gives a finite sine of at most 1, the same
// on every tier. Up to 2^20 it is off by less than 0.001, and from 2^23 on of no use. An infinite t gives NaN.
#pragma once

#include "kernels/activation/lanes.inl"

namespace okl {
namespace {

OMNI_LANE_FN F32 unsigned_sin_lanes(F32 t) {
  constexpr float kPiHigh = 0x1.921fb6p+1F, kPiMiddle = -0x1.777a5cp-24F, kPiLow = -0x1.ee59dap-49F;
  constexpr float kMost = 1.6F;
  const F32 magic = splat(0x1.8p23F);  // adding it rounds to an integer
  const F32 n = fma(t, splat(0x1.45f306p-2F), magic) - magic;
  F32 r = fma(n, splat(-kPiHigh), t);
  r = fma(n, splat(-kPiMiddle), r);
  r = fma(n, splat(-kPiLow), r);
  r = max(splat(-kMost), min(splat(kMost), r));  // a NaN stays
  const F32 z = r * r;
  F32 q = fma(splat(0x1.5cfd30p-19F), z, splat(-0x1.9f62e0p-13F));
  q = fma(q, z, splat(0x1.110e90p-7F));
  q = fma(q, z, splat(-0x1.55554ap-3F));
  return fma(z * q, r, r);
}

}  // namespace
}  // namespace okl
