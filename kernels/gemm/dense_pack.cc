// SPDX-License-Identifier: Apache-2.0
// omni_pack_dense and omni_unpack_dense: checks, then tiles of 64 channels by 32 inputs, transposed on the stack of one thread.
#include <algorithm>
#include <atomic>
#include <cinttypes>
#include <cmath>

#include "kernels/api/error.h"
#include "kernels/format/bf16.h"
#include "kernels/format/blocks64.h"
#include "kernels/format/checked.h"
#include "kernels/format/f16.h"
#include "kernels/gemm/dense_scrub.h"
#include "kernels/parallel/split.h"
#include "omni/dense.h"

namespace okl {
namespace {

constexpr int64_t kTileInputs = 32;
// A thread's unit of work: long enough that a block's strips are few, short enough to share one block between threads.
constexpr int64_t kStripInputs = 1024;
constexpr int64_t kNone = INT64_MAX;

template <typename T>
struct Tile {
  T value[Blocks64::kBlock][kTileInputs];
};

// One block of the packed array as its rows of pairs (w16) or inputs (w32) see it.
struct BlockPlace {
  int64_t channel, channels, width;  // first, existing, stored
  int64_t offset;                    // bytes
};

BlockPlace place_of(const Blocks64& blocks, int64_t n, int64_t k, int64_t block) {
  const int64_t channel = block * Blocks64::kBlock, width = blocks.block_width(n, block);
  return {channel, std::min(width, n - channel), width, blocks.block_offset(n, k, block)};
}

// --- packing ------------------------------------------------------------------------------------------------------------------

struct PackJob {
  const void* source;
  int64_t ld, n, k;
  uint8_t* out;
  bool scrub, refuse_inexact;
  std::atomic<int64_t> small_values{0};
  std::atomic<int64_t> first_inexact{kNone};  // row * K + column of the lowest
};

float widen(float value) { return value; }
struct Half {
  uint16_t bits;
};
float widen(Half value) { return f16_to_float(value.bits); }
float widen(uint16_t bits) { return bf16_to_float(bits); }

template <typename Source>
uint16_t to_bf16(Source value) {
  if constexpr (std::is_same_v<Source, uint16_t>) {
    return value;
  } else {
    return bf16_round_ieee(widen(value));
  }
}

// A row of a tile: converts `count` values, and returns how many of them are small.
template <typename Source>
int64_t convert_row(const PackJob& job, const Source* in, int64_t count, uint16_t* out) {
  uint32_t small_values = 0;
  for (int64_t i = 0; i < count; ++i) {
    const uint16_t bits = to_bf16(in[i]);
    const bool small = is_small_weight(bits);
    small_values += small ? 1 : 0;
    out[i] = small && job.scrub ? 0 : bits;
  }
  return small_values;
}
template <typename Source>
int64_t convert_row(const PackJob&, const Source* in, int64_t count, float* out) {
  for (int64_t i = 0; i < count; ++i) out[i] = widen(in[i]);
  return 0;
}

template <typename Source>
void note_inexact(PackJob& job, const Source* in, int64_t count, int64_t index) {
  for (int64_t i = 0; i < count; ++i) {
    const float value = widen(in[i]);
    if (std::isnan(value) || bf16_to_float(to_bf16(in[i])) == value) continue;
    int64_t known = job.first_inexact.load(std::memory_order_relaxed);
    while (index + i < known && !job.first_inexact.compare_exchange_weak(known, index + i, std::memory_order_relaxed)) {
    }
    return;
  }
}

// Element (channel c, input i) of a tile goes to pair i / 2 of the block.
void store_tile(const Tile<uint16_t>& tile, int64_t width, int64_t inputs, uint8_t* out) {
  auto* pairs = reinterpret_cast<uint32_t*>(out);
  for (int64_t j = 0; j < (inputs + 1) / 2; ++j) {
    for (int64_t c = 0; c < width; ++c) {
      pairs[j * width + c] = static_cast<uint32_t>(tile.value[c][2 * j]) | static_cast<uint32_t>(tile.value[c][2 * j + 1]) << 16;
    }
  }
}
void store_tile(const Tile<float>& tile, int64_t width, int64_t inputs, uint8_t* out) {
  auto* values = reinterpret_cast<float*>(out);
  for (int64_t i = 0; i < inputs; ++i) {
    for (int64_t c = 0; c < width; ++c) values[i * width + c] = tile.value[c][i];
  }
}

template <typename Source, typename Element>
void pack_strip(PackJob& job, const Blocks64& blocks, int64_t block, int64_t first, int64_t last) {
  const BlockPlace place = place_of(blocks, job.n, job.k, block);
  int64_t small_values = 0;
  for (int64_t k0 = first; k0 < last; k0 += kTileInputs) {
    const int64_t stored = std::min(kTileInputs, last - k0), count = std::clamp<int64_t>(job.k - k0, 0, stored);
    Tile<Element> tile = {};
    for (int64_t c = 0; c < place.channels; ++c) {
      const Source* in = static_cast<const Source*>(job.source) + dense_offset(place.channel + c, job.ld, k0);
      small_values += convert_row(job, in, count, tile.value[c]);
      if constexpr (std::is_same_v<Element, uint16_t> && !std::is_same_v<Source, uint16_t>) {
        if (job.refuse_inexact) note_inexact(job, in, count, dense_offset(place.channel + c, job.k, k0));
      }
    }
    store_tile(tile, place.width, stored, job.out + place.offset + k0 * place.width * blocks.bytes_per_two / 2);
  }
  job.small_values.fetch_add(small_values, std::memory_order_relaxed);
}

template <typename Source, typename Element>
void pack_all(PackJob& job, const Blocks64& blocks, const omni_parallel& parallel) {
  const int64_t columns = blocks.padded_k(job.k), strips = ceil_div(columns, kStripInputs), items = blocks.blocks(job.n) * strips;
  split_evenly(parallel, items, items, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t first = item % strips * kStripInputs;
      pack_strip<Source, Element>(job, blocks, item / strips, first, std::min(first + kStripInputs, columns));
    }
  });
}

