// SPDX-License-Identifier: Apache-2.0
#include "bench/arms/read_loops.h"

namespace omnibench {

uint64_t read_portable(const uint8_t* data, size_t bytes, int /*streams*/, int /*prefetch*/) {
  const auto start = reinterpret_cast<uintptr_t>(data) & ~uintptr_t{63};
  const auto* at = reinterpret_cast<const uint64_t*>(start);
  const auto* end = reinterpret_cast<const uint64_t*>((reinterpret_cast<uintptr_t>(data) + bytes) & ~uintptr_t{63});
  uint64_t a = 0;
  uint64_t b = 0;
  uint64_t c = 0;
  uint64_t d = 0;
  for (; at < end; at += 8) {
    a ^= at[0] ^ at[4];
    b ^= at[1] ^ at[5];
    c ^= at[2] ^ at[6];
    d ^= at[3] ^ at[7];
  }
  return a ^ b ^ c ^ d;
}

}  // namespace omnibench
