// SPDX-License-Identifier: Apache-2.0
// The blocks that vLLM's CPU W4A8 operator reads: [N/32][K/b] blocks of 32 channels by b = min(group, 128) inputs.
//
//   [b/4][64]   byte 4j+i of a step: input 4r+i of channel j + 8*(j/8) in bits 3..0 and of the channel eight further in bits 7..4
//   [32] int32  sum of (code - zero point) of each channel over the block
//
// N is a multiple of 32 and K of b, which is 32, 64 or 128.
#pragma once

#include <cstdint>

namespace okl::vllm {

inline constexpr int64_t kBlockChannels = 32;
inline constexpr int64_t kSumBytes = kBlockChannels * 4;

constexpr int64_t block_inputs(int64_t group) { return group < 128 ? group : 128; }
constexpr int64_t block_bytes(int64_t inputs) { return inputs * kBlockChannels / 2 + kSumBytes; }
constexpr bool serves(int64_t n, int64_t k, int64_t group) {
  const int64_t inputs = block_inputs(group);
  return n % kBlockChannels == 0 && (inputs == 32 || inputs == 64 || inputs == 128) && k % inputs == 0;
}

}  // namespace okl::vllm
