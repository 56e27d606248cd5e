// SPDX-License-Identifier: Apache-2.0
// The unit of a repack: up to 64 channels by 512 inputs of codes, one a byte, on the stack of the thread that works on it.
#pragma once

#include <cstdint>

namespace okl {

inline constexpr int64_t kTileChannels = 64;
inline constexpr int64_t kTileInputs = 512;

struct CodeTile {
  // One line more than the inputs: 64 rows at a stride of 512 would share 8 of the 64 sets of a first-level cache.
  static constexpr int64_t kPitch = kTileInputs + 64;
  alignas(64) uint8_t codes[kTileChannels * kPitch];

  uint8_t* row(int64_t channel) { return codes + channel * kPitch; }
  const uint8_t* row(int64_t channel) const { return codes + channel * kPitch; }
};

// Inputs first, first + 1, ... as stored; with a permutation, position i of storage holds input permutation[i] of the source.
struct InputRange {
  int64_t first = 0;
  int64_t count = 0;
  const int32_t* permutation = nullptr;

  int64_t source(int64_t i) const { return permutation == nullptr ? first + i : permutation[first + i]; }
};

// An operand in one of the formats.
struct CodeView {
  int64_t n = 0;
  int64_t k = 0;
  int64_t ld = 0;  // in bytes, row-major formats only
};

}  // namespace okl
