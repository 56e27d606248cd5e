// SPDX-License-Identifier: Apache-2.0
// bf16 conversions, the one definition that every kernel, twin and test agrees with. All round to nearest, ties to even; they
// differ in what they do with fp32 subnormals and in the NaN they store.
#pragma once

#include <cstdint>

namespace okl {

inline constexpr uint16_t kBf16NaN = 0x7FC0;
inline constexpr uint32_t kF32NaN = 0x7FC00000;

[[gnu::always_inline]] constexpr float bf16_to_float(uint16_t bits) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(bits) << 16);
}

namespace bf16_detail {
[[gnu::always_inline]] constexpr bool is_nan(uint32_t bits) { return (bits & 0x7FFFFFFF) > 0x7F800000; }
// Half of the dropped range, less one for an even result: a carry may run into the exponent and up to infinity, as it should.
[[gnu::always_inline]] constexpr uint16_t round_bits(uint32_t bits) {
  return static_cast<uint16_t>((bits + 0x7FFF + (bits >> 16 & 1)) >> 16);
}
}  // namespace bf16_detail

// IEEE: subnormals are kept, any NaN is 0x7FC0. Dequantisation.
[[gnu::always_inline]] constexpr uint16_t bf16_round_ieee(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  return bf16_detail::is_nan(bits) ? kBf16NaN : bf16_detail::round_bits(bits);
}

// As VCVTNEPS2BF16: fp32 subnormals become a zero of their sign; any NaN is 0x7FC0. Stores of class `group`.
[[gnu::always_inline]] constexpr uint16_t bf16_round_group(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  if ((bits & 0x7F800000) == 0) return static_cast<uint16_t>(bits >> 16 & 0x8000);
  return bf16_round_ieee(value);
}

// As PyTorch's vector code: subnormals are kept, any NaN is 0xFFFF. Stores of class `torch`.
[[gnu::always_inline]] constexpr uint16_t bf16_round_torch(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value);
  return bf16_detail::is_nan(bits) ? 0xFFFF : bf16_detail::round_bits(bits);
}

}  // namespace okl
