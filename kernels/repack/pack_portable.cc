// SPDX-License-Identifier: Apache-2.0
#include "kernels/repack/pack_block.inl"

namespace okl {

extern const PackKernel pack_tg4_portable;
const PackKernel pack_tg4_portable = {kCompiledPackStep, [](std::string_view) -> PackFn { return pack_block; }};

uint32_t pack_edge(const PackTile& tile) {
  uint32_t seen = 0;
  for (int64_t input = 0; input < tile.inputs; ++input) {
    for (int64_t d = 0; d < 32; ++d) {
      const uint8_t low = tile.codes[d * tile.ld + input], high = tile.codes[(d + 32) * tile.ld + input];
      seen |= low | high;
      tile.out[input * 32 + d] = static_cast<uint8_t>(low | high << 4);
    }
  }
  return seen & ~15U;
}

}  // namespace okl
