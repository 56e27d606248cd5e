// SPDX-License-Identifier: Apache-2.0
// The deterministic generators behind the golden files in tests/data/int4: codes, scales and zeros, activations from splitmix64.
#pragma once

#include <cstdint>

namespace okl::test {

constexpr uint64_t splitmix64(uint64_t x) {
  uint64_t z = x + 0x9E3779B97F4A7C15;
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
  z = (z ^ z >> 27) * 0x94D049BB133111EB;
  return z ^ z >> 31;
}

constexpr uint8_t synthetic_code(uint64_t seed, int64_t k_total, int64_t n, int64_t k) {
  return static_cast<uint8_t>(splitmix64(seed + static_cast<uint64_t>(n * k_total + k)) >> 60);
}

struct ScaleZeroBits {
  uint16_t scale, zero;  // bf16
};
constexpr ScaleZeroBits synthetic_scale_zero(uint64_t seed, int64_t n_total, int64_t group, int64_t n) {
  const uint64_t h = splitmix64(seed + (uint64_t{1} << 40) + static_cast<uint64_t>(group * n_total + n));
  return {static_cast<uint16_t>((118 + (h >> 8) % 4) << 7 | (h >> 57 & 127)),
          static_cast<uint16_t>((h >> 40 & 1) << 15 | (117 + (h >> 24) % 6) << 7 | (h >> 41 & 127))};
}

constexpr uint16_t synthetic_activation(uint64_t seed, int64_t k_total, int64_t m, int64_t k) {
  const uint64_t h = splitmix64(seed + (uint64_t{1} << 41) + static_cast<uint64_t>(m * k_total + k));
  return static_cast<uint16_t>(h >> 63 << 15 | (124 + (h >> 50 & 3)) << 7 | (h >> 56 & 127));
}

}  // namespace okl::test
