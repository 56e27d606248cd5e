// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemv/tg4_plan.h"

#include <algorithm>
#include <utility>

#include "kernels/format/tg4.h"
#include "kernels/gemv/tg4_run.h"

namespace okl {
namespace {

LinearConfig base_config(const LinearFacts& facts) {
  LinearConfig config{};
  config.k = facts.weights.k;
  config.group = facts.weights.group < facts.weights.k ? facts.weights.group : facts.weights.k;
  config.scale_type = facts.weights.scale_type;
  config.y_type = static_cast<uint16_t>(facts.y_type);
  config.residual_type = static_cast<uint16_t>(facts.residual_type);
  config.epilogue = static_cast<uint8_t>(facts.epilogue);
  config.numerics = facts.numerics;
  return config;
}

}  // namespace

bool LinearCodeSet::make(const KernelRow& row, const LinearConfig& base, int64_t n, uint32_t max_m) {
  row_ = &row;
  uint32_t tile_sizes = 0, panel_sizes = 0;  // bit r: some m up to max_m has a tile of r rows
  // From max_rows^2 rows on every tile has max_rows or one less, and the largest has max_rows.
  const uint32_t enough = kMostTileRows * kMostTileRows + (kernel().panel != nullptr ? kernel().panel->from_rows : 0);
  for (uint32_t m = 1; m <= std::min(max_m, enough); ++m) {
    const RowTiles cut = tiles(m);
    if (uses_panel(m)) {
      panel_sizes |= 1U << cut.largest();
    } else {
      tile_sizes |= 1U << cut.rows(0) | 1U << cut.rows(cut.tiles - 1);
    }
  }
  int64_t widths[2] = {};
  const int64_t blocks = tg4::blocks(n);
  if (blocks > 0 && tg4::block_width(n, 0) == tg4::kBlock) widths[0] = tg4::kBlock;
  if (blocks > 0 && tg4::block_width(n, blocks - 1) != tg4::kBlock) widths[1] = tg4::block_width(n, blocks - 1);
  for (uint32_t rows = 1; rows <= kMostTileRows; ++rows) {
    for (const int64_t width : widths) {
      if (width == 0) continue;
      if ((tile_sizes >> rows & 1) != 0 && !make_tile(base, rows, width)) return false;
      if ((panel_sizes >> rows & 1) != 0 && !make_panel(base, rows, width)) return false;
    }
  }
  return true;
}

// Of the kernel's own tier: what the machine has beyond a cap stays unused.
const PrepareKernel& LinearCodeSet::prepare_kernel() const {
  if ((kIsaAvx512Tier & ~row_->required) == 0) return prepare_avx512;
  return (kIsaAvx2Tier & ~row_->required) == 0 ? prepare_avx2 : prepare_portable;
}

bool LinearCodeSet::make_tile(const LinearConfig& base, uint32_t rows, int64_t width) {
  Entry& entry = entries_[rows][width == tg4::kBlock ? 0 : 1];
  entry.config = base;
  entry.config.rows = static_cast<uint8_t>(rows);
  entry.config.block_width = static_cast<uint8_t>(width);
  const LinearCode code = kernel().make(entry.config, row_->name);
  entry.run = code.run;
  code_bytes_ += code.bytes;
  return code.run != nullptr;
}

bool LinearCodeSet::make_panel(const LinearConfig& base, uint32_t rows, int64_t width) {
  PanelConfig config{};
  config.scale_type = base.scale_type;
  config.y_type = base.y_type;
  config.residual_type = base.residual_type;
  config.epilogue = base.epilogue;
  config.numerics = base.numerics;
  config.rows = static_cast<uint8_t>(rows);
  config.block_width = static_cast<uint8_t>(width);
  config.long_groups = base.numerics == Numerics::kGroup && base.group > kPanelInputs ? 1 : 0;
  const PanelCode code = kernel().panel->make(config, row_->name);
  panels_[rows][width == tg4::kBlock ? 0 : 1] = code.run;
  code_bytes_ += code.bytes;
  return code.run != nullptr;
}

Tg4Plan::Tg4Plan(LinearFacts query) : LinearPlan(std::move(query)), config_(base_config(facts)) {}

bool Tg4Plan::adopt(const KernelRow& row, bool many) {
  return (many ? many_ : one_).make(row, config_, facts.weights.n, many ? facts.max_m : 1);
}

size_t Tg4Plan::prepared_bytes(uint32_t m) const { return (code_for(m).workspace(m, config_).total(m) + 63) / 64 * 64; }

size_t Tg4Plan::scratch_bytes(uint32_t m) const { return tg4_scratch_bytes(code_for(m), config_, m); }

void Tg4Plan::prepare(const omni_linear_args& args, uint32_t first_unit, uint32_t last_unit) const {
  const LinearCodeSet& code = code_for(args.m);
  const RowTiles tiles = code.tiles(args.m);
  prepare_rows({&code.prepare_kernel(), &config_, code.kernel().x_form, code.workspace(args.m, config_).chunk, args.m, tiles,
                facts.x_type, args.x, args.ldx, args.k_permutation, static_cast<uint8_t*>(args.workspace)},
               first_unit, last_unit);
}

void Tg4Plan::compute(const omni_linear_args& args, uint32_t first_unit, uint32_t last_unit, int64_t n0, int64_t n1,
                      void* scratch) const {
  run_tg4(*this, args, first_unit, last_unit, n0, n1, scratch);
}

}  // namespace okl
