// SPDX-License-Identifier: Apache-2.0
// Lays out the rows of x for the kernels: scrub, widen, cut into chunks along K, sum each group.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>

#include "kernels/gemv/prepare_kernel.h"

namespace okl {

// m rows are cut into ceil(m / max_rows) tiles whose sizes differ by at most one, the larger ones first: 16 rows are 6 + 5 + 5,
// never 6 + 6 + 4.
struct RowTiles {
  uint32_t m, tiles, large;  // `large` tiles of largest() rows, then tiles of one less
  RowTiles(uint32_t rows, uint32_t max_rows)
      : m(rows), tiles((rows + max_rows - 1) / max_rows), large(tiles == 0 ? 0 : m - smaller() * tiles) {}
  uint32_t smaller() const { return largest() - 1; }
  uint32_t largest() const { return tiles == 0 ? 1 : (m + tiles - 1) / tiles; }
  uint32_t first(uint32_t tile) const { return tile * smaller() + (tile < large ? tile : large); }
  uint32_t rows(uint32_t tile) const { return tile < large ? largest() : smaller(); }
};

// The workspace: x in chunks along K, then the group sums of all tiles.
//
// A chunk is a power of two, or all of pad32(K).
//
//   x      [ceil(pad32(K) / chunk)][m][chunk]   a row of a chunk is contiguous: bf16 or fp32, zeros up to pad32(K)
//   sums   [tile][ceil(K / g)][rows of the tile]   fp32; none in class torch
//
// Kernels that go through all of K a tile at a time have one chunk. The size of a row's share does not depend on m.
struct WorkspaceLayout {
  int64_t chunk;         // inputs
  int chunk_shift;       // k >> chunk_shift is the chunk of input k
  size_t element_bytes;  // 2 (kPairs) or 4 (kFloats)
  size_t row_bytes;      // of x in all chunks, a multiple of 64
  size_t sum_bytes;      // of one row

  WorkspaceLayout(const LinearConfig& config, XForm form, int64_t chunk_inputs)
      : chunk(chunk_inputs),
        chunk_shift(chunk_inputs >= config.padded_k() ? 63 : std::countr_zero(static_cast<uint64_t>(chunk_inputs))),
        element_bytes(form == XForm::kPairs ? 2 : 4),
        row_bytes(static_cast<size_t>((config.padded_k() + chunk - 1) / chunk * chunk) * element_bytes),
        sum_bytes(config.numerics == Numerics::kGroup ? static_cast<size_t>(config.groups()) * 4 : 0) {}
  size_t total(uint32_t m) const { return (row_bytes + sum_bytes) * m; }
  size_t row_stride() const { return static_cast<size_t>(chunk) * element_bytes; }  // inside a chunk
  size_t x(uint32_t m, int64_t chunk_index, uint32_t row) const {
    return (static_cast<size_t>(chunk_index) * m + row) * row_stride();
  }
  // The first of `inputs` inputs from k on that share a chunk with input k.
  int64_t within_chunk(int64_t k, int64_t inputs) const {
    const int64_t left = chunk - (k - (k >> chunk_shift) * chunk);
    return inputs < left ? inputs : left;
  }
  size_t sums(uint32_t m, uint32_t first_row) const { return row_bytes * m + sum_bytes * first_row; }
};

struct PrepareArgs {
  const PrepareKernel* kernel;
  const LinearConfig* config;  // k, group and numerics are read
  XForm form;
  int64_t chunk;
  uint32_t m;
  RowTiles tiles;
  omni_dtype x_type;
  const void* x;
  int64_t ldx;
  const int32_t* permutation;  // checked by the caller, or nullptr
  uint8_t* workspace;
};

// Fills the workspace for the rows of tiles [first_tile, last_tile). Never allocates. Class group: |x| < 2^-119 becomes +0 and X =
// the pair chain with weights 1.
void prepare_rows(const PrepareArgs& args, uint32_t first_tile, uint32_t last_tile);

}  // namespace okl
