// SPDX-License-Identifier: Apache-2.0
// IEEE half precision, as a source only: every value is exact in fp32.
#pragma once

#include <bit>
#include <cstdint>

namespace okl {

constexpr float f16_to_float(uint16_t bits) {
  const uint32_t sign = static_cast<uint32_t>(bits & 0x8000) << 16, exponent = bits >> 10 & 31, mantissa = bits & 1023;
  if (exponent == 31) return std::bit_cast<float>(sign | 0x7F800000 | mantissa << 13);
  if (exponent != 0) return std::bit_cast<float>(sign | (exponent + 112) << 23 | mantissa << 13);
  const float magnitude = static_cast<float>(mantissa) * 0x1p-24F;  // a subnormal or zero
  return sign != 0 ? -magnitude : magnitude;
}

}  // namespace okl
