// SPDX-License-Identifier: Apache-2.0
// Which channels of a block of 64 lie in a portion.
#pragma once

#include <algorithm>
#include <cstdint>

namespace okl {

inline constexpr uint64_t kAllChannels = ~uint64_t{0};

// Bits of the channels of block `block` that lie in [n0, n1).
inline uint64_t wanted_channels(int64_t block, int64_t n0, int64_t n1) {
  constexpr int64_t kBlock = 64;
  const int64_t first = std::max<int64_t>(n0 - block * kBlock, 0);
  const int64_t last = std::min<int64_t>(n1 - block * kBlock, kBlock);
  if (last <= first) return 0;
  const uint64_t below_last = last == kBlock ? kAllChannels : (uint64_t{1} << last) - 1;
  return below_last & ~((uint64_t{1} << first) - 1);
}

}  // namespace okl
