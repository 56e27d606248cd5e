// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/exact_plan.h"

#include <algorithm>
#include <cinttypes>
#include <utility>

#include "kernels/format/blocks64.h"
#include "kernels/gemm/exact_prepare.h"
#include "kernels/linear/channel_mask.h"

namespace okl {
namespace {

// Channel blocks that many row tiles pass over together: small enough to stay in half of a 1 MiB L2, many enough that x, which may
// be larger than that, is fetched once for all of them.
constexpr int64_t kResidentBytes = 512 << 10;

int64_t element_bytes(uint16_t type) { return type == OMNI_DTYPE_F32 ? 4 : 2; }

const Blocks64& blocks_of(const ExactConfig& config) { return config.is_w4() ? kW4s : kW8s; }

ExactConfig base_config(const LinearFacts& facts) {
  constexpr int64_t kMostInputsW4 = 128;
  ExactConfig config{};
  config.k = facts.weights.k;
  config.group = std::min<int64_t>(facts.weights.group, config.k);
  config.weights = facts.weights.format;
  config.block = config.is_w4() ? std::min(config.group, kMostInputsW4) : config.group;
  config.scale_type = facts.weights.scale_type;
  config.y_type = static_cast<uint16_t>(facts.y_type);
  config.residual_type = static_cast<uint16_t>(facts.residual_type);
  config.epilogue = static_cast<uint8_t>(facts.epilogue);
  config.zeros = (facts.weights.flags & OMNI_LAYOUT_ZEROS) != 0;
  return config;
}

// m rows in as few parts of at most `most` as there can be, whose sizes differ by at most one.
struct RowParts {
  int64_t rows, parts;
  RowParts(int64_t count, int64_t most) : rows(count), parts((count + most - 1) / most) {}
  int64_t first(int64_t part) const { return rows * part / parts; }
};

// What every call of one run shares.
struct ExactView {
  const omni_layout& weights;
  const omni_linear_args& args;
  const ExactConfig& config;
  const ExactCodeSet& code;
  const ExactWorkspace workspace;
  const int64_t scale_bytes, y_bytes, residual_bytes;

  ExactView(const ExactPlan& plan, const omni_linear_args& args_in)
      : weights(plan.facts.weights),
        args(args_in),
        config(plan.config()),
        code(plan.code_for(args_in.m)),
        workspace(plan.config()),
        scale_bytes(plan.config().scale_bytes()),
        y_bytes(element_bytes(plan.config().y_type)),
        residual_bytes(element_bytes(plan.config().residual_type)) {}

