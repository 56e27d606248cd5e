// SPDX-License-Identifier: Apache-2.0
// A parallel for over a caller's omni_parallel, or the process-wide pool.
#pragma once

#include <cstdint>
#include <type_traits>

#include "omni/omni.h"
#include "reference/core/error.h"

namespace ref {

// Calls body(index) once for each index in [0, count), from any thread, in any order. `body` must not throw.
template <typename Body>
void parallel_for(const omni_parallel* parallel, int64_t count, Body&& body) {
  omni_parallel pool{};
  if (parallel == nullptr) {
    pool.size = sizeof pool;
    if (omni_default_parallel(&pool) != OMNI_OK) throw Error(omni_last_error());
    parallel = &pool;
  }
  using Callable = std::remove_reference_t<Body>;
  const omni_task task = [](void* context, int64_t index) { (*static_cast<Callable*>(context))(index); };
  parallel->parallel_for(parallel->context, count, task, const_cast<void*>(static_cast<const void*>(&body)));
}

}  // namespace ref
