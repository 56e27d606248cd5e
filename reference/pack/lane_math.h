// SPDX-License-Identifier: Apache-2.0
// The loops over a batch that take a quantiser's time.
#pragma once

#include <cstdint>

#include "reference/pack/group_batch.h"

namespace ref {

// Weighted squares of what codes leave of the weights, [kLanes]. Codes are those of products with 1 / scale, which differ from the
// stored ones in ties at most: good enough to compare scales by.
void quick_errors(const GroupBatch& batch, const GroupScales& at, float* errors);

// Weighted sums over the same codes less 8, by lane: what the best scale for them follows from.
struct CodeSums {
  alignas(64) float q[kLanes];
  alignas(64) float qq[kLanes];
  alignas(64) float qw[kLanes];
};
void code_sums(const GroupBatch& batch, const GroupScales& at, CodeSums* sums);

// e^T M e of the stored codes' errors, with the batch's moments; or the weighted squares, where it has none.
void stored_errors(const GroupBatch& batch, const GroupScales& at, Zeros zeros, double* errors);

// Nearest codes, ties to even, [count][kLanes], of weights in such order.
void nearest_codes(const float* w, int64_t count, const GroupScales& at, Zeros zeros, uint8_t* codes);
// What is left of the weights then.
void code_residuals(const float* w, const uint8_t* codes, int64_t count, const GroupScales& at, Zeros zeros, float* residuals);

// y[i] += factors[i] * x, lane by lane, for i in [0, count).
void add_outer(const float* factors, const float* x, int64_t count, float* y);

// The nearest bf16 number. Not for NaN.
inline float nearest_bf16(float value) {
  const auto bits = __builtin_bit_cast(uint32_t, value);
  return __builtin_bit_cast(float, (bits + 0x7FFFu + (bits >> 16 & 1u)) & 0xFFFF0000u);
}
// Adding and taking away 1.5 * 2^23 rounds to a whole number, ties to even, in vectors of any machine. Up to 2^22.
inline float nearest_whole(float value) {
  constexpr float kRound = 12582912.0F;
  return (value + kRound) - kRound;
}

}  // namespace ref