template <typename Source>
void pack_from(PackJob& job, bool w16, const omni_parallel& parallel) {
  if (w16) return pack_all<Source, uint16_t>(job, kW16, parallel);
  pack_all<Source, float>(job, kW32, parallel);
}

// --- unpacking ----------------------------------------------------------------------------------------------------------------

template <typename Out>
void unpack_row(const omni_unpack_dense_args& args, int64_t row, Out* out) {
  const omni_layout& layout = args.layout;
  const bool w16 = layout.format == OMNI_FORMAT_W16;
  const Blocks64& blocks = w16 ? kW16 : kW32;
  const BlockPlace place = place_of(blocks, layout.n, layout.k, row / Blocks64::kBlock);
  const uint8_t* in = static_cast<const uint8_t*>(args.weights) + place.offset + (row - place.channel) * 4;
  for (int64_t i = 0; i < layout.k; ++i) {
    if (w16) {
      const uint16_t bits = reinterpret_cast<const uint16_t*>(in + i / 2 * place.width * 4)[i % 2];
      if constexpr (std::is_same_v<Out, float>) {
        out[i] = bf16_to_float(bits);
      } else {
        out[i] = bits;
      }
    } else if constexpr (std::is_same_v<Out, float>) {
      out[i] = *reinterpret_cast<const float*>(in + i * place.width * 4);
    }
  }
}

template <typename Out>
void unpack_all(const omni_unpack_dense_args& args, const omni_parallel& parallel) {
  const int64_t rows = args.n1 - args.n0, ld = args.out_ld == 0 ? args.layout.k : args.out_ld;
  split_evenly(parallel, rows, rows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row)
      unpack_row(args, args.n0 + row, static_cast<Out*>(args.out) + dense_offset(row, ld, 0));
  });
}

// --- checks -------------------------------------------------------------------------------------------------------------------

omni_status check_dense_layout(const omni_layout& layout) {
  if (const omni_status status = omni_layout_check(&layout); status != OMNI_OK) return status;
  if (layout.format == OMNI_FORMAT_W16 || layout.format == OMNI_FORMAT_W32) return OMNI_OK;
  return fail(OMNI_ERR_LAYOUT, "layout.format %u is neither w16 nor w32", layout.format);
}

