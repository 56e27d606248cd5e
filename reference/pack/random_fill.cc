// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/random_fill.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "reference/core/half.h"

namespace ref {

// FNV-1a of the name.
RandomFill::RandomFill(const std::string& tensor) : state_(0xCBF29CE484222325U) {
  for (const char c : tensor) state_ = (state_ ^ static_cast<uint8_t>(c)) * 0x100000001B3U;
}

// SplitMix64 (Steele, Lea, Flood, 2014).
uint64_t RandomFill::next() {
  state_ += 0x9E3779B97F4A7C15U;
  uint64_t z = (state_ ^ state_ >> 30) * 0xBF58476D1CE4E5B9U;
  z = (z ^ z >> 27) * 0x94D049BB133111EBU;
  return z ^ z >> 31;
}

void RandomFill::bytes(std::span<std::byte> out) {
  for (size_t at = 0; at < out.size(); at += 8) {
    const uint64_t value = next();
    std::memcpy(out.data() + at, &value, std::min<size_t>(8, out.size() - at));
  }
}

// 16 bits of randomness a value.
void RandomFill::values(std::span<std::byte> out, omni_dtype type, double mean, double deviation) {
  const float step = static_cast<float>(deviation * std::sqrt(12.0) / 65536), middle = static_cast<float>(mean);
  const size_t width = type == OMNI_DTYPE_F32 ? 4 : 2, count = out.size() / width;
  for (size_t i = 0; i < count;) {
    uint64_t four = next();
    for (int j = 0; j < 4 && i < count; ++j, ++i, four >>= 16) {
      const float value = middle + step * (static_cast<float>(static_cast<int16_t>(four)) + 0.5F);
      const uint16_t rounded = round_bf16(value);
      std::memcpy(out.data() + width * i, width == 4 ? static_cast<const void*>(&value) : &rounded, width);
    }
  }
}

float random_scale(const omni_layout& layout, double deviation) {
  // Uniform over 16 or 256 codes.
  const double codes = layout.format == OMNI_FORMAT_W8S ? 256 : 16;
  return widen_bf16(round_bf16(static_cast<float>(deviation / std::sqrt((codes * codes - 1) / 12))));
}

}  // namespace ref
