// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemv/tg4_run.h"

#include <algorithm>

#include "kernels/format/tg4.h"
#include "kernels/linear/channel_mask.h"

namespace okl {
namespace {

int64_t element_bytes(uint16_t type) { return type == OMNI_DTYPE_F32 ? 4 : 2; }

// What every call of one run shares.
struct RunView {
  const omni_layout& weights;
  const omni_linear_args& args;
  const LinearConfig& config;
  const LinearCodeSet& code;
  const WorkspaceLayout workspace;
  const RowTiles tiles;
  const int64_t scale_bytes, y_bytes, residual_bytes;

  RunView(const Tg4Plan& plan, const omni_linear_args& args_in)
      : weights(plan.facts.weights),
        args(args_in),
        config(plan.config()),
        code(plan.code_for(args_in.m)),
        workspace(code.workspace(args_in.m, config)),
        tiles(code.tiles(args_in.m)),
        scale_bytes(2 * element_bytes(config.scale_type)),
        y_bytes(element_bytes(config.y_type)),
        residual_bytes(element_bytes(config.residual_type)) {}

  bool is_tail(int64_t block) const { return tg4::block_width(weights.n, block) != tg4::kBlock; }
};

// Operands of the rows from first_row on and of `block`, at the first input.
LinearTile operands(const RunView& view, uint32_t first_row, int64_t block, uint64_t channels) {
  const omni_linear_args& args = view.args;
  const omni_layout& weights = view.weights;
  const auto* workspace = static_cast<const uint8_t*>(args.workspace);
  const int64_t channel = block * kBlockChannels;
  LinearTile tile{};
  tile.codes = static_cast<const uint8_t*>(args.codes) + tg4::block_offset(weights.n, weights.k, block);
  tile.scales = static_cast<const uint8_t*>(args.scales) + channel * view.scale_bytes;
  tile.scale_stride = weights.n * view.scale_bytes;
  tile.x = workspace + view.workspace.x(args.m, 0, first_row);
  tile.sums = reinterpret_cast<const float*>(workspace + view.workspace.sums(args.m, first_row));
  tile.ldy = args.ldy * view.y_bytes;
  tile.y = static_cast<uint8_t*>(args.y) + first_row * tile.ldy + channel * view.y_bytes;
  tile.bias = args.bias == nullptr ? nullptr : args.bias + channel;
  tile.ld_residual = args.ld_residual * view.residual_bytes;
  tile.residual = args.residual == nullptr
                      ? nullptr
                      : static_cast<const uint8_t*>(args.residual) + first_row * tile.ld_residual + channel * view.residual_bytes;
  tile.channels = channels;
  tile.blocks = 1;
  return tile;
}

void run_tiles(const RunView& view, uint32_t first_tile, uint32_t last_tile, int64_t n0, int64_t n1) {
  const int64_t n = view.weights.n;
  for (int64_t block = n0 / kBlockChannels; block * kBlockChannels < n1;) {
    const uint64_t channels = wanted_channels(block, n0, n1);
    int64_t blocks = 1;
    // One tile streams through whole blocks in one call; more tiles come back to a block while it is in the cache.
    if (last_tile - first_tile == 1 && channels == kAllChannels) blocks = std::min(n1, n) / kBlockChannels - block;
    for (uint32_t index = first_tile; index < last_tile; ++index) {
      const LinearCodeSet::Entry& entry = view.code.entry(view.tiles.rows(index), view.is_tail(block));
      LinearTile tile = operands(view, view.tiles.first(index), block, channels);
      tile.blocks = blocks;
      tile.config = &entry.config;
      entry.run(&tile);
    }
    block += blocks;
  }
}

// ------------------------------------------------------------------------------------------------- batches with a panel

// Tiles whose c (and d) wait in scratch together: c of 512 rows is 128 KiB, in L2 beside the panel and x of a chunk. More rows
// would save little: unpacking a block for 512 rows costs 0.6 % of computing them.
constexpr uint32_t kSpanTiles = 86, kSpanTilesWithD = 72;
constexpr size_t kPanelBytes = kPanelInputs * kBlockChannels * sizeof(float);
constexpr size_t kGroupScaleBytes = size_t{kPanelSegments} * 2 * kBlockChannels * sizeof(float);
constexpr size_t kRowBytes = kBlockChannels * sizeof(float);  // of c or d
static_assert(kPanelBytes + kGroupScaleBytes + kSpanTiles * kMostTileRows * kRowBytes <= size_t{256} << 10);
static_assert(kPanelBytes + kGroupScaleBytes + kSpanTilesWithD * kMostTileRows * 2 * kRowBytes <= size_t{256} << 10);

bool long_groups(const LinearConfig& config) { return config.numerics == Numerics::kGroup && config.group > kPanelInputs; }

// Of the tiles [first_tile, last_tile): parts whose sizes differ by at most one.
uint32_t span_count(const LinearConfig& config, uint32_t tiles) {
  const uint32_t most = long_groups(config) ? kSpanTilesWithD : kSpanTiles;
  return (tiles + most - 1) / most;
}

// One block and one span, chunk after chunk.
class SpanRun {
 public:
  SpanRun(const RunView& view, uint32_t first_tile, uint32_t last_tile, void* scratch)
      : view_(view), config_(view.config), first_row_(view.tiles.first(first_tile)) {
    const uint32_t large_end = std::clamp(view.tiles.large, first_tile, last_tile);
    call_.large_tiles = large_end - first_tile;
    call_.small_tiles = last_tile - large_end;
    const int64_t largest = view.tiles.largest();
    rows_ = call_.large_tiles * largest + call_.small_tiles * (largest - 1);
    call_.sums_row_bytes = config_.groups() * 4;
    auto* const bytes = static_cast<uint8_t*>(scratch);
    call_.panel = reinterpret_cast<float*>(bytes);
    call_.group_scales = reinterpret_cast<float*>(bytes + kPanelBytes);
    call_.c = reinterpret_cast<float*>(bytes + kPanelBytes + kGroupScaleBytes);
    call_.d = call_.c + rows_ * kBlockChannels;
  }

