// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemv/linear.h"

#include <algorithm>
#include <bit>

#include "kernels/format/tg4.h"
#include "kernels/parallel/split.h"

namespace okl {
namespace {

constexpr uint64_t kAllChannels = ~uint64_t{0};

// Bits of the channels of block `block` that lie in [n0, n1).
uint64_t wanted_channels(int64_t block, int64_t n0, int64_t n1) {
  const int64_t first = std::max<int64_t>(n0 - block * kBlockChannels, 0);
  const int64_t last = std::min<int64_t>(n1 - block * kBlockChannels, kBlockChannels);
  if (last <= first) return 0;
  const uint64_t below_last = last == kBlockChannels ? kAllChannels : (uint64_t{1} << last) - 1;
  return below_last & ~((uint64_t{1} << first) - 1);
}

int64_t element_bytes(uint16_t type) { return type == OMNI_DTYPE_F32 ? 4 : 2; }

// What every call of one run shares.
struct RunView {
  const omni_plan& plan;
  const omni_linear_args& args;
  const LinearCodeSet& code;
  const WorkspaceLayout workspace;
  const RowTiles tiles;
  const int64_t scale_bytes, y_bytes, residual_bytes;

  RunView(const omni_plan& plan_in, const omni_linear_args& args_in)
      : plan(plan_in),
        args(args_in),
        code(plan_in.code_for(args_in.m)),
        workspace(plan_in.config, code.kernel().x_form),
        tiles(args_in.m, code.max_rows()),
        scale_bytes(2 * element_bytes(plan_in.config.scale_type)),
        y_bytes(element_bytes(plan_in.config.y_type)),
        residual_bytes(element_bytes(plan_in.config.residual_type)) {}
};

void call_tile(const RunView& view, uint32_t tile_index, int64_t block, int64_t blocks, uint64_t channels) {
  const omni_linear_args& args = view.args;
  const omni_layout& weights = view.plan.weights;
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

void run_view(const RunView& view, int64_t n0, int64_t n1) {
  const int64_t n = view.plan.weights.n;
  for (int64_t block = n0 / kBlockChannels; block * kBlockChannels < n1;) {
    const uint64_t channels = wanted_channels(block, n0, n1);
    int64_t blocks = 1;
    // One row streams through whole blocks in one call; more rows come back to a block while it is in the cache.
    if (view.tiles.tiles == 1 && channels == kAllChannels) {
      blocks = std::min(n1, n) / kBlockChannels - block;
    }
    for (uint32_t tile = 0; tile < view.tiles.tiles; ++tile) call_tile(view, tile, block, blocks, channels);
    block += blocks;
  }
}

}  // namespace

bool LinearCodeSet::make(const KernelRow& row, const LinearConfig& base, int64_t n, uint32_t max_m) {
  row_ = &row;
  const bool has_full = tg4::blocks(n) > 0 && tg4::block_width(n, 0) == tg4::kBlock;
  const int64_t last_width = tg4::blocks(n) > 0 ? tg4::block_width(n, tg4::blocks(n) - 1) : tg4::kBlock;
  uint32_t needed = 0;  // bit r: some m up to max_m has a tile of r rows
  for (uint32_t m = 1; m <= max_m; ++m) {
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

void prepare_linear(const omni_plan& plan, const omni_linear_args& args) {
  const LinearCodeSet& code = plan.code_for(args.m);
  prepare_rows({&plan.config, code.kernel().x_form, args.m, code.max_rows(), plan.x_type, args.x, args.ldx, args.k_permutation,
                static_cast<uint8_t*>(args.workspace)});
}

void run_channels(const omni_plan& plan, const omni_linear_args& args, int64_t n0, int64_t n1) {
  run_view(RunView(plan, args), n0, n1);
}

void run_parallel(const omni_plan& plan, const omni_linear_args& args, const omni_parallel& parallel) {
  const RunView view(plan, args);
  const int64_t n = plan.weights.n, blocks = tg4::blocks(n);
  split_evenly(parallel, blocks, blocks,
               [&](int64_t first, int64_t last) { run_view(view, first * kBlockChannels, std::min(last * kBlockChannels, n)); });
}

}  // namespace okl
