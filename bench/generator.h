// SPDX-License-Identifier: Apache-2.0
// Synthetic operands from a counter and splitmix64: any element can be made alone, in any language (docs/workers.md has the
// formulas).
#ifndef OMNI_BENCH_GENERATOR_H
#define OMNI_BENCH_GENERATOR_H

#include <cstdint>
#include <cstring>
#include <vector>

namespace omnibench {

inline uint64_t splitmix64(uint64_t x) {
  uint64_t z = x + 0x9E3779B97F4A7C15U;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31);
}

inline float bf16_to_float(uint16_t bits) {
  const uint32_t wide = static_cast<uint32_t>(bits) << 16;
  float value = 0;
  std::memcpy(&value, &wide, sizeof value);
  return value;
}

/// Round to nearest even; for finite values (generated operands hold nothing else).
inline uint16_t float_to_bf16(float value) {
  uint32_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return static_cast<uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16);
}

/// The operands of one weight matrix: codes 0..15, bf16 scales in 2^-9..2^-5 and zeros, bf16 activations in 2^-3..2.
struct Generator {
  int64_t n = 0, k = 0;
  uint32_t group = 128;
  uint64_t seed = 1;

  [[nodiscard]] uint8_t code(int64_t channel, int64_t input) const {
    return static_cast<uint8_t>(splitmix64(seed + static_cast<uint64_t>(channel * k + input)) >> 60);
  }
  /// bf16 bits of the scale and the zero of (group index, channel).
  void scale_zero(int64_t group_index, int64_t channel, uint16_t* scale, uint16_t* zero) const;
  /// bf16 bits of x[row][input].
  [[nodiscard]] uint16_t activation(int64_t row, int64_t input) const;

  /// Codes of channels [n0, n1), row-major.
  void codes(int64_t n0, int64_t n1, uint8_t* out) const;
  /// The scale-and-zero array [ceil(K/group)][N][2].
  [[nodiscard]] std::vector<uint16_t> scales() const;
  [[nodiscard]] std::vector<uint16_t> activations(int64_t rows) const;
};

}  // namespace omnibench
#endif
