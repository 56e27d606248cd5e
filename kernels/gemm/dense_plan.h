// SPDX-License-Identifier: Apache-2.0
// The dense family: class dense on w16 and w32 weights, and class group on w8s weights (W8A16).
#pragma once

#include <array>

#include "kernels/format/blocks64.h"
#include "kernels/gemm/dense_kernel.h"
#include "kernels/gemm/dense_prepare.h"
#include "kernels/linear/linear_plan.h"

namespace okl {

inline constexpr uint32_t kMostDenseTileRows = 8;
// Inputs of a chunk where several tiles share its weights: 32 KiB of fp32 for 64 channels, so that the panel and the rows of a tile
// stay in an L1 of 48 KiB. Groups are not cut.
inline constexpr uint32_t kDenseChunkInputs = 128;
// How far ahead of its loads a kernel asks for weights that it streams through: the hardware prefetcher stops at page ends.
inline constexpr int64_t kDenseStreamAhead = 16384;
inline constexpr size_t kDenseSumRowBytes = 64 * sizeof(float);

// What follows from the facts of a query, for every plan over these kernels.
int64_t dense_element_bytes(uint16_t type);  // 4, 2, or 0 for none
const Blocks64& dense_blocks(uint16_t format);
DenseConfig dense_config(const LinearFacts& facts);     // rows, block_width and panel are 0
uint16_t dense_scrub_below(const DenseConfig& config);  // 0: nothing is scrubbed

// m rows as ceil(m / most) tiles whose sizes differ by at most one, the larger ones first.
struct DenseTiles {
  uint32_t m, tiles, smaller, larger_tiles;  // `larger_tiles` tiles of smaller + 1 rows, then tiles of `smaller`

  DenseTiles(uint32_t rows, uint32_t most)
      : m(rows), tiles((rows + most - 1) / most), smaller(tiles == 0 ? 0 : rows / tiles), larger_tiles(rows - smaller * tiles) {}
  uint32_t first(uint32_t tile) const { return tile * smaller + (tile < larger_tiles ? tile : larger_tiles); }
  uint32_t rows(uint32_t tile) const { return smaller + (tile < larger_tiles ? 1 : 0); }
};

// Which tile of a chunk.
enum class DenseRole : uint8_t { kAlone, kFirst, kOther };

// The code of one registry row for one query: by role, block kind (full or tail) and tile rows.
class DenseCodeSet {
 public:
  // False when executable memory was refused.
  bool make(const KernelRow& row, const DenseConfig& base, int64_t n, uint32_t max_m);

  const DenseKernel& kernel() const { return *kernel_; }
  uint32_t max_rows() const { return max_rows_; }
  size_t code_bytes() const { return code_bytes_; }

  struct Entry {
    DenseConfig config{};
    DenseTileFn run = nullptr;
  };
  const Entry& entry(DenseRole role, bool tail, uint32_t rows) const { return entries_[static_cast<size_t>(role)][tail][rows]; }

 private:
  bool make_entry(const KernelRow& row, DenseConfig config, DenseRole role);
  bool make_tiles(const KernelRow& row, DenseConfig config, const DenseTiles& tiles);

  const DenseKernel* kernel_ = nullptr;
  uint32_t max_rows_ = 0;
  size_t code_bytes_ = 0;
  std::array<std::array<std::array<Entry, kMostDenseTileRows + 1>, 2>, 3> entries_;
};

// Tiles [first_tile, last_tile) of one chunk and block: one call for the larger ones and one for the smaller. Moves `tile` on.
void call_dense_tiles(const DenseCodeSet& code, const DenseTiles& tiles, DenseTile* tile, DenseRole role, bool tail,
                      uint32_t first_tile, uint32_t last_tile);

class DensePlan : public LinearPlan {
 public:
  explicit DensePlan(LinearFacts query);

  uint32_t row_units(uint32_t m) const override { return tiles_of(m).tiles; }
  size_t prepared_bytes(uint32_t m) const override;
  size_t scratch_bytes(uint32_t m) const override;
  void prepare(const omni_linear_args& args, uint32_t first_unit, uint32_t last_unit) const override;
  void compute(const omni_linear_args& args, uint32_t first_unit, uint32_t last_unit, int64_t n0, int64_t n1,
               void* scratch) const override;

  const DenseCodeSet& code_for(uint32_t m) const { return m == 1 ? one_ : many_; }
  // How runs of m rows are cut and laid out.
  DenseTiles tiles_of(uint32_t m) const { return {m, code_for(m).max_rows()}; }
  DenseRows rows_of(uint32_t m) const;
  bool shares_panel(uint32_t m) const { return code_for(m).kernel().has_panel && tiles_of(m).tiles > 1; }

 protected:
  omni_status check_facts() const override;
  bool adopt(const KernelRow& row, bool many) override;
  size_t code_bytes() const override { return one_.code_bytes() + many_.code_bytes(); }

 private:
  struct Run;
  void compute_block(const Run& run, int64_t block, uint64_t channels, uint32_t first_tile, uint32_t last_tile) const;
  size_t panel_bytes(uint32_t m) const;
  uint32_t tiles_at_once(uint32_t m) const;

  const Blocks64& blocks_;
  DenseConfig config_;  // rows, block_width and from_panel are 0
  DenseCodeSet one_;    // runs of one row
  DenseCodeSet many_;   // runs of more
};

}  // namespace okl
