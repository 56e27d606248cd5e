// SPDX-License-Identifier: Apache-2.0
#include "bench/generator.h"

namespace omnibench {

void Generator::scale_zero(int64_t group_index, int64_t channel, uint16_t* scale, uint16_t* zero) const {
  const uint64_t h = splitmix64(seed + (uint64_t{1} << 40) + static_cast<uint64_t>(group_index * n + channel));
  *scale = static_cast<uint16_t>((118 + (h >> 8) % 4) << 7 | (h >> 57 & 0x7f));
  *zero = static_cast<uint16_t>((h >> 40 & 1) << 15 | (117 + (h >> 24) % 6) << 7 | (h >> 41 & 0x7f));
}

uint16_t Generator::activation(int64_t row, int64_t input) const {
  const uint64_t h = splitmix64(seed + (uint64_t{1} << 41) + static_cast<uint64_t>(row * k + input));
  return static_cast<uint16_t>((h >> 63) << 15 | (124 + (h >> 50 & 3)) << 7 | (h >> 56 & 0x7f));
}

void Generator::codes(int64_t n0, int64_t n1, uint8_t* out) const {
  for (int64_t channel = n0; channel < n1; ++channel) {
    for (int64_t input = 0; input < k; ++input) *out++ = code(channel, input);
  }
}

std::vector<uint16_t> Generator::scales() const {
  const int64_t groups = (k + group - 1) / group;
  std::vector<uint16_t> out(static_cast<size_t>(groups * n * 2));
  for (int64_t g = 0; g < groups; ++g) {
    for (int64_t channel = 0; channel < n; ++channel) {
      uint16_t* at = out.data() + 2 * (g * n + channel);
      scale_zero(g, channel, at, at + 1);
    }
  }
  return out;
}

std::vector<uint16_t> Generator::activations(int64_t rows) const {
  std::vector<uint16_t> out(static_cast<size_t>(rows * k));
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t input = 0; input < k; ++input) out[row * k + input] = activation(row, input);
  }
  return out;
}

}  // namespace omnibench
