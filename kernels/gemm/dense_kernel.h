// SPDX-License-Identifier: Apache-2.0
// The contract between DensePlan and its kernels: row tiles of prepared x times one block of 64 channels (or the tail of 16, 32 or
// 48) of w16, w32 or w8s weights, over a chunk of K.
//
// A chunk is all of K where one row tile streams through the weights. With more tiles it is short, so that its weights stay in the
// cache while every tile comes by; sums then wait in memory between chunks. Where weights need converting, the first tile leaves
// what it converted in a panel and the others read that. docs/numerics.md fixes every rounding.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/dispatch/kernel.h"

namespace okl {

inline constexpr int kBlockWidth = 64;

// In which order the inputs of a pair are multiplied and where they stand in rows of fp32 ("slots").
enum class DenseOrder : uint8_t {
  kAscending,  // slot i = input i; exactly K of them are used
  kOddFirst    // slots 2j and 2j+1 = inputs 2j+1 and 2j; missing inputs are +0
};

// The element of prepared rows and of panels.
enum class DenseElement : uint8_t {
  kFloat,    // fp32, in slots
  kBf16Pair  // bf16 in the order of inputs, for VDPBF16PS, which takes the odd one of a pair first
};

// What a tile does with weights.
enum class DensePanel : uint8_t {
  kNone,  // reads packed weights
  kFill,  // reads packed weights and stores the converted ones in the panel
  kRead   // reads the panel: [slots][width] of fp32, or [pairs][width] of bf16 pairs
};

// Everything a generator specialises on: the whole of it is the cache key, so no padding. K is not part of it.
struct DenseConfig {
  uint32_t group;          // w8s: inputs of one scale, 0 where K is one group; else 0
  uint16_t weights;        // omni_format
  uint16_t scale_type;     // omni_dtype, OMNI_DTYPE_NONE for w16 and w32
  uint16_t y_type;         // omni_dtype
  uint16_t residual_type;  // omni_dtype
  uint8_t epilogue;        // OMNI_EPILOGUE_*
  DenseOrder order;
  uint8_t rows;         // 1..max_rows of the kernel
  uint8_t block_width;  // 64, or the tail's 16, 32 or 48
  DensePanel panel;
  uint8_t alone;          // 1: no other tile comes by the chunk
  uint16_t panel_inputs;  // that a panel has room for

  bool has_scales() const { return scale_type != OMNI_DTYPE_NONE; }
};

// Arguments of one call, passed by pointer. Strides are in bytes.
struct DenseTile {
  const uint8_t* weights;  // packed, of the block at the first input of the chunk
  uint8_t* panel;          // kFill, kRead
  const uint8_t* ahead;    // what comes next from memory: may be asked for, up to ahead_end
  const uint8_t* ahead_end;
  const uint8_t* x;       // first row at the first input of the chunk, prepared
  int64_t x_row;          // from one row to the next
  int64_t inputs;         // of the chunk: with groups a multiple of the group but for the end of K, else of 32
  int64_t tiles;          // row tiles of config.rows rows, >= 1
  float* sums;            // [tiles * rows][64]: sums between chunks, and between groups; whole cache lines
  const uint8_t* scales;  // of the first group of the chunk, first channel of the block
  int64_t scale_stride;   // from one group to the next
  uint8_t* y;             // first row, first channel of the block
  int64_t ldy;
  const float* bias;        // first channel of the block
  const uint8_t* residual;  // as y
  int64_t ld_residual;
  uint64_t channels;          // bit c: channel c is wanted; scales, bias, residual and y of others are not touched
  uint32_t first, last;       // 1: the chunk begins K, ends K
  const DenseConfig* config;  // for compiled kernels
};
using DenseTileFn = void (*)(const DenseTile*);

struct DenseCode {
  DenseTileFn run = nullptr;  // nullptr: executable memory was refused
  size_t bytes = 0;           // of machine code, 0 for a compiled kernel
};

struct DenseKernel {
  uint8_t max_rows;
  DenseElement element;
  bool has_panel;  // several row tiles share a panel; else every tile reads packed weights
  // Tiles of more than one row pass over a block's weights several times: K is cut into chunks for them, too.
  bool several_passes;
  DenseCode (*make)(const DenseConfig& config, std::string_view name);
};

}  // namespace okl
