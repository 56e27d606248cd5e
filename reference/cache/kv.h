// SPDX-License-Identifier: Apache-2.0
// The caches of all layers of one sequence, in one block of memory that becomes resident as it is used.
#pragma once

#include <cstdint>
#include <vector>

#include "omni/omni.h"
#include "reference/cache/budget.h"
#include "reference/core/memory.h"

namespace ref {

class KvCaches {
 public:
  KvCaches(const CacheModel& model, const CacheRequest& request);

  omni_kv_cache& layer(int64_t index) { return caches_[static_cast<size_t>(index)]; }
  void reset();
  // Takes tokens back. False, and nothing changes, when a ring no longer holds what a token at `position` sees.
  bool rewind(int64_t position);
  uint64_t bytes() const { return bytes_; }
  // Bytes of keys and values that a token at `position` reads, its own included.
  uint64_t bytes_read_at(int64_t position) const;

 private:
  std::vector<int64_t> windows_;
  uint64_t position_bytes_;  // of one layer
  uint64_t bytes_ = 0;
  Memory memory_;
  std::vector<omni_kv_cache> caches_;
};

}  // namespace ref
