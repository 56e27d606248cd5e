// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemv/tg4_plan.h"

#include <algorithm>
#include <utility>

#include "kernels/format/tg4.h"
#include "kernels/linear/channel_mask.h"

namespace okl {
namespace {

int64_t element_bytes(uint16_t type) { return type == OMNI_DTYPE_F32 ? 4 : 2; }

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

// What every call of one run shares.
struct RunView {
  const omni_layout& weights;
  const omni_linear_args& args;
  const LinearCodeSet& code;
  const WorkspaceLayout workspace;
  const RowTiles tiles;
  const int64_t scale_bytes, y_bytes, residual_bytes;

  RunView(const Tg4Plan& plan, const omni_linear_args& args_in)
      : weights(plan.facts.weights),
        args(args_in),
        code(plan.code_for(args_in.m)),
        workspace(plan.config(), code.kernel().x_form),
        tiles(args_in.m, code.max_rows()),
        scale_bytes(2 * element_bytes(plan.config().scale_type)),
        y_bytes(element_bytes(plan.config().y_type)),
        residual_bytes(element_bytes(plan.config().residual_type)) {}
};

void call_tile(const RunView& view, uint32_t tile_index, int64_t block, int64_t blocks, uint64_t channels) {
  const omni_linear_args& args = view.args;
  const omni_layout& weights = view.weights;
  const uint32_t first_row = view.tiles.first(tile_index);
  const bool tail = tg4::block_width(weights.n, block) != tg4::kBlock;
  const LinearCodeSet::Entry& entry = view.code.entry(view.tiles.rows(tile_index), tail);
  const auto* workspace = static_cast<const uint8_t*>(args.workspace);
  const int64_t channel = block * kBlockChannels;

  LinearTile tile;
  tile.codes = static_cast<const uint8_t*>(args.codes) + tg4::block_offset(weights.n, weights.k, block);
  tile.scales = static_cast<const uint8_t*>(args.scales) + channel * view.scale_bytes;
  tile.scale_stride = weights.n * view.scale_bytes;
  tile.x = workspace + view.workspace.panel(first_row);
  tile.sums = reinterpret_cast<const float*>(workspace + view.workspace.sums(args.m, first_row));
  tile.ldy = args.ldy * view.y_bytes;
  tile.y = static_cast<uint8_t*>(args.y) + first_row * tile.ldy + channel * view.y_bytes;
  tile.bias = args.bias == nullptr ? nullptr : args.bias + channel;
  tile.ld_residual = args.ld_residual * view.residual_bytes;
  tile.residual = args.residual == nullptr
                      ? nullptr
                      : static_cast<const uint8_t*>(args.residual) + first_row * tile.ld_residual + channel * view.residual_bytes;
  tile.channels = channels;
  tile.blocks = blocks;
  tile.config = &entry.config;
  entry.run(&tile);
}

}  // namespace

bool LinearCodeSet::make(const KernelRow& row, const LinearConfig& base, int64_t n, uint32_t max_m) {
  row_ = &row;
  const bool has_full = tg4::blocks(n) > 0 && tg4::block_width(n, 0) == tg4::kBlock;
  const int64_t last_width = tg4::blocks(n) > 0 ? tg4::block_width(n, tg4::blocks(n) - 1) : tg4::kBlock;
  uint32_t needed = 0;  // bit r: some m up to max_m has a tile of r rows
  // From max_rows^2 rows on every tile has max_rows or one less.
  for (uint32_t m = 1; m <= std::min(max_m, max_rows() * max_rows()); ++m) {
    const RowTiles tiles(m, max_rows());
    for (uint32_t tile = 0; tile < tiles.tiles; ++tile) needed |= 1U << tiles.rows(tile);
  }
  for (uint32_t rows = 1; rows <= max_rows(); ++rows) {
    if ((needed >> rows & 1) == 0) continue;
    for (const bool tail : {false, true}) {
      if (tail ? last_width == tg4::kBlock : !has_full) continue;
      Entry& entry = entries_[rows][tail ? 1 : 0];
      entry.config = base;
      entry.config.rows = static_cast<uint8_t>(rows);
      entry.config.block_width = static_cast<uint8_t>(tail ? last_width : tg4::kBlock);
      const LinearCode code = kernel().make(entry.config, row.name);
      if (code.run == nullptr) return false;
      entry.run = code.run;
      code_bytes_ += code.bytes;
    }
  }
  return true;
}

Tg4Plan::Tg4Plan(LinearFacts query) : LinearPlan(std::move(query)), config_(base_config(facts)) {}

bool Tg4Plan::adopt(const KernelRow& row, bool many) {
  return (many ? many_ : one_).make(row, config_, facts.weights.n, many ? facts.max_m : 1);
}

size_t Tg4Plan::prepared_bytes(uint32_t m) const {
  return (WorkspaceLayout(config_, code_for(m).kernel().x_form).total(m) + 63) / 64 * 64;
}

void Tg4Plan::prepare(const omni_linear_args& args, uint32_t first_unit, uint32_t last_unit) const {
  const LinearCodeSet& code = code_for(args.m);
  prepare_rows({&config_, code.kernel().x_form, args.m, code.max_rows(), facts.x_type, args.x, args.ldx, args.k_permutation,
                static_cast<uint8_t*>(args.workspace)},
               first_unit, last_unit);
}

void Tg4Plan::compute(const omni_linear_args& args, uint32_t first_unit, uint32_t last_unit, int64_t n0, int64_t n1, void*) const {
  const RunView view(*this, args);
  const int64_t n = facts.weights.n;
  for (int64_t block = n0 / kBlockChannels; block * kBlockChannels < n1;) {
    const uint64_t channels = wanted_channels(block, n0, n1);
    int64_t blocks = 1;
    // One tile streams through whole blocks in one call; more tiles come back to a block while it is in the cache.
    if (last_unit - first_unit == 1 && channels == kAllChannels) blocks = std::min(n1, n) / kBlockChannels - block;
    for (uint32_t tile = first_unit; tile < last_unit; ++tile) call_tile(view, tile, block, blocks, channels);
    block += blocks;
  }
}

}  // namespace okl
