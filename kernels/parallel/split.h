// SPDX-License-Identifier: Apache-2.0
// Cutting a range of independent items into tasks for the caller's parallel_for.
#pragma once

#include <algorithm>
#include <cstdint>

#include "kernels/api/error.h"
#include "omni/parallel.h"

namespace okl {

// Checks what the caller gave; NULL means the process-wide pool.
inline omni_status effective_parallel(const omni_parallel* given, omni_parallel* out) {
  if (given == nullptr) {
    out->size = sizeof *out;
    return omni_default_parallel(out);
  }
  if (given->size < sizeof *given) return fail(OMNI_ERR_STRUCT_SIZE, "parallel: size is %u, below %zu", given->size, sizeof *given);
  if (given->parallel_for == nullptr) return fail(OMNI_ERR_NULL, "parallel: parallel_for is NULL");
  if (given->threads < 1) return fail(OMNI_ERR_RANGE, "parallel: threads is 0");
  *out = *given;
  return OMNI_OK;
}

// Blocks a thread: enough for the fast one to take over from the slow one, few enough that claiming them costs nothing.
inline constexpr int64_t kTasksPerThread = 4;

// Calls work(task, begin, end) for contiguous parts of [0, total), task numbers below most_tasks. One part runs on the calling
// thread.
template <typename Work>
void split_tasks(const omni_parallel& parallel, int64_t total, int64_t most_tasks, const Work& work) {
  struct Context {
    const Work* work;
    int64_t each, larger;  // the first `larger` tasks take one item more

    int64_t begin(int64_t task) const { return task * each + std::min(task, larger); }
  };
  if (total <= 0) return;
  const int64_t wanted = parallel.threads == 1 ? 1 : int64_t{parallel.threads} * kTasksPerThread;
  const int64_t tasks = std::max<int64_t>(1, std::min({total, most_tasks, wanted}));
  if (tasks == 1) {
    work(int64_t{0}, int64_t{0}, total);
    return;
  }
  Context context = {&work, total / tasks, total % tasks};
  const omni_task run = [](void* opaque, int64_t task) {
    const auto& part = *static_cast<const Context*>(opaque);
    (*part.work)(task, part.begin(task), part.begin(task + 1));
  };
  parallel.parallel_for(parallel.context, tasks, run, &context);
}

// The same for work(begin, end).
template <typename Work>
void split_evenly(const omni_parallel& parallel, int64_t total, int64_t most_tasks, const Work& work) {
  split_tasks(parallel, total, most_tasks, [&](int64_t, int64_t begin, int64_t end) { work(begin, end); });
}

}  // namespace okl
