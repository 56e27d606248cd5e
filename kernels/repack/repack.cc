// SPDX-License-Identifier: Apache-2.0
// omni_repack: checks, then tiles of 64 channels by 512 inputs, each read and written by one thread from its stack.
#include <algorithm>
#include <atomic>
#include <cstring>

#include "kernels/api/error.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/settings.h"
#include "kernels/cpu/trace.h"
#include "kernels/dispatch/rows.h"
#include "kernels/format/blocks64.h"
#include "kernels/format/checked.h"
#include "kernels/format/format.h"
#include "kernels/format/tg4.h"
#include "kernels/format/vllm_w4a8.h"
#include "kernels/parallel/split.h"
#include "kernels/repack/act_order.h"
#include "kernels/repack/destination.h"
#include "kernels/repack/source.h"
#include "kernels/repack/steps.h"
#include "omni/repack.h"

namespace okl {
namespace {

// A tile and the frames around it, rounded up: what one running task may hold.
constexpr size_t kTaskBytes = sizeof(CodeTile) + 8192;
constexpr int64_t kMostTasks = OMNI_REPACK_TRANSIENT_LIMIT / kTaskBytes;
constexpr int64_t kNoBadCode = INT64_MAX;

struct Job {
  omni_format from = OMNI_FORMAT_NONE, to = OMNI_FORMAT_NONE;
  CodeView in, out;
  const void* source = nullptr;
  void* destination = nullptr;
  const int32_t* permutation = nullptr;
  StepFacts facts;
  Packer packer;
  int64_t columns = 0;       // of the destination: its inputs with padding, or the bytes of a row of halves
  int64_t tile_columns = 0;  // of those in one tile
  int64_t column_tiles = 0;
  std::atomic<int64_t> first_bad{kNoBadCode};  // row * K + column of the lowest code above 15
};

// Channels of a tile that the destination stores.
int64_t stored_channels(const Job& job, int64_t channel) {
  int64_t all = job.out.n;
  if (job.to == OMNI_FORMAT_W4S) {
    all = kW4s.padded_n(all);
  } else if (is_blocked(job.to)) {
    all = tg4::padded_n(all);
  }
  return std::min(kTileChannels, all - channel);
}

// int8 weights, and not codes of four bits.
bool holds_s8(omni_format format) { return format == OMNI_FORMAT_W8S || format == OMNI_FORMAT_CODES_S8; }

// The rows of a tile are searched only after their OR showed that there is something to find.
void note_bad_code(Job& job, int64_t channel, int64_t channels, const InputRange& inputs) {
  for (int64_t c = channel; c < channel + channels; ++c) {
    int64_t lowest = kNoBadCode;
    for (int64_t i = 0; i < inputs.count; ++i) {
      const int64_t input = inputs.source(i);
      if (read_wide_code(job.from, job.in, job.source, c, input) > 15) lowest = std::min(lowest, dense_offset(c, job.in.k, input));
    }
    if (lowest == kNoBadCode) continue;
    int64_t known = job.first_bad.load(std::memory_order_relaxed);
    while (lowest < known && !job.first_bad.compare_exchange_weak(known, lowest, std::memory_order_relaxed)) {
    }
    return;
  }
}

void read_checked(Job& job, int64_t channel, int64_t channels, const InputRange& inputs, CodeTile* tile, int64_t column) {
  if (inputs.count <= 0) return;
  if (is_stepped(job.from)) {
    read_steps(job.from, job.in, job.facts, static_cast<const uint8_t*>(job.source), channel, channels, inputs, tile, column);
    return;
  }
  const uint32_t seen = read_codes(job.from, job.in, job.source, channel, channels, inputs, tile, column);
  if (seen > 15 && !holds_s8(job.from)) note_bad_code(job, channel, channels, inputs);
}

void fill_padding(const Job& job, int64_t channel, int64_t channels, int64_t known, int64_t count, CodeTile* tile) {
  const int64_t stored = stored_channels(job, channel);
  for (int64_t c = 0; c < stored; ++c) {
    const int64_t from = c < channels ? known : 0;
    if (from < count) std::memset(tile->row(c) + from, holds_s8(job.to) ? 0 : tg4::kPadCode, static_cast<size_t>(count - from));
  }
}

// The general way: any source into a tile, the tile into any destination.
void repack_tile(Job& job, int64_t channel, int64_t first, int64_t count) {
  CodeTile tile;
  const int64_t channels = std::min(kTileChannels, job.in.n - channel);
  if (job.to == OMNI_FORMAT_ROW_HALVES) {
    const int64_t half = ceil_div(job.in.k, 2), high = std::min(count, job.in.k - half - first);
    read_checked(job, channel, channels, {first, count, job.permutation}, &tile, 0);
    read_checked(job, channel, channels, {half + first, high, job.permutation}, &tile, kTileInputs / 2);
  } else {
    const int64_t known = std::min(count, job.in.k - first);
    read_checked(job, channel, channels, {first, known, job.permutation}, &tile, 0);
    fill_padding(job, channel, channels, known, count, &tile);
  }
  if (is_stepped(job.to)) {
    write_steps(job.to, job.out, job.facts, static_cast<uint8_t*>(job.destination), channel, first, count, tile);
    return;
  }
  write_codes(job.to, job.out, job.destination, channel, channels, first, count, tile, job.packer);
}

// Straight from u8 codes into a whole tg4 block, as far as whole steps of the kernel go. Returns the inputs done.
int64_t pack_directly(Job& job, int64_t channel, int64_t first, int64_t count) {
  if (job.from != OMNI_FORMAT_CODES_U8 || job.to != OMNI_FORMAT_TG4 || job.permutation != nullptr) return 0;
  if (job.in.n - channel < kTileChannels) return 0;
  const int64_t inputs = std::min(count, job.in.k - first) / job.packer.step * job.packer.step;
  if (inputs == 0) return 0;
  const auto* codes = static_cast<const uint8_t*>(job.source) + dense_offset(channel, job.in.ld, first);
  auto* out = static_cast<uint8_t*>(job.destination) + tg4::block_offset(job.in.n, job.in.k, channel / tg4::kBlock);
  const PackTile tile = {codes, job.in.ld, out + first * tg4::kBlockBytes, inputs};
  if (job.packer.run(&tile) != 0) note_bad_code(job, channel, kTileChannels, {first, inputs, nullptr});
  return inputs;
}

void repack_range(Job& job, int64_t begin, int64_t end) {
  for (int64_t index = begin; index < end; ++index) {
    const int64_t channel = index / job.column_tiles * kTileChannels, first = index % job.column_tiles * job.tile_columns;
    const int64_t count = std::min(job.tile_columns, job.columns - first);
    const int64_t done = pack_directly(job, channel, first, count);
    if (done < count) repack_tile(job, channel, first + done, count - done);
  }
}

omni_status check_operand(const char* name, omni_format format, const omni_repack_args& args, const void* data, size_t bytes,
                          int64_t ld, CodeView* view) {
  const int64_t dense = dense_ld(format, args.n, args.k), element = element_bytes(format);
  if (is_blocked(format) ? ld != 0 : ld != 0 && ld < dense) {
    return fail(OMNI_ERR_STRIDE, "%s_ld is %lld and must be 0%s%lld", name, static_cast<long long>(ld),
                is_blocked(format) ? " for blocks, not " : " or at least ",
                static_cast<long long>(is_blocked(format) ? ld : dense));
  }
  int64_t needed = 0, pitch = 0;
  const bool vllm = format == OMNI_FORMAT_VLLM_W4A8;
  if (vllm && !vllm::serves(args.n, args.k, args.group)) {
    return fail(OMNI_ERR_SHAPE,
                "%s: vLLM's blocks need n %% 32 == 0 and k %% min(group, 128) == 0, not n = %lld, k = %lld, group %u", name,
                static_cast<long long>(args.n), static_cast<long long>(args.k), args.group);
  }
  if (!(vllm ? vllm_w4a8_bytes(args.n, args.k, args.group, &needed) : codes_bytes(format, args.n, args.k, ld, &needed)) ||
      !checked_product({ld == 0 ? dense : ld, element}, &pitch)) {
    return fail(OMNI_ERR_OVERFLOW, "%s: n = %lld times k = %lld does not fit", name, static_cast<long long>(args.n),
                static_cast<long long>(args.k));
  }
  *view = {args.n, args.k, pitch};
  if (args.n == 0) return OMNI_OK;
  if (data == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", name);
  if (bytes < static_cast<size_t>(needed)) {
    return fail(OMNI_ERR_BUFFER_SIZE, "%s_bytes is %zu and %lld are needed", name, bytes, static_cast<long long>(needed));
  }
  return OMNI_OK;
}

omni_status check_alignment(const char* name, const void* data, int64_t alignment) {
  if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(alignment) == 0) return OMNI_OK;
  return fail(OMNI_ERR_ALIGNMENT, "%s is not aligned to %lld bytes", name, static_cast<long long>(alignment));
}

// w16 and w32 have an entry of their own.
bool is_source(uint32_t format) { return is_format(format) && format != OMNI_FORMAT_W16 && format != OMNI_FORMAT_W32; }

bool is_destination(uint32_t format) {
  return is_source(format) && format != OMNI_FORMAT_GPTQ && format != OMNI_FORMAT_AWQ && format != OMNI_FORMAT_CT_PACKED;
}

omni_status check_act_order(const omni_repack_args& args) {
  if (args.g_idx == nullptr) {
    if (args.k_permutation != nullptr) return fail(OMNI_ERR_NULL, "k_permutation is given and g_idx is NULL");
    return OMNI_OK;
  }
  if (args.k_permutation == nullptr) return fail(OMNI_ERR_NULL, "g_idx is given and k_permutation is NULL");
  if (!is_group(args.group, args.k)) {
    return fail(OMNI_ERR_GROUP, "group %u is not 32, 64, 128, 256 or k = %lld", args.group, static_cast<long long>(args.k));
  }
  return OMNI_OK;
}

omni_status check_repack(const omni_repack_args& args, Job* job) {
  if (args.size < sizeof args) return fail(OMNI_ERR_STRUCT_SIZE, "size is %u, below %zu", args.size, sizeof args);
  if (!is_source(args.source_format)) return fail(OMNI_ERR_LAYOUT, "source_format %u is unknown", args.source_format);
  if (!is_destination(args.destination_format)) {
    return fail(OMNI_ERR_LAYOUT, "destination_format %u is no destination", args.destination_format);
  }
  job->from = static_cast<omni_format>(args.source_format);
  job->to = static_cast<omni_format>(args.destination_format);
  if (holds_s8(job->from) != holds_s8(job->to)) {
    return fail(OMNI_ERR_LAYOUT, "%s to %s: int8 weights and codes of four bits do not convert", format_name(job->from).data(),
                format_name(job->to).data());
  }
  if (args.n < 0 || args.k < 1) {
    return fail(OMNI_ERR_SHAPE, "n is %lld and k is %lld", static_cast<long long>(args.n), static_cast<long long>(args.k));
  }
  job->facts = {args.group, args.zeros};
  omni_status status = check_operand("source", job->from, args, args.source, args.source_bytes, args.source_ld, &job->in);
  if (status == OMNI_OK) {
    status = check_operand("destination", job->to, args, args.destination, args.destination_bytes, args.destination_ld, &job->out);
  }
  if (status == OMNI_OK) status = check_alignment("source", args.source, element_bytes(job->from));
  if (status == OMNI_OK) {
    status = check_alignment("destination", args.destination, is_blocked(job->to) ? tg4::kAlignment : element_bytes(job->to));
  }
  if (status == OMNI_OK) status = check_act_order(args);
  return status;
}

// The pack kernel of this machine. A forced name that is no pack kernel, or cannot run here, does not concern this operation.
omni_status choose_packer(Packer* packer, RowChoice* choice) {
  const IsaMask allowed = current_machine().isa & hardware_isa();
  const std::string forced = settings().kernel;
  const auto accept = [&](const KernelRow& row) {
    const PackKernel& kernel = row.as<Op::kPack>();
    *packer = {kernel.step, kernel.make(row.name)};
    return packer->run != nullptr;
  };
  if (!forced.empty()) *choice = choose_row(Op::kPack, allowed, forced, accept);
  if (choice->row == nullptr) *choice = choose_row(Op::kPack, allowed, {}, accept);
  if (choice->row == nullptr) return fail(OMNI_ERR_NO_KERNEL, "no pack kernel serves this machine");
  if (trace_enabled()) trace("repack: %s", choice->row->name.data());
  return OMNI_OK;
}

void plan_tiles(Job* job) {
  job->columns = job->in.k;
  job->tile_columns = kTileInputs;
  if (job->to == OMNI_FORMAT_TG4 || job->to == OMNI_FORMAT_W4S || job->to == OMNI_FORMAT_W8S)
    job->columns = tg4::padded_k(job->in.k);
  if (job->to == OMNI_FORMAT_ROW_HALVES) {
    job->columns = ceil_div(job->in.k, 2);
    job->tile_columns = kTileInputs / 2;
  }
  job->column_tiles = ceil_div(job->columns, job->tile_columns);
}

}  // namespace
}  // namespace okl

