// SPDX-License-Identifier: Apache-2.0
// omni_dequantize: checks, then units of one block by one portion of a group, each by the kernel or, at the window's edges, by its
// compiled edge code.
#include <algorithm>

#include "kernels/api/error.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/settings.h"
#include "kernels/cpu/trace.h"
#include "kernels/dequant/dequant_kernel.h"
#include "kernels/dispatch/rows.h"
#include "kernels/format/checked.h"
#include "kernels/format/format.h"
#include "kernels/format/tg4.h"
#include "kernels/parallel/split.h"
#include "omni/dequant.h"

namespace okl {
namespace {

int64_t element_size(uint16_t type) { return type == OMNI_DTYPE_BF16 ? 2 : 4; }

// A result of this size does not stay in a second-level cache anyway, and a store that goes through the caches reads the line
// first: one thread wrote 54 MB at 5 GB/s through them and at 21 GB/s past them.
constexpr int64_t kStreamingBytes = int64_t{4} << 20;

int64_t window_bytes(const omni_dequant_args& args) {
  return (args.n1 - args.n0) * (args.k1 - args.k0) * element_size(args.out_type);
}

struct Job {
  const omni_dequant_args* args;
  DequantConfig config;
  int64_t step;
  DequantFn tile;
  DequantFn streaming_tile;  // nullptr: none, or the result is small
  DequantEdgeFn edge;

