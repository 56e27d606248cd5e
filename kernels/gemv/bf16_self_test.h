// SPDX-License-Identifier: Apache-2.0
// Does this processor's VDPBF16PS do what class group needs?
#pragma once

#include <cstdint>

namespace okl {

// The instruction under test: accumulator[i] += the pair product of lane i, 16 lanes.
using Bf16DotFn = void (*)(const uint32_t* a, const uint32_t* b, float* accumulator);

// Runs edge vectors (ties, cancellation, the scrub threshold, overflow, infinities, NaN) and 4096 random lanes through `dot` and
// compares with the contract: d = fma(odd, odd, d), then d = fma(even, even, d). True when every lane agrees (any NaN equals any).
bool bf16_dot_agrees(Bf16DotFn dot);

// Tests the hardware once per process and demotes the tier when it disagrees. Call before selecting. Thread-safe.
void ensure_bf16_dot_tested();

}  // namespace okl
