// SPDX-License-Identifier: Apache-2.0
// The exact GELU of sixteen fp32 lanes, for leaf files: x * Phi(x), Phi(x) = (1 + erf(x / sqrt 2)) / 2.
//
// Phi(-t), t = |x|, is one of sixteen polynomials of degree 5 about 0.375 i, minimax in relative error; Phi(x) is Phi(-t) below
// zero and 1 - Phi(-t) above. So the negative tail keeps its digits, where (1 + erf) cancels them. The error of Phi is at most 1.1
// ulp above zero and 3.2 ulp down to -3.18; below that, at most 3.4e-9 in absolute terms: from 5.8 on Phi(-t) counts as 0, as it
// does in PyTorch. A table entry is one permutation of a register; by exponentials erf would take twice the instructions.
#pragma once

#include "kernels/activation/lanes.inl"

namespace okl {
namespace {

constexpr int kPhiTerms = 6;
constexpr float kPhiStep = 0.375F;
constexpr float kPhiEnd = 5.8F;  // below 15.5 steps

// Coefficient j of interval i at [j][i].
alignas(64) constexpr float kPhiTable[kPhiTerms][kLanes] = {
    {0x1p-1F, 0x1.6a527ap-2F, 0x1.d022p-3F, 0x1.0ad7dap-3F, 0x1.11a46ep-4F, 0x1.f20394p-6F, 0x1.90924cp-7F, 0x1.1bee6ap-8F,
     0x1.61de22p-10F, 0x1.8301ccp-12F, 0x1.72d97cp-14F, 0x1.36fef2p-16F, 0x1.c807dep-19F, 0x1.24155ep-21F, 0x1.46a2c6p-24F,
     0x1.3eb538p-27F},
    {-0x1.988452p-2F, -0x1.7cc794p-2F, -0x1.345d5ep-2F, -0x1.b1ec62p-3F, -0x1.094088p-3F, -0x1.19bfa8p-4F, -0x1.0402e8p-5F,
     -0x1.a0f234p-7F, -0x1.227208p-8F, -0x1.5f90aap-10F, -0x1.71b856p-12F, -0x1.51cdfep-14F, -0x1.0c2724p-16F, -0x1.71df6ep-19F,
     -0x1.bb3ea2p-22F, -0x1.cd7b2cp-25F},
    {-0x1.4c0c7ap-22F, 0x1.1d93ccp-4F, 0x1.ce89ep-4F, 0x1.e828fep-4F, 0x1.8de13cp-4F, 0x1.0824a2p-4F, 0x1.24849ep-5F,
     0x1.119fc2p-6F, 0x1.b3a9fcp-8F, 0x1.289e4p-9F, 0x1.5a92ap-11F, 0x1.5c49e6p-13F, 0x1.2d925cp-15F, 0x1.c28f9ap-18F,
     0x1.22ae0cp-20F, 0x1.442e94p-23F},
    {0x1.105f82p-4F, 0x1.b448dep-5F, 0x1.67b764p-6F, -0x1.33601ep-7F, -0x1.ba0eb6p-6F, -0x1.d879d6p-6F, -0x1.60129cp-6F,
     -0x1.99559ep-7F, -0x1.834972p-8F, -0x1.307c06p-9F, -0x1.92a524p-11F, -0x1.c336ep-13F, -0x1.aeb78ap-15F, -0x1.5f858p-17F,
     -0x1.ebe7b2p-20F, -0x1.27af66p-22F},
    {-0x1.10abe4p-14F, -0x1.0df034p-6F, -0x1.75368ep-6F, -0x1.1918b4p-6F, -0x1.90171ep-8F, 0x1.61b71ap-9F, 0x1.8ed6c8p-8F,
     0x1.61d584p-8F, 0x1.b4646cp-9F, 0x1.a16564p-10F, 0x1.430b5p-11F, 0x1.9d6c78p-13F, 0x1.bb00aap-15F, 0x1.90b6bep-17F,
     0x1.33b138p-19F, 0x1.92c1b2p-22F},
    {-0x1.3f261cp-7F, -0x1.b3b3f2p-8F, 0x1.95cb78p-13F, 0x1.58c7e2p-8F, 0x1.7c97b6p-8F, 0x1.a76dbap-9F, 0x1.c89006p-12F,
     -0x1.fb9728p-11F, -0x1.1f393cp-10F, -0x1.7332eep-11F, -0x1.5f2128p-12F, -0x1.055712p-13F, -0x1.3c303p-15F, -0x1.3c8692p-17F,
     -0x1.091936p-19F, -0x1.764974p-22F},
};

OMNI_LANE_FN F32 phi_lanes(F32 x) {
  const F32 t = abs(x), magic = splat(0x1.8p23F);  // adding it rounds to an integer, which then stands in the low bits
  const F32 inside = min(splat(kPhiEnd), t);       // a NaN stays
  const F32 shifted = fma(inside, splat(1.0F / kPhiStep), magic);
  const U32 interval = as_bits(shifted);
  const F32 d = fma(shifted - magic, splat(-kPhiStep), inside);
  F32 p = lookup(kPhiTable[kPhiTerms - 1], interval);
  for (int j = kPhiTerms - 2; j >= 0; --j) p = fma(p, d, lookup(kPhiTable[j], interval));
  const F32 below = zero_where(less(splat(kPhiEnd), t), p);
  return select(less(x, splat(0.0F)), below, splat(1.0F) - below);
}

OMNI_LANE_FN F32 gelu_lanes(F32 x) { return x * phi_lanes(x); }

struct Gelu {
  OMNI_LANE_FN static F32 of(F32 x) { return gelu_lanes(x); }
};

}  // namespace
}  // namespace okl
