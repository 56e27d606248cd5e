// SPDX-License-Identifier: Apache-2.0
// The generated kernels of class exact as implementations of registry rows.
#include "jit/x64/exact_avx2.h"
#include "jit/x64/exact_avx512.h"
#include "kernels/gemm/exact_kernel.h"

namespace okl {
namespace {

// Rows of a call: 132 take 44.2 ms for 512 rows of 13312x2048 on one core of Emerald Rapids, 84 take 44.9 and 36 take 50.4.
constexpr uint16_t kPanelRows = 132;
// The first tile unpacks, which hides memory behind products: 13312x2048 from memory on one core of Emerald Rapids takes 1420 us
// for 11 rows on the direct path and 1210 for 12 rows with a panel. Up to six rows are one tile and would only pay for it.
constexpr uint16_t kPanelFromW4 = 7;
// There is less to unpack and twice as much to copy: 8 rows take 2080 us on the direct path and 2450 with a panel, 16 rows 2760 and
// 2390.
constexpr uint16_t kPanelFromW8 = 12;

size_t panel_bytes(const ExactConfig& config) {
  return config.path == ExactPath::kPanel ? jit::ExactX64::panel_scratch(config) : 0;
}

}  // namespace

// Tiles that share the weights in first-level cache.
constexpr uint16_t kDirectTiles = 4;

extern const ExactKernel exact_w4s_avx512vnni, exact_w8s_avx512vnni, exact_avx512f, exact_avxvnni, exact_w4s_avx2, exact_w8s_avx2;
const ExactKernel exact_w4s_avx512vnni = {jit::ExactAvx512Vnni::kDirectTile, kPanelRows, kPanelFromW4, &panel_bytes,
                                          &jit::make_exact<jit::ExactAvx512Vnni>};
const ExactKernel exact_w8s_avx512vnni = {jit::ExactAvx512Vnni::kDirectTile, kPanelRows, kPanelFromW8, &panel_bytes,
                                          &jit::make_exact<jit::ExactAvx512Vnni>};
const ExactKernel exact_avx512f = {kDirectTiles * jit::ExactAvx512Bw::kDirectTile, 0, 0, nullptr,
                                   &jit::make_exact<jit::ExactAvx512Bw>};
const ExactKernel exact_avxvnni = {kDirectTiles * jit::ExactAvxVnni::kDirectTile, 0, 0, nullptr,
                                   &jit::make_exact<jit::ExactAvxVnni>};
const ExactKernel exact_w4s_avx2 = {kDirectTiles * jit::ExactAvx2::kDirectTileW4, 0, 0, nullptr, &jit::make_exact<jit::ExactAvx2>};
const ExactKernel exact_w8s_avx2 = {kDirectTiles * jit::ExactAvx2::kDirectTileW8, 0, 0, nullptr, &jit::make_exact<jit::ExactAvx2>};

}  // namespace okl
