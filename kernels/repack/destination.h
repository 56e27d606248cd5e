// SPDX-License-Identifier: Apache-2.0
// Writing a tile of codes in any destination format.
#pragma once

#include <cstdint>

#include "kernels/repack/code_tile.h"
#include "kernels/repack/pack_kernel.h"
#include "omni/layout.h"

namespace okl {

// The kernel that packs whole tg4 blocks.
struct Packer {
  int64_t step = 1;
  PackFn run = nullptr;

  // Any number of inputs: the kernel's steps, then the edge. Returns non-zero when a code was above 15.
  uint32_t operator()(const PackTile& tile) const;
};

// Writes inputs [first, first + count) of channels [channel, channel + channels) from columns [0, count) of the tile. Block formats
// also get the padding channels, whose rows hold code 8 already; tg4's count may run into the padding along K.
// ROW_HALVES takes bytes [first, first + count) instead: their high codes are in columns [kTileInputs / 2, + count).
void write_codes(omni_format format, const CodeView& view, void* destination, int64_t channel, int64_t channels, int64_t first,
                 int64_t count, const CodeTile& tile, const Packer& packer);

}  // namespace okl
