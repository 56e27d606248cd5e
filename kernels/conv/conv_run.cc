// SPDX-License-Identifier: Apache-2.0
// How a convolution runs: rows are prepared where they need it, then blocks of channels by parts of the rows are shared out.
#include <algorithm>

#include "kernels/conv/conv_plan.h"
#include "kernels/conv/conv_prepare.h"
#include "kernels/linear/channel_mask.h"
#include "kernels/parallel/split.h"

namespace okl {
namespace {

// Tiles of a part: 192 rows of sums are 48 KiB, and its weights are used often enough for one core to ask memory for less than
// 3 GB/s. More would leave less to share out.
constexpr uint32_t kMostPartTiles = 32;
// Fewer would read a block's weights from L2 as often as it multiplies.
constexpr uint32_t kLeastPartTiles = 4;
// Below this many elements of x one thread prepares faster than a region starts.
constexpr int64_t kPrepareAlone = int64_t{1} << 16;

}  // namespace

// What every block of a run shares. Row i of a chunk begins at source + i * row + chunk.tap * tap + chunk.channel * element.
struct ConvPlan::Run {
  const omni_conv1d_args& args;
  const std::vector<ConvChunk>& chunks;
  const DenseTiles tiles;
  const uint8_t* source;
  int64_t row, tap, element;
  size_t panel;
};

ConvParts ConvPlan::parts_of(uint32_t m, uint32_t threads) const {
  const uint32_t tiles = tiles_of(m).tiles;
  const int64_t wanted = threads == 1 ? 1 : int64_t{threads} * kTasksPerThread;
  const auto for_threads = static_cast<uint32_t>((wanted + blocks() - 1) / blocks());
  const uint32_t for_cache = (tiles + kMostPartTiles - 1) / kMostPartTiles;
  return {tiles, std::max(for_cache, std::min(for_threads, std::max(1U, tiles / kLeastPartTiles)))};
}

size_t ConvPlan::scratch_bytes(uint32_t m) const {
  const size_t sums = chunks_for(m).size() > 1 ? std::min(tiles_of(m).tiles, kMostPartTiles) * code_.max_rows() : 0;
  return panel_bytes(m) + sums * kDenseSumRowBytes;
}

void ConvPlan::prepare(const omni_conv1d_args& args, const omni_parallel& parallel) const {
  if (rows_ == ConvRows::kDirect) return;
  const bool gathers = rows_ == ConvRows::kGathered;
  const int64_t rows = gathers ? args.m : input_rows(args.m);
  const DenseRows layout = gathers ? gathered_rows(args.m) : prepared_rows(rows);
  const GatherArgs all = {{rows_kernel_, layout, code_.kernel().element, config_.order, dense_scrub_below(config_),
                           facts.linear.x_type, args.x, args.ldx, nullptr, static_cast<uint8_t*>(args.workspace)},
                          facts.inputs,
                          facts.dilation,
                          facts.stride};
  const int64_t tasks = rows * layout.k < kPrepareAlone ? 1 : rows;
  split_evenly(parallel, rows, tasks, [&](int64_t first, int64_t last) {
    if (gathers) return gather_conv_rows(all, first, last);
    prepare_dense_rows(all.prepare, first, last);
  });
}

void ConvPlan::run(const omni_conv1d_args& args, const omni_parallel& parallel) const {
  prepare(args, parallel);
  Run run = {args, chunks_for(args.m), tiles_of(args.m),   static_cast<const uint8_t*>(args.workspace), 0,
             0,    element(),          panel_bytes(args.m)};
  if (rows_ == ConvRows::kGathered) {
    const DenseRows layout = gathered_rows(args.m);
    run.row = layout.row_bytes();
    run.tap = layout.offset(1, 0);
  } else {
    const int64_t pitch = rows_ == ConvRows::kDirect ? args.ldx * run.element : prepared_rows(1).row_bytes();
    if (rows_ == ConvRows::kDirect) run.source = static_cast<const uint8_t*>(args.x);
    run.row = facts.stride * pitch;
    run.tap = facts.dilation * pitch;
  }
  const ConvParts parts = parts_of(args.m, parallel.threads);
  const size_t scratch = scratch_bytes(args.m);
  uint8_t* const slots = static_cast<uint8_t*>(args.workspace) + prepared_bytes(args.m);
  split_tasks(parallel, blocks() * parts.parts, most_tasks(), [&](int64_t task, int64_t begin, int64_t end) {
    for (; begin < end; ++begin) {
      const auto part = static_cast<uint32_t>(begin / blocks());
      compute_block(run, begin % blocks(), parts.first(part), parts.first(part + 1), slots + static_cast<size_t>(task) * scratch);
    }
  });
}

// Every chunk of one block over the tiles of one part.
void ConvPlan::compute_block(const Run& run, int64_t block, uint32_t first_tile, uint32_t last_tile, uint8_t* scratch) const {
  const omni_layout& weights = facts.linear.weights;
  const int64_t channel = block * Blocks64::kBlock, width = blocks_.block_width(weights.n, block);
  const bool tail = width != Blocks64::kBlock, alone = run.tiles.tiles == 1;
  const uint8_t* packed = static_cast<const uint8_t*>(run.args.codes) + blocks_.block_offset(weights.n, weights.k, block);
  const int64_t input_bytes = width * blocks_.bytes_per_two / 2, block_bytes = blocks_.padded_k(weights.k) * input_bytes;
  const int64_t row = run.tiles.first(first_tile);
  const int64_t y_bytes = dense_element_bytes(config_.y_type), residual_bytes = dense_element_bytes(config_.residual_type);

  DenseTile tile{};
  tile.x_row = run.row;
  tile.panel = scratch;
  tile.sums = reinterpret_cast<float*>(scratch + run.panel);
  tile.ldy = run.args.ldy * y_bytes;
  tile.ld_residual = run.args.ld_residual * residual_bytes;
  tile.bias = facts.linear.has(OMNI_EPILOGUE_BIAS) ? run.args.bias + channel : nullptr;
  tile.channels = wanted_channels(block, 0, weights.n);
  tile.y = static_cast<uint8_t*>(run.args.y) + row * tile.ldy + channel * y_bytes;
  if (facts.linear.has(OMNI_EPILOGUE_RESIDUAL)) {
    tile.residual = static_cast<const uint8_t*>(run.args.residual) + row * tile.ld_residual + channel * residual_bytes;
  }
  for (const ConvChunk& chunk : run.chunks) {
    const bool first = &chunk == &run.chunks.front(), last = &chunk == &run.chunks.back();
    tile.inputs = chunk.inputs;
    tile.x = run.source + row * run.row + chunk.tap * run.tap + chunk.channel * run.element;
    tile.first = first ? 1 : 0;
    tile.last = last ? 1 : 0;
    tile.weights = packed + chunk.k0 * input_bytes;
    if (alone) {
      tile.ahead = tile.weights + kDenseStreamAhead;
      tile.ahead_end = packed + block_bytes + kDenseStreamAhead;
    } else {
      tile.ahead = last ? packed + block_bytes : tile.weights + chunk.inputs * input_bytes;
      tile.ahead_end = tile.ahead + chunk.inputs * input_bytes;
    }
    DenseTile call = tile;
    call_dense_tiles(code_, run.tiles, &call, alone ? DenseRole::kAlone : DenseRole::kFirst, tail, first_tile, first_tile + 1);
    call_dense_tiles(code_, run.tiles, &call, DenseRole::kOther, tail, first_tile + 1, last_tile);
  }
}

}  // namespace okl
