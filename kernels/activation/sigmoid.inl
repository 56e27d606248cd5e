// SPDX-License-Identifier: Apache-2.0
// Sigmoid and SiLU of sixteen fp32 lanes, for leaf files. Both divide once: 1 / (1 + exp(-x)) and x / (1 + exp(-x)).
//
// Where exp(-x) is infinite, below -88.72, sigmoid is +0 and SiLU -0; the exact values are above -2.7e-37 there. -Inf, which would
// be a quotient of infinities, takes the largest float's -0.
#pragma once

#include "kernels/activation/exp.inl"

namespace okl {
namespace {

OMNI_LANE_FN F32 negative(F32 x) { return as_float(as_bits(x) ^ splat_bits(0x80000000)); }
OMNI_LANE_FN F32 sigmoid_lanes(F32 x) { return splat(1.0F) / (splat(1.0F) + exp_lanes(negative(x))); }
OMNI_LANE_FN F32 silu_lanes(F32 x) {
  const F32 finite_below = max(splat(-0x1.fffffep127F), x);  // a NaN stays
  return finite_below / (splat(1.0F) + exp_lanes(negative(x)));
}

struct Sigmoid {
  OMNI_LANE_FN static F32 of(F32 x) { return sigmoid_lanes(x); }
};
struct Silu {
  OMNI_LANE_FN static F32 of(F32 x) { return silu_lanes(x); }
};

}  // namespace
}  // namespace okl
