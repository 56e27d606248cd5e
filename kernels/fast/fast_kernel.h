// SPDX-License-Identifier: Apache-2.0
// The contract between the driver of class fast (fast_plan.cc) and its kernels: bf16 rows times tg4 or w16 weights by instructions
// whose order of additions is theirs. docs/numerics.md states the bound that results keep; no bits are promised.
//
// A kernel works on rows x whole channel blocks of a portion: no allocation, no threads, no state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/dispatch/kernel.h"

namespace okl {

inline constexpr int kFastBlockChannels = 64;

// Everything a generator specialises on: the whole of it is the cache key, so no padding.
struct FastConfig {
  int64_t k;            // inputs
  int64_t group;        // inputs of one scale; K when there is one group, and with w16
  int64_t block;        // inputs that are summed before a fold: tg4 min(group, 128), w16 K. All but the last are a multiple of 32
  uint16_t weights;     // OMNI_FORMAT_TG4 or OMNI_FORMAT_W16
  uint16_t scale_type;  // omni_dtype
  uint16_t y_type;      // omni_dtype
  uint16_t residual_type;  // omni_dtype
  uint16_t rows;           // most rows of a call
  uint8_t epilogue;        // OMNI_EPILOGUE_*
  uint8_t block_width;     // channels stored in a block: 64, or a tail's 16, 32 or 48
  uint8_t zero[4];

  bool is_w4() const { return weights == OMNI_FORMAT_TG4; }
  int64_t padded_k() const { return (k + 31) / 32 * 32; }
  int64_t groups() const { return (k + group - 1) / group; }
  int64_t blocks() const { return (k + block - 1) / block; }
  // Bytes of a prepared row: a multiple of 64 that covers K, and an odd one, so that the same input of neighbouring rows never
  // stands 4 KiB apart.
  int64_t row_bytes() const { return (padded_k() * 2 / 64 | 1) * 64; }
};

// Arguments of one call, passed by pointer. Strides are in bytes.
struct FastTile {
  const uint8_t* codes;   // first channel block
  const uint8_t* scales;  // tg4: group 0, first channel of the first channel block, as (scale, zero)
  int64_t scale_stride;   // from one group to the next
  const uint16_t* x;      // row 0: bf16, +0 from K to the end of the row; 64-byte aligned
  int64_t x_stride;       // config->row_bytes()
  const float* sums;      // tg4: [rows][config->blocks()], sum of x over each block of inputs
  uint8_t* y;             // row 0, first channel of the first channel block
  int64_t ldy;
  const float* bias;        // first channel of the first channel block
  const uint8_t* residual;  // as y
  int64_t ld_residual;
  uint64_t channels;  // bit c: channel c of each block is wanted; scales, bias, residual and y of others are not touched
  int64_t blocks;     // consecutive channel blocks, >= 1
  int64_t rows;       // 1..config->rows
  void* scratch;      // scratch_bytes of the kernel, 64-byte aligned
};

using FastTileFn = void (*)(const FastTile*);

struct FastCode {
  FastTileFn run = nullptr;
  size_t bytes = 0;  // of machine code
};

// What a registry row of class fast points to.
struct FastKernel {
  uint16_t max_rows;  // of a call
  // Bytes of scratch that a call with `config` needs, a multiple of 64, at most 256 KiB.
  size_t (*scratch_bytes)(const FastConfig& config);
  // The code for one configuration under the row's name; run == nullptr when executable memory is refused.
  FastCode (*make)(const FastConfig& config, std::string_view name);
};

}  // namespace okl
