// SPDX-License-Identifier: Apache-2.0
// What prepare.cc is made of: one set of functions for each ISA, all with the same bits.
#pragma once

#include <cstdint>

#include "kernels/gemv/linear_kernel.h"

namespace okl {

inline constexpr int kSumChains = 16;            // group sums that are computed at once
inline constexpr int64_t kSumSlice = 32;         // inputs; every group is a multiple of that, with K's padding
inline constexpr uint16_t kScrubBelow = 8 << 7;  // bf16 below 2^-119 in magnitude: exponent field under 8 (docs/numerics.md)

struct PrepareKernel {
  // `count` bf16 inputs to fp32 or to bf16. With `scrub`, |x| < 2^-119 becomes +0.
  void (*widen)(const uint16_t* x, int64_t count, bool scrub, float* out);
  void (*copy)(const uint16_t* x, int64_t count, bool scrub, uint16_t* out);
  // Goes on with kSumChains independent sums by slices * kSumSlice prepared inputs from each parts[i]: pairs ascending, the odd
  // input of a pair first, one rounded addition each.
  void (*add)(XForm form, const uint8_t* const* parts, int64_t slices, float* sums);
  // Both at once for slices * kSumSlice inputs from each x[i], which become parts[i]: the additions wait for each other, and moving
  // the inputs fits in between. Scrubs.
  void (*move_and_add)(XForm form, const uint16_t* const* x, uint8_t* const* parts, int64_t slices, float* sums);
};

extern const PrepareKernel prepare_portable, prepare_avx2, prepare_avx512;

}  // namespace okl
