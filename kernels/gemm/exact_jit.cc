// SPDX-License-Identifier: Apache-2.0
// The generated kernels of class exact as implementations of registry rows.
#include "jit/x64/exact_avx512.h"
#include "kernels/gemm/exact_kernel.h"

namespace okl {
namespace {

// A chunk of rows whose x, C and panel stay in 48 KiB of first-level cache beside the weights that come in.
constexpr uint16_t kPanelRows = 84;
constexpr uint16_t kPanelFrom = 15;

// int8 weights with one scale a channel have one block of inputs, which no cache holds unpacked; there is little to unpack, too.
constexpr int64_t kMostPanelInputs = 256;

size_t panel_bytes(const ExactConfig& config) {
  if (config.path != ExactPath::kPanel || config.block > kMostPanelInputs) return 0;
  return static_cast<size_t>((config.block + 31) / 32 * 32) * config.block_width + size_t{kPanelRows} * kExactBlockChannels * 4;
}

}  // namespace

extern const ExactKernel exact_avx512vnni, exact_avx512f;
const ExactKernel exact_avx512vnni = {jit::ExactAvx512Vnni::kDirectRows, kPanelRows, kPanelFrom, &panel_bytes,
                                      &jit::make_exact<jit::ExactAvx512Vnni>};
const ExactKernel exact_avx512f = {jit::ExactAvx512Bw::kDirectRows, 0, 0, nullptr, &jit::make_exact<jit::ExactAvx512Bw>};

}  // namespace okl
