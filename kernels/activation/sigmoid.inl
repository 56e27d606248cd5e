// SPDX-License-Identifier: Apache-2.0
// Sigmoid and SiLU of sixteen fp32 lanes, for leaf files. Both divide once: 1 / (1 + exp(-x)) and x / (1 + exp(-x)).
#pragma once

#include "kernels/activation/exp.inl"

namespace okl {
namespace {

OMNI_LANE_FN F32 negative(F32 x) { return as_float(as_bits(x) ^ splat_bits(0x80000000)); }
OMNI_LANE_FN F32 sigmoid_lanes(F32 x) { return splat(1.0F) / (splat(1.0F) + exp_lanes(negative(x))); }
OMNI_LANE_FN F32 silu_lanes(F32 x) { return x / (splat(1.0F) + exp_lanes(negative(x))); }

}  // namespace
}  // namespace okl
