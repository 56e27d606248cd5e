// SPDX-License-Identifier: Apache-2.0
// The contract between the repack driver and kernels that pack whole tg4 blocks.
//
// A kernel packs 64 channels: row-major codes, one a byte, become [inputs][32] bytes, byte d = channel d | channel d + 32 << 4. It
// never allocates, threads, prints or keeps state, reads nothing but the codes and writes nothing but the block.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/dispatch/kernel.h"

namespace okl {

struct PackTile {
  const uint8_t* codes;  // channel 0, input 0; any alignment
  int64_t ld;            // bytes from one channel to the next
  uint8_t* out;          // input 0 of the block, 16-byte aligned
  int64_t inputs;        // a multiple of PackKernel::step, >= 0
};

// Returns non-zero when a code was above 15; then the block is undefined.
using PackFn = uint32_t (*)(const PackTile*);

struct PackKernel {
  int64_t step;                           // inputs of one step
  PackFn (*make)(std::string_view name);  // under the row's name; nullptr when executable memory is refused
};

// Packs any number of inputs of a block: the scalar rule that all kernels agree with, for edges.
uint32_t pack_edge(const PackTile& tile);

}  // namespace okl
