// SPDX-License-Identifier: Apache-2.0
// The packed formats besides tg4 have one shape: blocks of 64 channels, K padded, and a tail block that ends with the last register
// of 16 (w4s: 32) channels that it needs. Padding is weight zero (w4s: the code 8, which a zero point elsewhere makes matter: a
// consumer must leave padded inputs out by giving them x = 0).
//
//   w4s   [N/64][K/4][2][64]     byte 4c+i of register h: bits 3..0 = channel 32h+c, input 4r+i; bits 7..4 = channel 32h+16+c
//   w8s   [N/64][K/4][4][64]     byte 4c+i of register v: channel 16v+c, input 4r+i
//   w16   [N/64][K/2][4][16][2]  element [v][c][i]: channel 16v+c, input 2r+i; bf16
//   w32   [N/64][K][4][16]       element [v][c]: channel 16v+c; fp32; K is not padded
//
// Everything is constexpr and in 64 bits; arguments are those of a layout that omni_layout_check() accepted.
#pragma once

#include <cstdint>

namespace okl {

struct Blocks64 {
  int64_t channel_step;   // N is padded to a multiple of this: the channels of one register
  int64_t input_step;     // K is padded to a multiple of this
  int64_t bytes_per_two;  // bytes of two weights: 1, 2, 4, 8

  static constexpr int64_t kBlock = 64;

  [[gnu::always_inline]] constexpr int64_t padded_n(int64_t n) const {
    return (n + channel_step - 1) / channel_step * channel_step;
  }
  [[gnu::always_inline]] constexpr int64_t padded_k(int64_t k) const { return (k + input_step - 1) / input_step * input_step; }
  [[gnu::always_inline]] constexpr int64_t blocks(int64_t n) const { return (n + kBlock - 1) / kBlock; }
  // Channels stored in a block, padding included.
  [[gnu::always_inline]] constexpr int64_t block_width(int64_t n, int64_t block) const {
    const int64_t left = padded_n(n) - block * kBlock;
    return left < kBlock ? left : kBlock;
  }
  // Byte offset of a block; that of block number blocks(n) is the end of the array.
  [[gnu::always_inline]] constexpr int64_t block_offset(int64_t n, int64_t k, int64_t block) const {
    const int64_t before = block * kBlock, all = padded_n(n);
    return (before < all ? before : all) * padded_k(k) / 2 * bytes_per_two;
  }
  [[gnu::always_inline]] constexpr int64_t packed_bytes(int64_t n, int64_t k) const {
    return padded_n(n) * padded_k(k) / 2 * bytes_per_two;
  }
};

inline constexpr Blocks64 kW4s = {32, 32, 1};
inline constexpr Blocks64 kW8s = {16, 32, 2};
inline constexpr Blocks64 kW16 = {16, 32, 4};
inline constexpr Blocks64 kW32 = {16, 1, 8};

}  // namespace okl