  // Units: [k0, k1) in portions that end at group boundaries and multiples of kDequantInputs inside a group.
  int64_t first_portion, portions;
  int64_t first_block, blocks;
};

// Inputs [begin, end) of portion `index`, counted from input 0 of the matrix.
struct Portion {
  int64_t group, begin, end;
};

int64_t portions_per_group(const omni_layout& layout) {
  return ceil_div(std::min<int64_t>(layout.group, layout.k), kDequantInputs);
}

Portion portion_at(const omni_layout& layout, int64_t index) {
  const int64_t each = portions_per_group(layout), group = index / each;
  const int64_t begin = group * layout.group + index % each * kDequantInputs;
  const int64_t group_end = std::min(layout.k, (group + 1) * static_cast<int64_t>(layout.group));
  return {group, begin, std::min(group_end, begin + kDequantInputs)};
}

int64_t portion_of(const omni_layout& layout, int64_t input) {
  return input / layout.group * portions_per_group(layout) + input % layout.group / kDequantInputs;
}

uint8_t* out_at(const Job& job, int64_t channel, int64_t input) {
  const omni_dequant_args& args = *job.args;
  const int64_t row = args.order == OMNI_ORDER_NK ? channel - args.n0 : input - args.k0;
  const int64_t column = args.order == OMNI_ORDER_NK ? input - args.k0 : channel - args.n0;
  return static_cast<uint8_t*>(args.out) + dense_offset(row, args.ld_out, column) * element_size(args.out_type);
}

void run_edge(const Job& job, int64_t block, int64_t c0, int64_t c1, const uint8_t* codes, const void* scales, int64_t begin,
              int64_t end) {
  if (begin >= end) return;
  const DequantEdge edge = {codes,
                            tg4::block_width(job.args->layout.n, block),
                            c0,
                            c1 - c0,
                            scales,
                            out_at(job, block * tg4::kBlock + c0, begin),
                            job.args->ld_out * element_size(job.args->out_type),
                            end - begin};
  job.edge(&edge);
}

bool streams(const Job& job, const DequantTile& tile) {
  return job.streaming_tile != nullptr && (reinterpret_cast<uintptr_t>(tile.out) | static_cast<uintptr_t>(tile.ld_out)) % 64 == 0;
}

void run_unit(const Job& job, int64_t block, const Portion& portion) {
  const omni_dequant_args& args = *job.args;
  const omni_layout& layout = args.layout;
  const int64_t begin = std::max(portion.begin, args.k0), end = std::min(portion.end, args.k1);
  const int64_t channel = block * tg4::kBlock, run = tg4::block_width(layout.n, block) / 2;
  const int64_t c0 = std::max<int64_t>(args.n0 - channel, 0), c1 = std::min(args.n1 - channel, tg4::kBlock);
  const uint8_t* codes = static_cast<const uint8_t*>(args.codes) + tg4::block_offset(layout.n, layout.k, block) + begin * run;
  const void* scales = static_cast<const uint8_t*>(args.scales) +
                       dense_offset(portion.group, layout.n, channel) * 2 * element_size(layout.scale_type);
  int64_t done = 0;
  if (c0 == 0 && c1 == tg4::kBlock) {
    done = (end - begin) / job.step * job.step;
    const DequantTile tile = {codes, scales, out_at(job, channel, begin), args.ld_out * element_size(args.out_type), done};
    if (done > 0) (streams(job, tile) ? job.streaming_tile : job.tile)(&tile);
  }
  run_edge(job, block, c0, c1, codes + done * run, scales, begin + done, end);
}

void run_units(const Job& job, int64_t begin, int64_t end) {
  for (int64_t unit = begin; unit < end; ++unit) {
    // Neighbouring units fill neighbouring parts of the same rows of the result.
    const bool by_input = job.config.order == OMNI_ORDER_KN;
    const int64_t block = by_input ? unit % job.blocks : unit / job.portions;
    const int64_t portion = by_input ? unit / job.blocks : unit % job.portions;
    run_unit(job, job.first_block + block, portion_at(job.args->layout, job.first_portion + portion));
  }
#if defined(__x86_64__)
  // Streaming stores are ordered by nothing else, not even by the lock that ends the region.
  if (job.streaming_tile != nullptr) __builtin_ia32_sfence();
#endif
}

omni_status check_window(const omni_dequant_args& args) {
  const omni_layout& layout = args.layout;
  if (args.n0 < 0 || args.n1 < args.n0 || args.n1 > layout.n) {
    return fail(OMNI_ERR_RANGE, "channels [%lld, %lld) of %lld", static_cast<long long>(args.n0), static_cast<long long>(args.n1),
                static_cast<long long>(layout.n));
  }
  if (args.k0 < 0 || args.k1 < args.k0 || args.k1 > layout.k) {
    return fail(OMNI_ERR_RANGE, "inputs [%lld, %lld) of %lld", static_cast<long long>(args.k0), static_cast<long long>(args.k1),
                static_cast<long long>(layout.k));
  }
  const int64_t rows = args.order == OMNI_ORDER_NK ? args.n1 - args.n0 : args.k1 - args.k0;
  const int64_t width = args.order == OMNI_ORDER_NK ? args.k1 - args.k0 : args.n1 - args.n0;
  if (args.ld_out < width) {
    return fail(OMNI_ERR_STRIDE, "ld_out is %lld, below %lld", static_cast<long long>(args.ld_out), static_cast<long long>(width));
  }
  int64_t bytes = 0;
  if (!checked_product({rows, args.ld_out, element_size(args.out_type)}, &bytes)) {
    return fail(OMNI_ERR_OVERFLOW, "ld_out = %lld times %lld rows does not fit", static_cast<long long>(args.ld_out),
                static_cast<long long>(rows));
  }
  return OMNI_OK;
}

omni_status check_buffer(const char* name, const void* data, size_t bytes, int64_t needed, int64_t alignment) {
  if (data == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", name);
  if (bytes < static_cast<size_t>(needed)) {
    return fail(OMNI_ERR_BUFFER_SIZE, "%s_bytes is %zu and %lld are needed", name, bytes, static_cast<long long>(needed));
  }
  if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(alignment) != 0) {
    return fail(OMNI_ERR_ALIGNMENT, "%s is not aligned to %lld bytes", name, static_cast<long long>(alignment));
  }
  return OMNI_OK;
}

omni_status check_buffers(const omni_dequant_args& args) {
  const omni_layout& layout = args.layout;
  int64_t codes = 0, scales = 0;
  if (!codes_bytes(OMNI_FORMAT_TG4, layout.n, layout.k, 0, &codes) ||
      !scales_bytes(layout.n, layout.k, layout.group, element_size(layout.scale_type), &scales)) {
    return fail(OMNI_ERR_OVERFLOW, "layout does not fit");
  }
  omni_status status = check_buffer("codes", args.codes, args.codes_bytes, codes, tg4::kAlignment);
  if (status == OMNI_OK) {
    status = check_buffer("scales", args.scales, args.scales_bytes, scales, element_size(layout.scale_type));
  }
  if (status == OMNI_OK) status = check_buffer("out", args.out, 0, 0, element_size(args.out_type));
  return status;
}

// Row of the registry: the caller's by name, else OMNI_KERNEL's if it can serve, else the first that can.
omni_status choose(const omni_dequant_args& args, Job* job, RowChoice* choice) {
  IsaMask allowed = current_machine().isa & hardware_isa();
  if (args.max_isa != nullptr) {
    const std::optional<IsaMask> cap = tier_mask(args.max_isa);
    if (!cap) return fail(OMNI_ERR_UNKNOWN_NAME, "max_isa \"%.80s\" is unknown", args.max_isa);
    allowed &= *cap;
  }
  const auto accept = [&](const KernelRow& row) {
    const DequantKernel& kernel = row.as<Op::kDequant>();
    job->tile = kernel.make(job->config, row.name);
    job->streaming_tile = nullptr;
    if (kernel.streams && window_bytes(args) >= kStreamingBytes) {
      DequantConfig streaming = job->config;
      streaming.streaming = 1;
      job->streaming_tile = kernel.make(streaming, row.name);
    }
    job->edge = kernel.edge(job->config);
    job->step = kernel.step;
    return job->tile != nullptr;
  };
  if (args.kernel != nullptr) {
    if (find_kernel(args.kernel) == nullptr) return fail(OMNI_ERR_UNKNOWN_NAME, "kernel \"%.80s\" is unknown", args.kernel);
    *choice = choose_row(Op::kDequant, allowed, args.kernel, accept);
    if (choice->row == nullptr) return fail(OMNI_ERR_NO_KERNEL, "kernel \"%.80s\" cannot serve here", args.kernel);
  }
  const std::string forced = settings().kernel;
  if (choice->row == nullptr && !forced.empty()) *choice = choose_row(Op::kDequant, allowed, forced, accept);
  if (choice->row == nullptr) *choice = choose_row(Op::kDequant, allowed, {}, accept);
  if (choice->row == nullptr) return fail(OMNI_ERR_NO_KERNEL, "no dequant kernel serves this machine");
  if (trace_enabled()) trace("dequantize: %s", choice->row->name.data());
  return OMNI_OK;
}

omni_status check_types(const omni_dequant_args& args) {
  if (args.size < sizeof args) return fail(OMNI_ERR_STRUCT_SIZE, "size is %u, below %zu", args.size, sizeof args);
  if (const omni_status status = check_layout(args.layout, "layout"); status != OMNI_OK) return status;
  if (args.layout.format != OMNI_FORMAT_TG4) return fail(OMNI_ERR_LAYOUT, "layout: format %u is not tg4", args.layout.format);
  if (args.out_type != OMNI_DTYPE_BF16 && args.out_type != OMNI_DTYPE_F32) {
    return fail(OMNI_ERR_TYPE, "out_type %u is neither bf16 nor f32", args.out_type);
  }
  if (args.order != OMNI_ORDER_NK && args.order != OMNI_ORDER_KN) return fail(OMNI_ERR_TYPE, "order %u is unknown", args.order);
  return OMNI_OK;
}

}  // namespace
}  // namespace okl

