// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/dense_plan.h"

#include <algorithm>
#include <utility>

#include "kernels/gemm/dense_scrub.h"
#include "kernels/linear/channel_mask.h"

namespace okl {
namespace {

// Rows whose sums wait in scratch at once: 192 KiB, and with the largest panel of 64 KiB the 256 KiB that omni_scratch_size names.
constexpr uint32_t kMostSumRows = 768;

}  // namespace

int64_t dense_element_bytes(uint16_t type) { return type == OMNI_DTYPE_F32 ? 4 : type == OMNI_DTYPE_BF16 ? 2 : 0; }

const Blocks64& dense_blocks(uint16_t format) { return format == OMNI_FORMAT_W16 ? kW16 : format == OMNI_FORMAT_W32 ? kW32 : kW8s; }

DenseConfig dense_config(const LinearFacts& facts) {
  const omni_layout& weights = facts.weights;
  DenseConfig config{};
  config.group = weights.format == OMNI_FORMAT_W8S && weights.group < weights.k ? weights.group : 0;
  config.weights = weights.format;
  config.scale_type = weights.scale_type;
  config.y_type = static_cast<uint16_t>(facts.y_type);
  config.residual_type = static_cast<uint16_t>(facts.residual_type);
  config.epilogue = static_cast<uint8_t>(facts.epilogue);
  const bool pairs = facts.x_type == OMNI_DTYPE_BF16 && weights.format != OMNI_FORMAT_W32;
  config.panel_inputs = static_cast<uint16_t>(std::max(kDenseChunkInputs, config.group));
  config.order = pairs ? DenseOrder::kOddFirst : DenseOrder::kAscending;
  return config;
}

uint16_t dense_scrub_below(const DenseConfig& config) {
  if (config.order == DenseOrder::kAscending) return 0;
  return config.weights == OMNI_FORMAT_W8S ? kGroupScrubBelow : kDenseScrubBelow;
}

// --- code ---------------------------------------------------------------------------------------------------------------------

// The first tile of a chunk fills a panel and the others read it.
bool DenseCodeSet::make_entry(const KernelRow& row, DenseConfig config, DenseRole role) {
  Entry& entry = entries_[static_cast<size_t>(role)][config.block_width != Blocks64::kBlock][config.rows];
  if (entry.run != nullptr) return true;
  config.alone = role == DenseRole::kAlone ? 1 : 0;
  if (kernel_->has_panel && role != DenseRole::kAlone)
    config.panel = role == DenseRole::kFirst ? DensePanel::kFill : DensePanel::kRead;
  entry.config = config;
  const DenseCode code = kernel_->make(config, row.name);
  entry.run = code.run;
  code_bytes_ += code.bytes;
  return code.run != nullptr;
}

// A part of the tiles may begin with any of them.
bool DenseCodeSet::make_tiles(const KernelRow& row, DenseConfig config, const DenseTiles& tiles) {
  for (const uint32_t tile : {uint32_t{0}, tiles.tiles - 1}) {
    config.rows = static_cast<uint8_t>(tiles.rows(tile));
    if (tiles.tiles == 1) return make_entry(row, config, DenseRole::kAlone);
    if (!make_entry(row, config, DenseRole::kFirst) || !make_entry(row, config, DenseRole::kOther)) return false;
  }
  return true;
}

bool DenseCodeSet::make(const KernelRow& row, const DenseConfig& base, int64_t n, uint32_t max_m) {
  kernel_ = static_cast<const DenseKernel*>(row.implementation);
  max_rows_ = std::min<uint32_t>(kernel_->max_rows, row.mr);
  const Blocks64& blocks = dense_blocks(base.weights);
  const int64_t count = blocks.blocks(n), last_width = count > 0 ? blocks.block_width(n, count - 1) : Blocks64::kBlock;
  const bool has_full = count > 0 && blocks.block_width(n, 0) == Blocks64::kBlock;
  DenseConfig config = base;
  // From max_rows^2 rows on every tile has max_rows or one less.
  for (uint32_t m = 1; m <= std::min(max_m, max_rows_ * max_rows_); ++m) {
    for (const bool tail : {false, true}) {
      if (tail ? last_width == Blocks64::kBlock : !has_full) continue;
      config.block_width = static_cast<uint8_t>(tail ? last_width : Blocks64::kBlock);
      if (!make_tiles(row, config, DenseTiles(m, max_rows_))) return false;
    }
  }
  return true;
}

// --- plan ---------------------------------------------------------------------------------------------------------------------

DensePlan::DensePlan(LinearFacts query)
    : LinearPlan(std::move(query)), blocks_(dense_blocks(facts.weights.format)), config_(dense_config(facts)) {}

omni_status DensePlan::check_facts() const {
  const bool scrubbed = (facts.weights.flags & OMNI_LAYOUT_SCRUBBED) != 0;
  if (facts.weights.format != OMNI_FORMAT_W16 || facts.x_type != OMNI_DTYPE_BF16 || scrubbed) return OMNI_OK;
  return fail(OMNI_ERR_LAYOUT,
              "w16 weights are not scrubbed (OMNI_LAYOUT_SCRUBBED), which bf16 x needs: pack them so, or give x in f32");
}

bool DensePlan::adopt(const KernelRow& row, bool many) {
  return (many ? many_ : one_).make(row, config_, facts.weights.n, many ? facts.max_m : 1);
}

DenseRows DensePlan::rows_of(uint32_t m) const {
  const DenseKernel& kernel = code_for(m).kernel();
  const bool streams = tiles_of(m).tiles == 1 && !(kernel.several_passes && m > 1);
  const int64_t k = facts.weights.k, padded_k = (k + 31) / 32 * 32;
  const int64_t chunk = streams ? padded_k : std::min(padded_k, int64_t{config_.panel_inputs});
  return {k, chunk, kernel.element == DenseElement::kFloat ? 4 : 2, m};
}

size_t DensePlan::prepared_bytes(uint32_t m) const { return rows_of(m).total(); }

size_t DensePlan::panel_bytes(uint32_t m) const {
  if (!shares_panel(m)) return 0;
  return static_cast<size_t>(config_.panel_inputs * Blocks64::kBlock * rows_of(m).element);
}

uint32_t DensePlan::tiles_at_once(uint32_t m) const { return std::min(tiles_of(m).tiles, kMostSumRows / code_for(m).max_rows()); }

size_t DensePlan::scratch_bytes(uint32_t m) const {
  const bool sums = rows_of(m).chunks() > 1 || config_.group != 0;
  return panel_bytes(m) + (sums ? size_t{tiles_at_once(m)} * code_for(m).max_rows() * kDenseSumRowBytes : 0);
}

void DensePlan::prepare(const omni_linear_args& args, uint32_t first_unit, uint32_t last_unit) const {
  const DenseTiles tiles = tiles_of(args.m);
  const DensePrepareArgs prepare = {&dense_rows_kernel(row_for(args.m).required),
                                    rows_of(args.m),
                                    code_for(args.m).kernel().element,
                                    config_.order,
                                    dense_scrub_below(config_),
                                    facts.x_type,
                                    args.x,
                                    args.ldx,
                                    args.k_permutation,
                                    static_cast<uint8_t*>(args.workspace)};
  prepare_dense_rows(prepare, tiles.first(first_unit), tiles.first(last_unit));
}

// What every block of one compute() shares.
struct DensePlan::Run {
  const omni_linear_args& args;
  const DenseCodeSet& code;
  const DenseTiles tiles;
  const DenseRows rows;
  const bool streams;
  const int64_t scale_bytes, y_bytes, residual_bytes;
  uint8_t* const panel;
  float* const sums;
};

void DensePlan::compute(const omni_linear_args& args, uint32_t first_unit, uint32_t last_unit, int64_t n0, int64_t n1,
                        void* scratch) const {
  auto* const panel = static_cast<uint8_t*>(scratch);
  const Run run = {args,
                   code_for(args.m),
                   tiles_of(args.m),
                   rows_of(args.m),
                   rows_of(args.m).chunks() == 1 && tiles_of(args.m).tiles == 1,
                   dense_element_bytes(config_.scale_type),
                   dense_element_bytes(config_.y_type),
                   dense_element_bytes(config_.residual_type),
                   panel,
                   reinterpret_cast<float*>(panel + panel_bytes(args.m))};
  const uint32_t at_once = tiles_at_once(args.m);
  for (int64_t block = n0 / Blocks64::kBlock; block * Blocks64::kBlock < n1; ++block) {
    const uint64_t channels = wanted_channels(block, n0, n1);
    for (uint32_t tile = first_unit; tile < last_unit; tile += at_once) {
      compute_block(run, block, channels, tile, std::min(tile + at_once, last_unit));
    }
  }
}

void DensePlan::compute_block(const Run& run, int64_t block, uint64_t channels, uint32_t first_tile, uint32_t last_tile) const {
  const omni_layout& weights = facts.weights;
  const int64_t channel = block * Blocks64::kBlock, width = blocks_.block_width(weights.n, block);
  const bool tail = width != Blocks64::kBlock;
  const uint8_t* packed = static_cast<const uint8_t*>(run.args.codes) + blocks_.block_offset(weights.n, weights.k, block);
  const int64_t block_bytes = blocks_.padded_k(weights.k) * width * blocks_.bytes_per_two / 2;
  const int64_t chunk_bytes = run.rows.chunk / 2 * width * blocks_.bytes_per_two;

  DenseTile tile{};
  tile.x_row = run.rows.row_bytes();
  tile.panel = run.panel;
  tile.sums = run.sums;
  tile.scale_stride = weights.n * run.scale_bytes;
  tile.ldy = run.args.ldy * run.y_bytes;
  tile.ld_residual = run.args.ld_residual * run.residual_bytes;
  tile.bias = run.args.bias == nullptr ? nullptr : run.args.bias + channel;
  tile.channels = channels;
  const int64_t row = run.tiles.first(first_tile), chunks = run.rows.chunks();
  tile.y = static_cast<uint8_t*>(run.args.y) + row * tile.ldy + channel * run.y_bytes;
  if (run.args.residual != nullptr) {
    tile.residual = static_cast<const uint8_t*>(run.args.residual) + row * tile.ld_residual + channel * run.residual_bytes;
  }
  for (int64_t chunk = 0; chunk < chunks; ++chunk) {
    const int64_t k0 = chunk * run.rows.chunk;
    tile.inputs = std::min(run.rows.chunk, weights.k - k0);
    tile.x = static_cast<const uint8_t*>(run.args.workspace) + run.rows.offset(chunk, row);
    tile.first = chunk == 0 ? 1 : 0;
    tile.last = chunk + 1 == chunks ? 1 : 0;
    if (config_.has_scales()) {
      const int64_t group = config_.group == 0 ? 0 : k0 / config_.group;
      tile.scales = static_cast<const uint8_t*>(run.args.scales) + (group * weights.n + channel) * run.scale_bytes;
    }
    tile.weights = packed + chunk * chunk_bytes;
    if (run.streams) {
      tile.ahead = tile.weights + kDenseStreamAhead;
      tile.ahead_end = packed + block_bytes + kDenseStreamAhead;
    } else {
      tile.ahead = tile.last != 0 ? packed + block_bytes : tile.weights + chunk_bytes;
      tile.ahead_end = tile.ahead + chunk_bytes;
    }
    DenseTile call = tile;
    const bool alone = run.tiles.tiles == 1;
    call_dense_tiles(run.code, run.tiles, &call, alone ? DenseRole::kAlone : DenseRole::kFirst, tail, first_tile, first_tile + 1);
    call_dense_tiles(run.code, run.tiles, &call, DenseRole::kOther, tail, first_tile + 1, last_tile);
  }
}

void call_dense_tiles(const DenseCodeSet& code, const DenseTiles& tiles, DenseTile* tile, DenseRole role, bool tail,
                      uint32_t first_tile, uint32_t last_tile) {
  const uint32_t larger = std::clamp(tiles.larger_tiles, first_tile, last_tile);
  for (const auto& [begin, end] : {std::pair(first_tile, larger), std::pair(larger, last_tile)}) {
    if (begin == end) continue;
    const DenseCodeSet::Entry& entry = code.entry(role, tail, tiles.rows(begin));
    tile->tiles = end - begin;
    tile->config = &entry.config;
    entry.run(tile);
    const int64_t rows = tile->tiles * entry.config.rows;
    tile->x += rows * tile->x_row;
    tile->sums += rows * kBlockWidth;
    tile->y += rows * tile->ldy;
    if (tile->residual != nullptr) tile->residual += rows * tile->ld_residual;
    // Two tiles ask for what the next chunk needs, half each: one alone would have to wait for memory.
    tile->ahead = std::min(tile->ahead + (tile->ahead_end - tile->ahead) / 2, tile->ahead_end);
  }
}

}  // namespace okl
