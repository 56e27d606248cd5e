// SPDX-License-Identifier: Apache-2.0
// A callable over indices on an omni_parallel.
#pragma once

#include <cstdint>

#include "omni/omni.h"

namespace ref {

// Calls function(i) for every i in [0, count), on `parallel` or, when that is null, on the process-wide pool. Must not throw.
template <typename Function>
void parallel_for(const omni_parallel* parallel, int64_t count, const Function& function) {
  omni_parallel fallback = {};
  fallback.size = sizeof fallback;
  if (parallel == nullptr && omni_default_parallel(&fallback) == OMNI_OK) parallel = &fallback;
  if (parallel == nullptr) {
    for (int64_t i = 0; i < count; ++i) function(i);
    return;
  }
  parallel->parallel_for(
      parallel->context, count, [](void* context, int64_t index) { (*static_cast<const Function*>(context))(index); },
      const_cast<Function*>(&function));
}

}  // namespace ref
