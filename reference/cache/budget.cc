// SPDX-License-Identifier: Apache-2.0
#include "reference/cache/budget.h"

#include <algorithm>
#include <array>
#include <cstdio>

#include "reference/core/check.h"

namespace ref {
namespace {

int64_t whole_blocks(int64_t positions) { return (positions + OMNI_KV_BLOCK - 1) / OMNI_KV_BLOCK * OMNI_KV_BLOCK; }

// A quarter on top.
constexpr uint64_t kHeadroomParts = 4;

uint64_t layer_bytes(const CacheModel& model, omni_dtype type, int64_t slots) {
  size_t bytes = 0;
  check(omni_kv_cache_size(type, static_cast<uint32_t>(model.kv_heads), static_cast<uint32_t>(model.head_dim), slots, &bytes),
        "KV cache");
  return bytes;
}

uint64_t sum(uint64_t a, uint64_t b) {
  uint64_t total;
  if (__builtin_add_overflow(a, b, &total) || total > INT64_MAX) throw Error("KV cache: the sizes of the layers overflow");
  return total;
}

}  // namespace

int64_t cache_slots(int64_t window, const CacheRequest& request) {
  if (request.context < 1) throw Error("a context of " + std::to_string(request.context) + " tokens");
  if (request.context > OMNI_ROPE_MOST_POSITIONS) {
    throw Error("a context of " + std::to_string(request.context) + " tokens is more than positions can have (" +
                std::to_string(OMNI_ROPE_MOST_POSITIONS) + ")");
  }
  const int64_t all = whole_blocks(request.context);
  if (window == 0) return all;
  int64_t slots = 0;
  check(omni_kv_cache_ring(window, request.chunk, &slots), "KV cache");
  return std::min(slots, all);
}

CacheBudget cache_budget(const CacheModel& model, const CacheRequest& request) {
  CacheBudget budget{};
  for (const int64_t window : model.windows) {
    budget.hybrid = sum(budget.hybrid, layer_bytes(model, request.type, cache_slots(window, request)));
    budget.flat = sum(budget.flat, layer_bytes(model, request.type, cache_slots(0, request)));
  }
  budget.needed = sum(budget.hybrid, budget.hybrid / kHeadroomParts);
  return budget;
}

void check_budget(const std::string& name, const CacheRequest& request, const CacheBudget& budget, uint64_t available) {
  if (budget.needed <= available) return;
  throw MemoryError(name + ": the KV cache of " + std::to_string(request.context) + " tokens takes " + bytes_text(budget.hybrid) +
                    " (" + bytes_text(budget.flat) + " if every layer kept the whole context), with a quarter of headroom " +
                    bytes_text(budget.needed) + "; " + bytes_text(available) + " of memory is available");
}

std::string bytes_text(uint64_t bytes) {
  constexpr uint64_t kMiB = uint64_t{1} << 20;
  std::array<char, 32> text;
  const double mebibytes = static_cast<double>(bytes) / static_cast<double>(kMiB);
  if (bytes < 1024 * kMiB) {
    std::snprintf(text.data(), text.size(), "%.1f MiB", mebibytes);
  } else {
    std::snprintf(text.data(), text.size(), "%.2f GiB", mebibytes / 1024);
  }
  return text.data();
}

std::vector<CacheRow> cache_table(const CacheModel& model, const std::vector<int64_t>& contexts, int64_t chunk, omni_dtype type) {
  std::vector<CacheRow> rows;
  rows.reserve(contexts.size());
  for (const int64_t context : contexts) rows.push_back({context, cache_budget(model, {context, chunk, type})});
  return rows;
}

}  // namespace ref