extern "C" omni_status omni_dequantize(const omni_dequant_args* args) {
  using namespace okl;
  if (args == nullptr) return fail(OMNI_ERR_NULL, "args is NULL");
  omni_status status = ensure_initialised();
  if (status == OMNI_OK) status = check_types(*args);
  if (status == OMNI_OK) status = check_window(*args);
  if (status != OMNI_OK) return status;
  const bool empty = args->n0 == args->n1 || args->k0 == args->k1;
  if (!empty) status = check_buffers(*args);
  omni_parallel parallel = {};
  if (status == OMNI_OK) status = effective_parallel(args->parallel, &parallel);
  Job job = {};
  job.args = args;
  job.config = {args->layout.scale_type, args->out_type, args->order, 0};
  RowChoice choice;
  if (status == OMNI_OK) status = choose(*args, &job, &choice);
  if (status != OMNI_OK) return status;
  if (empty) return succeed_by(choice);

  job.first_block = args->n0 / tg4::kBlock;
  job.blocks = (args->n1 - 1) / tg4::kBlock + 1 - job.first_block;
  job.first_portion = portion_of(args->layout, args->k0);
  job.portions = portion_of(args->layout, args->k1 - 1) + 1 - job.first_portion;
  split_evenly(parallel, job.blocks * job.portions, INT64_MAX, [&](int64_t begin, int64_t end) { run_units(job, begin, end); });
  return succeed_by(choice);
}
