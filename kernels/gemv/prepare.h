// SPDX-License-Identifier: Apache-2.0
// Lays out the rows of x for the kernels: scrub, widen or pair up, interleave the rows of a tile, sum each group.
#pragma once

#include <cstddef>
#include <cstdint>

#include "kernels/gemv/linear_kernel.h"

namespace okl {

// m rows are cut into ceil(m / max_rows) tiles whose sizes differ by at most one: 16 rows are 6 + 5 + 5, never 6 + 6 + 4.
struct RowTiles {
  uint32_t m, tiles;
  RowTiles(uint32_t rows, uint32_t max_rows) : m(rows), tiles((rows + max_rows - 1) / max_rows) {}
  uint32_t first(uint32_t tile) const { return static_cast<uint32_t>(uint64_t{m} * tile / tiles); }
  uint32_t rows(uint32_t tile) const { return first(tile + 1) - first(tile); }
};

// The workspace: the panels of all tiles, then the group sums of all tiles. Row counts do not change the size of a row's share.
struct WorkspaceLayout {
  size_t row_bytes;  // of a panel: pad32(K) inputs, a multiple of 64
  size_t sum_bytes;  // of one row: ceil(K / g) floats, 0 in class torch

  WorkspaceLayout(const LinearConfig& config, XForm form)
      : row_bytes(static_cast<size_t>(config.padded_k()) * (form == XForm::kPairs ? 2 : 4)),
        sum_bytes(config.numerics == Numerics::kGroup ? static_cast<size_t>(config.groups()) * 4 : 0) {}
  size_t total(uint32_t m) const { return (row_bytes + sum_bytes) * m; }
  size_t panel(uint32_t first_row) const { return row_bytes * first_row; }
  size_t sums(uint32_t m, uint32_t first_row) const { return row_bytes * m + sum_bytes * first_row; }
};

struct PrepareArgs {
  const LinearConfig* config;  // k, group and numerics are read
  XForm form;
  uint32_t m, max_rows;
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
