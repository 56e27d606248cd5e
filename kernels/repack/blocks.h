// SPDX-License-Identifier: Apache-2.0
// The three block formats as one: tg4 and PyTorch's two other builds differ in the block's width, in which channels share a byte of
// a full block, and in whether K is padded.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/format/tg4.h"
#include "omni/layout.h"

namespace okl {

struct BlockFormat {
  int64_t width;  // channels of a full block
  bool split;     // full blocks hold channels d and d + width/2 in a byte; otherwise, and in tails, 2j and 2j + 1
  bool padded_k;

  static BlockFormat of(omni_format format) {
    switch (format) {
      case OMNI_FORMAT_TORCH_AVX2:
        return {32, true, false};
      case OMNI_FORMAT_TORCH_DEFAULT:
        return {32, false, false};
      default:
        return {tg4::kBlock, true, true};
    }
  }
};

// One block of a matrix n x k, with the channels that share byte j of an input: low(j) and high(j).
struct Block {
  int64_t offset;    // bytes from the start of the array
  int64_t channels;  // stored, padding included
  bool split;

  Block(const BlockFormat& format, int64_t n, int64_t k, int64_t first_channel)
      : offset(first_channel * ((format.padded_k ? tg4::padded_k(k) : k)) / 2),
        channels(std::min(format.width, tg4::padded_n(n) - first_channel)),
        split(format.split && channels == format.width) {}

  int64_t bytes_per_input() const { return channels / 2; }
  int64_t low(int64_t j) const { return split ? j : 2 * j; }
  int64_t high(int64_t j) const { return split ? j + channels / 2 : 2 * j + 1; }
};

}  // namespace okl