  int64_t width(int64_t block) const { return blocks_of(config).block_width(weights.n, block); }
};

// The operands from row `row` and channel block `block` on.
ExactTile tile_at(const ExactView& view, int64_t row, int64_t block) {
  const omni_linear_args& args = view.args;
  const auto* workspace = static_cast<const uint8_t*>(args.workspace);
  const int64_t channel = block * kExactBlockChannels, groups = view.config.groups();
  const auto* scales = static_cast<const uint8_t*>(args.scales);
  ExactTile tile{};
  tile.codes = static_cast<const uint8_t*>(args.codes) + blocks_of(view.config).block_offset(view.weights.n, view.weights.k, block);
  tile.scales = scales + channel * view.scale_bytes;
  tile.scale_stride = view.weights.n * view.scale_bytes;
  if (view.config.zeros) tile.zeros = scales + groups * tile.scale_stride + channel;
  tile.zero_stride = view.weights.n;
  tile.x_stride = static_cast<int64_t>(view.workspace.row_bytes);
  tile.x = reinterpret_cast<const int8_t*>(workspace) + row * tile.x_stride;
  tile.sums = reinterpret_cast<const int32_t*>(workspace + view.workspace.sums(args.m)) + row * view.config.blocks();
  tile.starts = reinterpret_cast<const int32_t*>(workspace + view.workspace.starts(args.m)) + 2 * row * view.config.blocks();
  tile.x_scales = reinterpret_cast<const float*>(workspace + view.workspace.scales(args.m)) + row;
  tile.ldy = args.ldy * view.y_bytes;
  tile.y = static_cast<uint8_t*>(args.y) + row * tile.ldy + channel * view.y_bytes;
  if (args.bias != nullptr) tile.bias = args.bias + channel;
  tile.ld_residual = args.ld_residual * view.residual_bytes;
  if (args.residual != nullptr) {
    tile.residual = static_cast<const uint8_t*>(args.residual) + row * tile.ld_residual + channel * view.residual_bytes;
  }
  return tile;
}

}  // namespace

bool ExactCodeSet::make(const KernelRow& row, const ExactConfig& base, int64_t n, uint32_t max_m) {
  kernel_ = &row.as<Op::kGemm, Numerics::kExact>();
  const Blocks64& format = blocks_of(base);
  const bool has_full = format.blocks(n) > 0 && format.block_width(n, 0) == kExactBlockChannels;
  const int64_t last_width = format.blocks(n) > 0 ? format.block_width(n, format.blocks(n) - 1) : kExactBlockChannels;
  for (const ExactPath path : {ExactPath::kDirect, ExactPath::kPanel}) {
    const uint32_t most = path == ExactPath::kDirect ? kernel_->direct_rows : kernel_->panel_rows;
    if (path == ExactPath::kPanel && (most == 0 || max_m < kernel_->panel_from)) continue;
    for (const bool tail : {false, true}) {
      if (tail ? last_width == kExactBlockChannels : !has_full) continue;
      Entry& entry = entries_[static_cast<size_t>(path)][tail ? 1 : 0];
      entry.config = base;
      entry.config.path = path;
      entry.config.rows = static_cast<uint16_t>(std::min(max_m, most));
      entry.config.block_width = static_cast<uint8_t>(tail ? last_width : kExactBlockChannels);
      const size_t scratch = kernel_->scratch_bytes == nullptr ? 0 : kernel_->scratch_bytes(entry.config);
      if (path == ExactPath::kPanel && scratch == 0) continue;
      const ExactCode code = kernel_->make(entry.config, row.name);
      if (code.run == nullptr) return false;
      entry.run = code.run;
      code_bytes_ += code.bytes;
      scratch_bytes_ = std::max(scratch_bytes_, scratch);
      has_panel_ |= path == ExactPath::kPanel;
    }
  }
  return true;
}

ExactPlan::ExactPlan(LinearFacts query) : LinearPlan(std::move(query)), config_(base_config(facts)) {}

omni_status ExactPlan::check_facts() const {
  if (config_.block > kExactMostBlock) {
    return fail(OMNI_ERR_GROUP, "group %" PRId64 ": an exact sum holds at most %" PRId64 " inputs", config_.group, kExactMostBlock);
  }
  return OMNI_OK;
}

bool ExactPlan::adopt(const KernelRow& row, bool many) {
  if (facts.x_type != OMNI_DTYPE_S8) quantize_row_ = quantize_row_for(allowed_isa(), static_cast<uint16_t>(facts.x_type));
  return (many ? many_ : one_).make(row, config_, facts.weights.n, many ? facts.max_m : 1);
}

void ExactPlan::prepare(const omni_linear_args& args, uint32_t first_row, uint32_t last_row) const {
  auto* workspace = static_cast<uint8_t*>(args.workspace);
  const ExactWorkspace layout(config_);
  prepare_exact_rows(
      {&config_, facts.x_type, quantize_row_, &args, reinterpret_cast<int8_t*>(workspace),
       reinterpret_cast<int32_t*>(workspace + layout.sums(args.m)), reinterpret_cast<int32_t*>(workspace + layout.starts(args.m)),
       reinterpret_cast<float*>(workspace + layout.scales(args.m))},
      first_row, last_row);
}

void ExactPlan::compute(const omni_linear_args& args, uint32_t first_row, uint32_t last_row, int64_t n0, int64_t n1,
                        void* scratch) const {
  const ExactView view(*this, args);
  const ExactPath path = view.code.path_for(last_row - first_row);
  const RowParts parts(last_row - first_row,
                       path == ExactPath::kPanel ? view.code.kernel().panel_rows : view.code.kernel().direct_rows);
  // One part streams through all whole blocks in one call; more parts come back to a few blocks while those are in the cache.
  const int64_t full_bytes = blocks_of(config_).packed_bytes(kExactBlockChannels, config_.k);
  const int64_t most_blocks = parts.parts == 1 ? INT64_MAX : std::max<int64_t>(1, kResidentBytes / full_bytes);
  for (int64_t block = n0 / kExactBlockChannels; block * kExactBlockChannels < n1;) {
    const uint64_t channels = wanted_channels(block, n0, n1);
    const bool tail = view.width(block) != kExactBlockChannels;
    int64_t blocks = 1;
    if (channels == kAllChannels) blocks = std::min(most_blocks, n1 / kExactBlockChannels - block);
    const ExactCodeSet::Entry& entry = view.code.entry(path, tail);
    for (int64_t part = 0; part < parts.parts; ++part) {
      const int64_t row = first_row + parts.first(part);
      ExactTile tile = tile_at(view, row, block);
      tile.rows = first_row + parts.first(part + 1) - row;
      tile.blocks = blocks;
      tile.channels = channels;
      tile.scratch = scratch;
      tile.config = &entry.config;
      entry.run(&tile);
    }
    block += blocks;
  }
}

}  // namespace okl
