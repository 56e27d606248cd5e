// SPDX-License-Identifier: Apache-2.0
// The contract between the driver of large batches (panel_run.h) and its kernels: one chunk of kPanelInputs inputs of one block of
// channels is unpacked into a panel that stays in L1 or L2, then every row tile of a span runs over it.
//
// The panel holds q - 8 (class group, as fp32 or as bf16 pairs) or fma(q - 8, s, z) (class torch). Chains that a chunk cuts wait in
// `d` (class group: where groups are longer than a chunk) or in `c` (class torch); c of class group takes one fold for each group.
#pragma once

#include "kernels/gemv/linear_kernel.h"

namespace okl {

inline constexpr int64_t kPanelInputs = 128;  // 32 KiB of fp32 for 64 channels: the panel and a row tile fit an L1 of 48 KiB
inline constexpr int kPanelSegments = 4;      // groups of 32 in a chunk

// What a generator specialises on; the whole of it is the cache key, so no padding. K and N are arguments of a call.
struct PanelConfig {
  uint16_t scale_type, y_type, residual_type;  // omni_dtype
  uint8_t epilogue;                            // OMNI_EPILOGUE_*
  Numerics numerics;
  uint8_t rows;         // of the larger tiles of a span; the others have one row less
  uint8_t block_width;  // 64, or the tail's 16, 32 or 48
  uint8_t long_groups;  // 1: groups have more than kPanelInputs inputs
  uint8_t zero;
};

// Arguments of one call, passed by pointer.
struct PanelCall {
  LinearTile tile;  // codes, scales, x and sums of the chunk; y, bias and residual of the span. blocks and config are not read
  int64_t large_tiles, small_tiles;
  const float* small_sums;  // as tile.sums, which is that of the large tiles
  int64_t sums_row_bytes;   // X of one row: ceil(K / g) * 4; a tile of r rows has r times that
  int64_t segments;         // groups in this chunk, or the one that it is part of
  int64_t segment_inputs;   // of each but the last; both with K's padding, multiples of 32
  int64_t last_segment_inputs;
  int64_t inputs;                    // class torch: of the chunk without padding
  int64_t finish_rows;               // rows of the span after the last chunk of K, 0 before: epilogue and store
  float* panel;                      // kPanelInputs * 64 floats
  float* group_scales;               // [segments][scale, zero][block_width]
  float* c;                          // [rows of the span][block_width]
  float* d;                          // likewise, with long groups
  uint8_t first;                     // c begins at +0
  uint8_t begins_group, ends_group;  // with long groups
};

using PanelFn = void (*)(const PanelCall*);

struct PanelCode {
  PanelFn run = nullptr;
  size_t bytes = 0;
};

struct PanelKernel {
  uint8_t max_rows;   // of a tile
  uint8_t from_rows;  // runs of fewer rows are faster without a panel
  PanelCode (*make)(const PanelConfig& config, std::string_view name);
};

}  // namespace okl
