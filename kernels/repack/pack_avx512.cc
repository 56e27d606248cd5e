// SPDX-License-Identifier: Apache-2.0
#include "kernels/repack/pack_block.inl"

namespace okl {

uint32_t pack_block_avx512(const PackTile* tile) { return pack_block(tile); }

}  // namespace okl
