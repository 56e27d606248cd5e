// SPDX-License-Identifier: Apache-2.0
// The contract between the dequantisation driver and its kernels: w = fma(q - 8, s, z) of tg4 codes, stored as fp32 or rounded to
// bf16 (nearest even, subnormals kept), any NaN as 0x7FC00000 or 0x7FC0.
//
// A kernel works on inputs of one group, so that each channel has one scale and one zero. It never allocates, threads, prints or
// keeps state.
#pragma once

#include <cstdint>
#include <string_view>

#include "kernels/dispatch/kernel.h"
#include "omni/dequant.h"

namespace okl {

// What code is specialised on; the whole of it is the cache key, so no padding.
struct DequantConfig {
  uint16_t scale_type;  // OMNI_DTYPE_BF16 or OMNI_DTYPE_F32
  uint16_t out_type;    // likewise
  uint16_t order;       // omni_order
  uint16_t streaming;   // 1: out and ld_out are multiples of 64 bytes, and stores may bypass the caches
};

// All 64 channels of a whole block.
struct DequantTile {
  const uint8_t* codes;  // first input of the portion: 32 bytes an input
  const void* scales;    // (scale, zero) of the block's 64 channels in the portion's group
  uint8_t* out;          // element of channel 0 and the first input; aligned to its element
  int64_t ld_out;        // bytes from one row of the result to the next
  int64_t inputs;        // a multiple of DequantKernel::step, 0..kDequantInputs
};
inline constexpr int64_t kDequantInputs = 256;

// Any channels of any block, any number of inputs.
struct DequantEdge {
  const uint8_t* codes;   // first input of the portion
  int64_t width;          // channels that the block stores: 64, or the tail's 16, 32 or 48
  int64_t first_channel;  // of the block
  int64_t channels;
  const void* scales;  // of the block's channel 0
  uint8_t* out;        // element of first_channel and the first input
  int64_t ld_out;
  int64_t inputs;
};

using DequantFn = void (*)(const DequantTile*);
using DequantEdgeFn = void (*)(const DequantEdge*);

struct DequantKernel {
  int64_t step;
  bool streams;                                                           // knows what to do with DequantConfig::streaming
  DequantFn (*make)(const DequantConfig& config, std::string_view name);  // nullptr when executable memory is refused
  DequantEdgeFn (*edge)(const DequantConfig& config);                     // compiled, never nullptr
};

// Compiled code for one ISA, by configuration.
struct DequantCode {
  DequantFn tile;
  DequantEdgeFn edge;
};
DequantCode dequant_portable_code(const DequantConfig& config);
DequantCode dequant_avx2_code(const DequantConfig& config);
DequantCode dequant_avx512_code(const DequantConfig& config);

}  // namespace okl
