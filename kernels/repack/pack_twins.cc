// SPDX-License-Identifier: Apache-2.0
// Objects of the rows whose code stands in leaf files: those hold functions only.
#include "kernels/repack/pack_kernel.h"

namespace okl {

uint32_t pack_block_avx2(const PackTile* tile);
uint32_t pack_block_avx512(const PackTile* tile);

extern const PackKernel pack_tg4_twinavx2, pack_tg4_twinavx512;
const PackKernel pack_tg4_twinavx2 = {16, [](std::string_view) -> PackFn { return pack_block_avx2; }};
const PackKernel pack_tg4_twinavx512 = {16, [](std::string_view) -> PackFn { return pack_block_avx512; }};

}  // namespace okl