extern "C" omni_status omni_repack(const omni_repack_args* args) {
  using namespace okl;
  if (args == nullptr) return fail(OMNI_ERR_NULL, "args is NULL");
  if (const omni_status status = ensure_initialised(); status != OMNI_OK) return status;
  Job job;
  if (const omni_status status = check_repack(*args, &job); status != OMNI_OK) return status;
  omni_parallel parallel;
  RowChoice choice;
  if (const omni_status status = effective_parallel(args->parallel, &parallel); status != OMNI_OK) return status;
  if (const omni_status status = choose_packer(&job.packer, &choice); status != OMNI_OK) return status;
  if (args->g_idx != nullptr) {
    const omni_status status =
        sort_by_group(args->g_idx, args->k, args->group, OMNI_REPACK_TRANSIENT_LIMIT / 2, args->k_permutation);
    if (status != OMNI_OK) return status;
    job.permutation = args->k_permutation;
  }
  if (args->n == 0) return succeed_by(choice);

  job.source = args->source;
  job.destination = args->destination;
  plan_tiles(&job);
  split_evenly(parallel, ceil_div(args->n, kTileChannels) * job.column_tiles, kMostTasks,
               [&](int64_t begin, int64_t end) { repack_range(job, begin, end); });

  const int64_t bad = job.first_bad.load(std::memory_order_relaxed);
  if (bad == kNoBadCode) return succeed_by(choice);
  const int64_t row = bad / args->k, column = bad % args->k;
  return fail(OMNI_ERR_CODE, "code of row %lld, column %lld is %lld, above 15", static_cast<long long>(row),
              static_cast<long long>(column),
              static_cast<long long>(static_cast<int32_t>(read_wide_code(job.from, job.in, args->source, row, column))));
}
