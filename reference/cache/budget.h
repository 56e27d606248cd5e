// SPDX-License-Identifier: Apache-2.0
// How much memory the caches of keys and values need, told before any is allocated.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "omni/omni.h"

namespace ref {

// The attention layers of a model.
struct CacheModel {
  int64_t kv_heads, head_dim;
  std::vector<int64_t> windows;  // by layer; 0: the layer sees every position
};

// A sequence of `context` tokens that goes through the layers `chunk` rows at a time.
struct CacheRequest {
  int64_t context, chunk;
  omni_dtype type;
};

// Slots of one layer: a ring for a window, where that is less than the whole context; in blocks of OMNI_KV_BLOCK positions.
int64_t cache_slots(int64_t window, const CacheRequest& request);

struct CacheBudget {
  uint64_t hybrid;  // what is allocated: rings for layers with a window
  uint64_t flat;    // what it would be with the whole context in every layer
  uint64_t needed;  // hybrid with a headroom of a quarter, for what else a run touches
};

// Throws Error when sizes do not fit 63 bits, or the model has a shape that no cache takes.
CacheBudget cache_budget(const CacheModel& model, const CacheRequest& request);

// Throws MemoryError that begins with `name` and tells both figures when `available` bytes are not enough.
void check_budget(const std::string& name, const CacheRequest& request, const CacheBudget& budget, uint64_t available);

// "21.0 MiB", "1.50 GiB": units of 1024, named so.
std::string bytes_text(uint64_t bytes);

// A row of the memory table for each context.
struct CacheRow {
  int64_t context;
  CacheBudget budget;
};
std::vector<CacheRow> cache_table(const CacheModel& model, const std::vector<int64_t>& contexts, int64_t chunk, omni_dtype type);

}  // namespace ref
