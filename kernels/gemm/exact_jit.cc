// SPDX-License-Identifier: Apache-2.0
// The generated kernels of class exact as implementations of registry rows.
#include "jit/x64/exact_avx2.h"
#include "jit/x64/exact_avx512.h"
#include "kernels/gemm/exact_kernel.h"

namespace okl {
namespace {

// A chunk of rows whose x, C and panel stay in 48 KiB of first-level cache beside the weights that come in.
constexpr uint16_t kPanelRows = 84;
// The first tile unpacks, which hides memory behind products: 13312x2048 from memory on one core of Emerald Rapids takes 1420 us for
// 11 rows on the direct path and 1210 for 12 rows with a panel. Up to six rows are one tile and would only pay for it.
constexpr uint16_t kPanelFrom = 7;

// int8 weights with one scale a channel have one block of inputs, which no cache holds unpacked; there is little to unpack, too.
constexpr int64_t kMostPanelInputs = 256;

size_t panel_bytes(const ExactConfig& config) {
  if (config.path != ExactPath::kPanel || config.block > kMostPanelInputs) return 0;
  return static_cast<size_t>((config.block + 31) / 32 * 32) * config.block_width + size_t{kPanelRows} * kExactBlockChannels * 4;
}

}  // namespace

// Tiles that share the weights in first-level cache.
constexpr uint16_t kDirectTiles = 4;

extern const ExactKernel exact_avx512vnni, exact_avx512f, exact_avxvnni, exact_w4s_avx2, exact_w8s_avx2;
const ExactKernel exact_avx512vnni = {jit::ExactAvx512Vnni::kDirectTile, kPanelRows, kPanelFrom, &panel_bytes,
                                      &jit::make_exact<jit::ExactAvx512Vnni>};
const ExactKernel exact_avx512f = {kDirectTiles * jit::ExactAvx512Bw::kDirectTile, 0, 0, nullptr,
                                   &jit::make_exact<jit::ExactAvx512Bw>};
const ExactKernel exact_avxvnni = {kDirectTiles * jit::ExactAvxVnni::kDirectTile, 0, 0, nullptr,
                                   &jit::make_exact<jit::ExactAvxVnni>};
const ExactKernel exact_w4s_avx2 = {kDirectTiles * jit::ExactAvx2::kDirectTileW4, 0, 0, nullptr, &jit::make_exact<jit::ExactAvx2>};
const ExactKernel exact_w8s_avx2 = {kDirectTiles * jit::ExactAvx2::kDirectTileW8, 0, 0, nullptr, &jit::make_exact<jit::ExactAvx2>};

}  // namespace okl
