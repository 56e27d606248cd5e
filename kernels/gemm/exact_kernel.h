// SPDX-License-Identifier: Apache-2.0
// The contract between the driver of class exact (exact_plan.cc) and its kernels: s8 rows times w4s or w8s weights in exact
// integers. docs/numerics.md fixes every rounding:
//
//   C = bias or +0;  for each block b of inputs:  C = fma(float(sum_b) * x_scale, w_scale, C);  sum_b = sum of x * (q - zero),
//   exact y = store(C) or store(r + C)
//
// A kernel works on rows x whole channel blocks of a portion: no allocation, no threads, no state.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/dispatch/kernel.h"

namespace okl {

inline constexpr int kExactBlockChannels = 64;
// Most inputs of one exact sum: 131,071 * 128 * 128 fits an int32.
inline constexpr int64_t kExactMostBlock = 131'071;

// A kernel may have two kinds of code: for few rows, straight from the packed weights, and for many, through an unpacked panel in
// scratch. The driver takes the panel from panel_from rows on.
enum class ExactPath : uint8_t { kDirect, kPanel };

// Everything a generator specialises on: the whole of it is the cache key, so no padding.
struct ExactConfig {
  int64_t k;               // inputs
  int64_t group;           // inputs of one scale; K when there is one group
  int64_t block;           // inputs of one exact sum: w4s min(group, 128), w8s group. All but the last are a multiple of 32
  uint16_t weights;        // OMNI_FORMAT_W4S or OMNI_FORMAT_W8S
  uint16_t scale_type;     // omni_dtype
  uint16_t y_type;         // omni_dtype
  uint16_t residual_type;  // omni_dtype
  uint16_t rows;           // most rows of a call
  uint8_t epilogue;        // OMNI_EPILOGUE_*
  uint8_t block_width;     // channels stored in a block: 64, or a tail's 32 (w4s), 16, 32 or 48 (w8s)
  bool zeros;              // w4s: zero points come with the weights; else every zero is 8. w8s: false, every zero is 0
  ExactPath path;
  uint8_t zero[2];

  // Always inline: leaf files of several ISAs call them.
  [[gnu::always_inline]] bool is_w4() const { return weights == OMNI_FORMAT_W4S; }
  [[gnu::always_inline]] int64_t padded_k() const { return (k + 31) / 32 * 32; }
  [[gnu::always_inline]] int64_t groups() const { return (k + group - 1) / group; }
  [[gnu::always_inline]] int64_t blocks() const { return (k + block - 1) / block; }
  // With K's padding, where x is 0.
  [[gnu::always_inline]] int64_t padded_inputs_in_block(int64_t b) const {
    return (b + 1) * block < k ? block : padded_k() - b * block;
  }
  [[gnu::always_inline]] int64_t blocks_in_group() const { return (group + block - 1) / block; }
  // Bytes of four inputs of a channel block, and of the channel block.
  [[gnu::always_inline]] int64_t step_bytes() const { return block_width * (is_w4() ? 2 : 4); }
  [[gnu::always_inline]] int64_t block_bytes() const { return padded_k() / 4 * step_bytes(); }
  [[gnu::always_inline]] int64_t scale_bytes() const { return scale_type == OMNI_DTYPE_F32 ? 4 : 2; }
  // Bytes of a prepared row: a multiple of 64 that covers K, and an odd one, so that the same input of neighbouring rows never
  // stands 4 KiB apart.
  [[gnu::always_inline]] int64_t row_bytes() const { return ((k + 63) / 64 | 1) * 64; }
};

// What accumulators of unsigned weights begin with, so that zero points need no correction at the end. S is the sum of x over the
// block:
//
//   w4s, zero 8        -8 S for sums of codes; -136 S for sums of bytes, 16 * (high - 8) + (low - 8)
//   w4s, zero points   -S twice, for the kernel to multiply; its low 16 bits hold it
//   w8s                -128 S twice, for sums of (weight + 128)
struct ExactStarts {
  int32_t first, second;

  [[gnu::always_inline]] ExactStarts(const ExactConfig& config, int32_t sum)
      : first(config.zeros     ? -sum
              : config.is_w4() ? -8 * sum
                               : -128 * sum),
        second(config.is_w4() && !config.zeros ? -136 * sum : first) {}
};

// Arguments of one call, passed by pointer. Strides are in bytes.
struct ExactTile {
  const uint8_t* codes;   // first channel block; the next is config->block_bytes() further
  const uint8_t* scales;  // group 0, first channel of the first channel block
  int64_t scale_stride;   // from one group to the next: N * sizeof(scale)
  const uint8_t* zeros;   // as scales, one byte each; nullptr without zero points
  int64_t zero_stride;    // N
  const int8_t* x;        // row 0: s8, zeros from K to the end of the row; 64-byte aligned
  int64_t x_stride;       // config->row_bytes()
  const int32_t* sums;    // [rows][config->blocks()], sum of x over each block of inputs
  const int32_t* starts;  // [rows][config->blocks()][2], see ExactStarts
  const float* x_scales;  // [rows]; NaN makes a NaN row
  uint8_t* y;             // row 0, first channel of the first channel block
  int64_t ldy;
  const float* bias;        // first channel of the first channel block
  const uint8_t* residual;  // as y
  int64_t ld_residual;
  uint64_t channels;  // bit c: channel c of each block is wanted; scales, zeros, bias, residual and y of others are not touched
  int64_t blocks;     // consecutive channel blocks, >= 1
  int64_t rows;       // 1..config->rows
  void* scratch;      // scratch_bytes of the kernel, 64-byte aligned
  const ExactConfig* config;  // for compiled kernels
};

using ExactTileFn = void (*)(const ExactTile*);

struct ExactCode {
  ExactTileFn run = nullptr;
  size_t bytes = 0;  // of machine code, 0 for a compiled kernel
};

// What a registry row of class exact points to.
struct ExactKernel {
  uint16_t direct_rows;  // most rows of a call of the direct path, >= 1
  uint16_t panel_rows;   // most rows of a call of the panel path; 0: there is none
  uint16_t panel_from;   // runs of this many rows and more take the panel
  // Bytes of scratch that a call with `config` needs, a multiple of 64, at most 256 KiB; nullptr: none. The panel path of a
  // configuration that needs none is left out.
  size_t (*scratch_bytes)(const ExactConfig& config);
  // The code for one configuration under the row's name; run == nullptr when executable memory is refused.
  ExactCode (*make)(const ExactConfig& config, std::string_view name);
};

}  // namespace okl
