// SPDX-License-Identifier: Apache-2.0
// The thresholds below which an element counts as +0, so that no sum of products ever has bits for VDPBF16PS to flush
// (docs/numerics.md): a bf16 value is a multiple of 2^-7 times its power of two.
#pragma once

#include <cstdint>

namespace okl {

// Exponent fields. bf16 times bf16: both sides from 2^-56, products are then multiples of 2^-126. bf16 times int8: x from 2^-119.
inline constexpr uint16_t kDenseScrubBelow = (127 - 56) << 7;
inline constexpr uint16_t kGroupScrubBelow = (127 - 119) << 7;

// Zeros need no scrubbing: a product with one adds nothing, whatever its sign.
[[gnu::always_inline]] constexpr bool is_small_weight(uint16_t bits) {
  const uint16_t magnitude = bits & 0x7FFF;
  return magnitude != 0 && magnitude < kDenseScrubBelow;
}

}  // namespace okl
