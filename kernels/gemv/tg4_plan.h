// SPDX-License-Identifier: Apache-2.0
// The tg4 family, classes group and torch: a plan holds the code for every tile, a run cuts rows and channels into calls.
#pragma once

#include <array>

#include "kernels/gemv/panel_kernel.h"
#include "kernels/gemv/prepare.h"
#include "kernels/linear/linear_plan.h"

namespace okl {

inline constexpr int kMostTileRows = 6;

// The generated code of one registry row for one configuration: a tile size by a block kind (full or tail), and the same for spans
// of tiles that share a panel.
class LinearCodeSet {
 public:
  // Makes the code for every tile size that up to max_m rows can need. False when executable memory was refused.
  bool make(const KernelRow& row, const LinearConfig& base, int64_t n, uint32_t max_m);

  const KernelRow& row() const { return *row_; }
  const LinearKernel& kernel() const { return row_->as<Op::kGemm>(); }
  const PrepareKernel& prepare_kernel() const;
  size_t code_bytes() const { return code_bytes_; }

  bool uses_panel(uint32_t m) const { return kernel().panel != nullptr && m >= kernel().panel->from_rows; }
  RowTiles tiles(uint32_t m) const { return {m, uses_panel(m) ? kernel().panel->max_rows : kernel().max_rows}; }
  WorkspaceLayout workspace(uint32_t m, const LinearConfig& base) const {
    return {base, kernel().x_form, uses_panel(m) ? kPanelInputs : base.padded_k()};
  }

  struct Entry {
    LinearConfig config{};
    LinearTileFn run = nullptr;
  };
  const Entry& entry(uint32_t rows, bool tail) const { return entries_[rows][tail ? 1 : 0]; }
  PanelFn panel(uint32_t largest_tile, bool tail) const { return panels_[largest_tile][tail ? 1 : 0]; }

 private:
  bool make_tile(const LinearConfig& base, uint32_t rows, int64_t width);
  bool make_panel(const LinearConfig& base, uint32_t rows, int64_t width);

  const KernelRow* row_ = nullptr;
  size_t code_bytes_ = 0;
  std::array<std::array<Entry, 2>, kMostTileRows + 1> entries_;
  std::array<std::array<PanelFn, 2>, kMostTileRows + 1> panels_{};
};

class Tg4Plan : public LinearPlan {
 public:
  explicit Tg4Plan(LinearFacts query);

  uint32_t row_units(uint32_t m) const override { return code_for(m).tiles(m).tiles; }
  size_t prepared_bytes(uint32_t m) const override;
  size_t scratch_bytes(uint32_t m) const override;
  void prepare(const omni_linear_args& args, uint32_t first_unit, uint32_t last_unit) const override;
  void compute(const omni_linear_args& args, uint32_t first_unit, uint32_t last_unit, int64_t n0, int64_t n1,
               void* scratch) const override;

  const LinearConfig& config() const { return config_; }
  const LinearCodeSet& code_for(uint32_t m) const { return m == 1 ? one_ : many_; }

 protected:
  bool adopt(const KernelRow& row, bool many) override;
  size_t code_bytes() const override { return one_.code_bytes() + many_.code_bytes(); }

 private:
  LinearConfig config_;  // rows and block_width are 0
  LinearCodeSet one_;    // runs of one row
  LinearCodeSet many_;   // runs of more; the same row as `one_` where that serves both
};

}  // namespace okl
