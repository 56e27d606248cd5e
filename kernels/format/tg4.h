// SPDX-License-Identifier: Apache-2.0
// tg4, version 1: PyTorch tinygemm's packing in its AVX-512 build, with padding rules of ours for other N and K.
//
//   codes q[N][K], 0..15          packed bytes
//                                 offset 0                  32 * K_pad                        packed_bytes(n, k)
//   channels   0..63   block 0    +-------------------------+
//   channels  64..127  block 1                              +-------------------------+
//   ...                                                                               ...
//   the last 16, 32 or 48, if any: tail                                                  +--------------+
//
//   a block of 64:  [K_pad][32]        byte d of input k:   bits 3..0 = channel d     bits 7..4 = channel d + 32
//   the tail:       [K_pad][width/2]   byte j of input k:   bits 3..0 = channel 2j    bits 7..4 = channel 2j + 1
//
// N is padded with code 8 to the next multiple of 16 (when that fills 64 channels, they are an ordinary block), K to the next
// multiple of 32. Code 8 is weight 0 * s + z, so a consumer must also leave padded inputs and channels out. Scales and zeros are
// never padded. docs/formats/tg4.md draws the bytes.
//
// Everything is constexpr and in 64 bits. Arguments are those of a layout that omni_layout_check() accepted: n >= 0, k >= 1 and
// products that fit 63 bits.
#pragma once

#include <cstdint>

namespace okl::tg4 {

inline constexpr uint16_t kVersion = 1;
inline constexpr int64_t kBlock = 64;        // channels of a full block
inline constexpr int64_t kBlockBytes = 32;   // bytes of one input of a full block
inline constexpr int64_t kChannelStep = 16;  // N is padded to a multiple of this
inline constexpr int64_t kInputStep = 32;    // K is padded to a multiple of this
inline constexpr uint8_t kPadCode = 8;
inline constexpr uint8_t kPadByte = kPadCode << 4 | kPadCode;
inline constexpr int64_t kAlignment = 16;  // of the packed array; 64 is faster

constexpr int64_t padded_n(int64_t n) { return (n / kChannelStep + (n % kChannelStep != 0 ? 1 : 0)) * kChannelStep; }
constexpr int64_t padded_k(int64_t k) { return (k / kInputStep + (k % kInputStep != 0 ? 1 : 0)) * kInputStep; }

// Full blocks and the tail together.
constexpr int64_t blocks(int64_t n) { return n / kBlock + (n % kBlock != 0 ? 1 : 0); }

// Channels stored in a block, padding included: 64, or 16, 32 or 48 for a tail.
constexpr int64_t block_width(int64_t n, int64_t block) {
  const int64_t left = padded_n(n) - block * kBlock;
  return left < kBlock ? left : kBlock;
}
// Channels of a block that exist.
constexpr int64_t block_channels(int64_t n, int64_t block) {
  const int64_t left = n - block * kBlock;
  return left < kBlock ? left : kBlock;
}
// Whether a block stores channels d and d + 32 in a byte (a full block) or 2j and 2j + 1 (a tail).
[[gnu::always_inline]] constexpr bool is_split(int64_t width) { return width == kBlock; }

// Byte offset of a block; that of block number blocks(n) is the end of the array.
constexpr int64_t block_offset(int64_t n, int64_t k, int64_t block) {
  const int64_t before = block * kBlock, all = padded_n(n);
  return (before < all ? before : all) * (padded_k(k) / 2);
}
constexpr int64_t packed_bytes(int64_t n, int64_t k) { return padded_n(n) * (padded_k(k) / 2); }

// Where one code is: its byte, and how far to shift that right.
struct Position {
  int64_t byte;
  int shift;  // 0 or 4
};
// Inside a run of `width` channels of one input.
[[gnu::always_inline]] constexpr Position position_in_run(int64_t width, int64_t channel) {
  if (is_split(width)) return {channel % 32, channel < 32 ? 0 : 4};
  return {channel / 2, channel % 2 == 0 ? 0 : 4};
}
constexpr Position position(int64_t n, int64_t k, int64_t channel, int64_t input) {
  const int64_t block = channel / kBlock, width = block_width(n, block);
  const Position run = position_in_run(width, channel % kBlock);
  return {block_offset(n, k, block) + input * (width / 2) + run.byte, run.shift};
}

static_assert(padded_n(0) == 0 && padded_n(1) == 16 && padded_n(49) == 64 && padded_k(31) == 32);
static_assert(block_width(80, 1) == 16 && block_width(113, 1) == 64 && block_channels(113, 1) == 49);
static_assert(block_offset(80, 64, 2) == packed_bytes(80, 64));

}  // namespace okl::tg4
