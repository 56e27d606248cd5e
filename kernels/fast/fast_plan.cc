// SPDX-License-Identifier: Apache-2.0
#include "kernels/fast/fast_plan.h"

#include <algorithm>
#include <utility>

#include "kernels/fast/fast_prepare.h"
#include "kernels/format/blocks64.h"
#include "kernels/format/tg4.h"
#include "kernels/linear/channel_mask.h"

namespace okl {
namespace {

// Channel blocks that many parts of rows pass over together: half of a 1 MiB L2.
constexpr int64_t kResidentBytes = 512 << 10;

int64_t element_bytes(uint16_t type) { return type == OMNI_DTYPE_F32 ? 4 : 2; }

FastConfig base_config(const LinearFacts& facts) {
  constexpr int64_t kMostInputs = 128;  // of a panel of 16 KiB
  FastConfig config{};
  config.k = facts.weights.k;
  config.weights = facts.weights.format;
  config.group = config.is_w4() ? std::min<int64_t>(facts.weights.group, config.k) : config.k;
  config.block = config.is_w4() ? std::min(config.group, kMostInputs) : config.k;
  config.scale_type = facts.weights.scale_type;
  config.y_type = static_cast<uint16_t>(facts.y_type);
  config.residual_type = static_cast<uint16_t>(facts.residual_type);
  config.epilogue = static_cast<uint8_t>(facts.epilogue);
  return config;
}

int64_t block_offset(const FastConfig& config, int64_t n, int64_t block) {
  return config.is_w4() ? tg4::block_offset(n, config.k, block) : kW16.block_offset(n, config.k, block);
}
int64_t block_width(const FastConfig& config, int64_t n, int64_t block) {
  return config.is_w4() ? tg4::block_width(n, block) : kW16.block_width(n, block);
}

}  // namespace

bool FastCodeSet::make(const KernelRow& row, const FastConfig& base, int64_t n, uint32_t max_m) {
  kernel_ = &row.as<Op::kGemm, Numerics::kFast>();
  const int64_t blocks = (n + kFastBlockChannels - 1) / kFastBlockChannels;
  for (const bool tail : {false, true}) {
    const int64_t block = tail ? blocks - 1 : 0;
    if (blocks == 0 || (block_width(base, n, block) != kFastBlockChannels) != tail) continue;
    FastConfig config = base;
    config.rows = static_cast<uint16_t>(std::min<uint32_t>(max_m, kernel_->max_rows));
    config.block_width = static_cast<uint8_t>(block_width(base, n, block));
    const FastCode code = kernel_->make(config, row.name);
    if (code.run == nullptr) return false;
    run_[tail ? 1 : 0] = code.run;
    code_bytes_ += code.bytes;
    scratch_bytes_ = std::max(scratch_bytes_, kernel_->scratch_bytes(config));
  }
  return true;
}

FastPlan::FastPlan(LinearFacts query) : LinearPlan(std::move(query)), config_(base_config(facts)) {}

bool FastPlan::adopt(const KernelRow& row, bool many) {
  return (many ? many_ : one_).make(row, config_, facts.weights.n, many ? facts.max_m : 1);
}

void FastPlan::prepare(const omni_linear_args& args, uint32_t first_row, uint32_t last_row) const {
  auto* workspace = static_cast<uint8_t*>(args.workspace);
  prepare_fast_rows({&config_, &args, reinterpret_cast<uint16_t*>(workspace),
                     reinterpret_cast<float*>(workspace + FastWorkspace(config_).sums(args.m))},
                    first_row, last_row);
}

FastTile FastPlan::tile_at(const omni_linear_args& args, int64_t row, int64_t block) const {
  const FastWorkspace layout(config_);
  const auto* workspace = static_cast<const uint8_t*>(args.workspace);
  const int64_t n = facts.weights.n, channel = block * kFastBlockChannels;
  const int64_t y_bytes = element_bytes(config_.y_type), residual_bytes = element_bytes(config_.residual_type);
  FastTile tile{};
  tile.codes = static_cast<const uint8_t*>(args.codes) + block_offset(config_, n, block);
  if (config_.is_w4()) {
    const int64_t scale_bytes = 2 * element_bytes(config_.scale_type);
    tile.scales = static_cast<const uint8_t*>(args.scales) + channel * scale_bytes;
    tile.scale_stride = n * scale_bytes;
    tile.sums = reinterpret_cast<const float*>(workspace + layout.sums(args.m)) + row * config_.blocks();
  }
  tile.x_stride = static_cast<int64_t>(layout.row_bytes);
  tile.x = reinterpret_cast<const uint16_t*>(workspace + row * tile.x_stride);
  tile.ldy = args.ldy * y_bytes;
  tile.y = static_cast<uint8_t*>(args.y) + row * tile.ldy + channel * y_bytes;
  if (args.bias != nullptr) tile.bias = args.bias + channel;
  tile.ld_residual = args.ld_residual * residual_bytes;
  if (args.residual != nullptr) {
    tile.residual = static_cast<const uint8_t*>(args.residual) + row * tile.ld_residual + channel * residual_bytes;
  }
  return tile;
}

void FastPlan::compute(const omni_linear_args& args, uint32_t first_row, uint32_t last_row, int64_t n0, int64_t n1,
                       void* scratch) const {
  const FastCodeSet& code = code_for(args.m);
  const int64_t n = facts.weights.n, rows = last_row - first_row, most = code.kernel().max_rows, parts = (rows + most - 1) / most;
  const int64_t full_bytes = block_offset(config_, 2 * kFastBlockChannels, 1);
  const int64_t most_blocks = parts == 1 ? INT64_MAX : std::max<int64_t>(1, kResidentBytes / full_bytes);
  for (int64_t block = n0 / kFastBlockChannels; block * kFastBlockChannels < n1;) {
    const uint64_t channels = wanted_channels(block, n0, n1);
    const bool tail = block_width(config_, n, block) != kFastBlockChannels;
    int64_t blocks = 1;
    if (channels == kAllChannels) blocks = std::min(most_blocks, n1 / kFastBlockChannels - block);
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t row = rows * part / parts;
      FastTile tile = tile_at(args, first_row + row, block);
      tile.rows = rows * (part + 1) / parts - row;
      tile.blocks = blocks;
      tile.channels = channels;
      tile.scratch = scratch;
      code.run(tail)(&tile);
    }
    block += blocks;
  }
}

void serve_fast_by_promised_class(LinearFacts* facts, const SelectionMachine& machine) {
  if (facts->numerics != Numerics::kFast) return;
  const KernelRow* named = facts->kernel.empty() ? nullptr : find_kernel(facts->kernel);
  if (named != nullptr && named->numerics == Numerics::kFast) return;
  LinearRequest request;
  request.numerics = Numerics::kFast;
  request.x_type = facts->x_type;
  request.weights = static_cast<omni_format>(facts->weights.format);
  request.many_rows = facts->max_m > 1;
  const Selection selection = named == nullptr ? select_with_permission(request, machine) : Selection{};
  if (selection.row != nullptr) return;
  facts->numerics = request.weights == OMNI_FORMAT_W16 ? Numerics::kDense : Numerics::kGroup;
  facts->remark = "class fast is served by class " + std::string(numerics_name(facts->numerics));
  if (named == nullptr) facts->remark += ", as no kernel of its own can run here (" + selection.reason + ")";
}

}  // namespace okl
