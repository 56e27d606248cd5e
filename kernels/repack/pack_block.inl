// SPDX-License-Identifier: Apache-2.0
// The compiled pack kernel: the portable one, and its twins in leaf files, are this text compiled for their ISA.
#include "kernels/repack/byte_transpose.inl"
#include "kernels/repack/pack_kernel.h"

namespace okl {
namespace {

inline constexpr int64_t kCompiledPackStep = 16;

uint32_t pack_block(const PackTile* tile) {
  Bytes16 seen = {};
  for (int64_t input = 0; input < tile->inputs; input += kCompiledPackStep) {
    for (int half = 0; half < 32; half += 16) {
      const uint8_t* low = tile->codes + half * tile->ld + input;
      const uint8_t* high = low + 32 * tile->ld;
      Bytes16 rows[16];
      for (int i = 0; i < 16; ++i) {
        const Bytes16 a = load16(low + i * tile->ld), b = load16(high + i * tile->ld);
        seen |= a | b;
        rows[i] = a | b << 4;
      }
      transpose_16x16(rows);
      for (int i = 0; i < 16; ++i) store16(tile->out + (input + i) * 32 + half, rows[i]);
    }
  }
  uint32_t all = 0;
  for (int i = 0; i < 16; ++i) all |= seen[i];
  return all & 0xF0;
}

}  // namespace
}  // namespace okl