  void run(int64_t block, uint64_t channels) {
    call_.tile = operands(view_, first_row_, block, channels);
    const LinearTile first = call_.tile;
    const PanelFn code = view_.code.panel(view_.tiles.largest(), view_.is_tail(block));
    const int64_t row_bytes = tg4::block_width(view_.weights.n, block) / 2, padded_k = config_.padded_k();
    const int64_t large_rows = view_.tiles.largest();
    const float* const small_sums = first.sums + call_.large_tiles * large_rows * config_.groups();
    for (int64_t k0 = 0; k0 < padded_k; k0 += kPanelInputs) {
      const int64_t inputs = std::min(kPanelInputs, padded_k - k0), group = k0 / config_.group;
      call_.tile.codes = first.codes + k0 * row_bytes;
      call_.tile.scales = first.scales + group * first.scale_stride;
      call_.tile.x = static_cast<const uint8_t*>(first.x) + view_.workspace.x(view_.args.m, k0 / kPanelInputs, 0);
      call_.tile.sums = first.sums + group * large_rows;
      call_.small_sums = small_sums + group * (large_rows - 1);
      cut_into_groups(k0, inputs);
      call_.inputs = std::min(inputs, config_.k - k0);
      call_.first = k0 == 0;
      call_.finish_rows = k0 + inputs == padded_k ? rows_ : 0;
      code(&call_);
    }
  }

 private:
  void cut_into_groups(int64_t k0, int64_t inputs) {
    const bool whole = config_.group >= kPanelInputs || config_.group >= config_.k;  // no group ends inside the chunk
    call_.segments = whole ? 1 : (inputs + config_.group - 1) / config_.group;
    call_.segment_inputs = config_.group;
    call_.last_segment_inputs = inputs - (call_.segments - 1) * config_.group;
    call_.begins_group = k0 % config_.group == 0;
    call_.ends_group = (k0 + inputs) % config_.group == 0 || k0 + inputs == config_.padded_k();
  }

  const RunView& view_;
  const LinearConfig& config_;
  const uint32_t first_row_;
  int64_t rows_ = 0;
  PanelCall call_{};
};

void run_panels(const RunView& view, uint32_t first_tile, uint32_t last_tile, int64_t n0, int64_t n1, void* scratch) {
  const uint32_t tiles = last_tile - first_tile, spans = span_count(view.config, tiles);
  for (uint32_t span = 0; span < spans; ++span) {
    SpanRun run(view, first_tile + tiles * span / spans, first_tile + tiles * (span + 1) / spans, scratch);
    for (int64_t block = n0 / kBlockChannels; block * kBlockChannels < n1; ++block) run.run(block, wanted_channels(block, n0, n1));
  }
}

}  // namespace

size_t tg4_scratch_bytes(const LinearCodeSet& code, const LinearConfig& config, uint32_t m) {
  if (!code.uses_panel(m)) return 0;
  const RowTiles tiles = code.tiles(m);
  const uint32_t most = long_groups(config) ? kSpanTilesWithD : kSpanTiles;
  const size_t rows = static_cast<size_t>(std::min(tiles.tiles, most)) * tiles.largest();
  return kPanelBytes + kGroupScaleBytes + rows * kRowBytes * (long_groups(config) ? 2 : 1);
}

void run_tg4(const Tg4Plan& plan, const omni_linear_args& args, uint32_t first_tile, uint32_t last_tile, int64_t n0, int64_t n1,
             void* scratch) {
  const RunView view(plan, args);
  if (view.code.uses_panel(args.m)) {
    run_panels(view, first_tile, last_tile, n0, n1, scratch);
  } else {
    run_tiles(view, first_tile, last_tile, n0, n1);
  }
}

}  // namespace okl