omni_status check_packed(const char* name, const omni_layout& layout, const void* data, size_t bytes) {
  size_t needed = 0;
  if (const omni_status status = omni_packed_size(&layout, &needed); status != OMNI_OK) return status;
  if (needed == 0) return OMNI_OK;
  if (data == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", name);
  if (reinterpret_cast<uintptr_t>(data) % 16 != 0) return fail(OMNI_ERR_ALIGNMENT, "%s is not aligned to 16 bytes", name);
  if (bytes < needed) return fail(OMNI_ERR_BUFFER_SIZE, "%s_bytes is %zu and %zu are needed", name, bytes, needed);
  return OMNI_OK;
}

omni_status check_matrix(const char* name, int64_t rows, int64_t k, int64_t ld, int64_t element, const void* data, size_t bytes) {
  if (ld != 0 && ld < k) return fail(OMNI_ERR_STRIDE, "%s_ld %" PRId64 " is less than K %" PRId64, name, ld, k);
  if (rows == 0) return OMNI_OK;
  int64_t before = 0, elements = 0, needed = 0;
  if (!checked_product({rows - 1, ld == 0 ? k : ld}, &before) || !checked_sum(before, k, &elements) ||
      !checked_product({elements, element}, &needed)) {
    return fail(OMNI_ERR_OVERFLOW, "%s_ld %" PRId64 " times %" PRId64 " rows does not fit", name, ld, rows);
  }
  if (data == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", name);
  if (reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(element) != 0) {
    return fail(OMNI_ERR_ALIGNMENT, "%s is not aligned to its element", name);
  }
  if (bytes < static_cast<size_t>(needed)) {
    return fail(OMNI_ERR_BUFFER_SIZE, "%s_bytes is %zu and %" PRId64 " are needed", name, bytes, needed);
  }
  return OMNI_OK;
}

int64_t bytes_of(uint16_t type) { return type == OMNI_DTYPE_F32 ? 4 : 2; }

omni_status check_pack(const omni_pack_dense_args& args) {
  if (args.size < sizeof args)
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_pack_dense_args.size is %u, needs %zu", args.size, sizeof args);
  if (args.source_type != OMNI_DTYPE_BF16 && args.source_type != OMNI_DTYPE_F16 && args.source_type != OMNI_DTYPE_F32) {
    return fail(OMNI_ERR_TYPE, "source_type %u is not bf16, f16 or f32", args.source_type);
  }
  if (const omni_status status = check_dense_layout(args.layout); status != OMNI_OK) return status;
  const omni_status status = check_matrix("source", args.layout.n, args.layout.k, args.source_ld, bytes_of(args.source_type),
                                          args.source, args.source_bytes);
  return status != OMNI_OK ? status : check_packed("out", args.layout, args.out, args.out_bytes);
}

omni_status check_unpack(const omni_unpack_dense_args& args) {
  if (args.size < sizeof args) {
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_unpack_dense_args.size is %u, needs %zu", args.size, sizeof args);
  }
  if (const omni_status status = check_dense_layout(args.layout); status != OMNI_OK) return status;
  const bool w16 = args.layout.format == OMNI_FORMAT_W16;
  if (args.out_type != OMNI_DTYPE_F32 && !(args.out_type == OMNI_DTYPE_BF16 && w16)) {
    return fail(OMNI_ERR_TYPE, "out_type %u does not hold %s weights exactly", args.out_type, w16 ? "w16" : "w32");
  }
  if (args.n0 < 0 || args.n1 < args.n0 || args.n1 > args.layout.n) {
    return fail(OMNI_ERR_RANGE, "rows [%" PRId64 ", %" PRId64 ") are not in 0..%" PRId64, args.n0, args.n1, args.layout.n);
  }
  const omni_status status =
      check_matrix("out", args.n1 - args.n0, args.layout.k, args.out_ld, bytes_of(args.out_type), args.out, args.out_bytes);
  return status != OMNI_OK ? status : check_packed("weights", args.layout, args.weights, args.weights_bytes);
}

}  // namespace
}  // namespace okl

using namespace okl;

extern "C" {

omni_status omni_pack_dense(const omni_pack_dense_args* args, omni_pack_dense_result* result) {
  if (args == nullptr) return fail(OMNI_ERR_NULL, "args is NULL");
  if (result != nullptr && result->size < sizeof *result) {
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_pack_dense_result.size is %u, needs %zu", result->size, sizeof *result);
  }
  if (const omni_status status = check_pack(*args); status != OMNI_OK) return status;
  omni_parallel parallel;
  if (const omni_status status = effective_parallel(args->parallel, &parallel); status != OMNI_OK) return status;

  const omni_layout& layout = args->layout;
  const bool w16 = layout.format == OMNI_FORMAT_W16;
  PackJob job = {.source = args->source,
                 .ld = args->source_ld == 0 ? layout.k : args->source_ld,
                 .n = layout.n,
                 .k = layout.k,
                 .out = static_cast<uint8_t*>(args->out),
                 .scrub = (layout.flags & OMNI_LAYOUT_SCRUBBED) != 0,
                 .refuse_inexact = args->refuse_inexact != 0};
  if (layout.n > 0) {
    if (args->source_type == OMNI_DTYPE_F32) {
      pack_from<float>(job, w16, parallel);
    } else if (args->source_type == OMNI_DTYPE_F16) {
      pack_from<Half>(job, w16, parallel);
    } else {
      pack_from<uint16_t>(job, w16, parallel);
    }
  }
  if (const int64_t index = job.first_inexact.load(std::memory_order_relaxed); index != kNone) {
    return fail(OMNI_ERR_INEXACT, "weight of row %" PRId64 ", column %" PRId64 " is no bf16 value", index / layout.k,
                index % layout.k);
  }
  if (result != nullptr) {
    result->reserved = 0;
    result->small_values = job.small_values.load(std::memory_order_relaxed);
    result->layout = layout;
    if (w16 && result->small_values == 0) result->layout.flags |= OMNI_LAYOUT_SCRUBBED;
  }
  return succeed();
}

omni_status omni_unpack_dense(const omni_unpack_dense_args* args) {
  if (args == nullptr) return fail(OMNI_ERR_NULL, "args is NULL");
  if (const omni_status status = check_unpack(*args); status != OMNI_OK) return status;
  omni_parallel parallel;
  if (const omni_status status = effective_parallel(args->parallel, &parallel); status != OMNI_OK) return status;
  if (args->n1 == args->n0) return succeed();
  if (args->out_type == OMNI_DTYPE_F32) {
    unpack_all<float>(*args, parallel);
  } else {
    unpack_all<uint16_t>(*args, parallel);
  }
  return succeed();
}

}  // extern "C"
