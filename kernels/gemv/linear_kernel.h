// SPDX-License-Identifier: Apache-2.0
// The contract between the linear driver and its kernels (large batches: panel_kernel.h): y[m][n0, n1) = x * W^T on one row tile.
//
// A kernel works on whole 64-channel blocks (or the one tail block of 16, 32 or 48 channels) of `tg4` weights and on `rows` rows
// of x that prepare.h has laid out. It never allocates, threads, prints or keeps state. docs/numerics.md fixes every rounding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/dispatch/kernel.h"

namespace okl {

inline constexpr int kBlockChannels = 64;

// The elements of prepared rows: [rows][pad32(K)], zeros beyond K.
enum class XForm : uint8_t {
  kPairs,  // bf16: a dword is a pair, input 2j in the low half, 2j+1 in the high one
  kFloats  // fp32
};

// Everything a generator specialises on: the whole of it is the cache key, so no padding.
struct LinearConfig {
  int64_t k;               // inputs
  int64_t group;           // inputs of one scale; K when there is one group
  uint16_t scale_type;     // omni_dtype
  uint16_t y_type;         // omni_dtype
  uint16_t residual_type;  // omni_dtype
  uint8_t epilogue;        // OMNI_EPILOGUE_*
  Numerics numerics;
  uint8_t rows;         // 1..max_rows of the kernel
  uint8_t block_width;  // 64, or the tail's 16, 32 or 48
  uint8_t zero[6];

  // Always inline: leaf files of several ISAs call them.
  [[gnu::always_inline]] int64_t padded_k() const { return (k + 31) / 32 * 32; }
  [[gnu::always_inline]] int64_t groups() const { return (k + group - 1) / group; }
  [[gnu::always_inline]] int64_t inputs_in_group(int64_t g) const { return (g + 1) * group < k ? group : k - g * group; }
  // The same with K's padding. Class group may run over it: x is +0 there, and d = fma(+0, w, d) keeps d, which is never -0.
  [[gnu::always_inline]] int64_t padded_inputs_in_group(int64_t g) const {
    return (g + 1) * group < k ? group : padded_k() - g * group;
  }
};

// Arguments of one call, passed by pointer. Strides are in bytes.
struct LinearTile {
  const uint8_t* codes;   // first block
  const uint8_t* scales;  // group 0, first channel of the first block
  int64_t scale_stride;   // from one group to the next: N * 2 * sizeof(scale)
  const void* x;          // prepared rows
  const float* sums;      // X of class group: [groups][rows]
  uint8_t* y;             // row 0, first channel of the first block
  int64_t ldy;
  const float* bias;        // first channel of the first block
  const uint8_t* residual;  // as y
  int64_t ld_residual;
  uint64_t channels;           // bit c: channel c of each block is wanted; scales, bias and residual of others are not touched
  int64_t blocks;              // consecutive blocks, >= 1
  const LinearConfig* config;  // for compiled kernels
};

using LinearTileFn = void (*)(const LinearTile*);

struct LinearCode {
  LinearTileFn run = nullptr;
  size_t bytes = 0;  // of machine code, 0 for a compiled kernel
};

struct PanelKernel;  // panel_kernel.h

struct LinearKernel {
  XForm x_form;
  uint8_t max_rows;
  // The code for one configuration under the row's name; run == nullptr when executable memory is refused.
  LinearCode (*make)(const LinearConfig& config, std::string_view name);
  // What serves batches that fill several tiles; nullptr: tile by tile.
  const PanelKernel* panel = nullptr;
};

}  // namespace okl
