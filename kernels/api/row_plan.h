// SPDX-License-Identifier: Apache-2.0
// Plans of the operations that one compiled row of the registry serves, and what their entries share: choosing the row, checks of
// arguments, cutting rows into tasks.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "kernels/api/plan.h"
#include "kernels/format/checked.h"
#include "kernels/parallel/split.h"

namespace okl {

struct RowPlan : omni_plan {
  using omni_plan::omni_plan;

  // The first row of `op` that the machine (under `max_isa`) has, or the one called `kernel`; OMNI_KERNEL's where it can serve.
  // Names may be NULL or "". Call ensure_initialised() first.
  omni_status choose(Op op, const char* kernel, const char* max_isa);
  void describe(omni_plan_info* out) const override;

  const KernelRow* row = nullptr;
  std::string reason;
  std::string not_runnable;  // why the hardware cannot run it (a profile was emulated), "" when it can
};

inline bool misaligned(const void* pointer, size_t alignment) { return reinterpret_cast<uintptr_t>(pointer) % alignment != 0; }
inline size_t type_bytes(uint16_t type) { return type == OMNI_DTYPE_F32 ? 4 : type == OMNI_DTYPE_S8 ? 1 : 2; }
inline bool is_float_type(uint16_t type) { return type == OMNI_DTYPE_BF16 || type == OMNI_DTYPE_F32; }

// An operand of m rows: present, aligned to its element, rows of `width` elements `ld` apart, sizes that fit.
omni_status check_rows(const char* name, const void* data, uint16_t type, int64_t rows, int64_t width, int64_t ld);
// An operand without rows: present and aligned.
omni_status check_array(const char* name, const void* data, size_t alignment);
// args and its size, and that the hardware can run the plan.
omni_status check_args(const RowPlan& plan, const void* args, uint32_t size, size_t expected);

// A task of this many elements takes one to three microseconds, ten times what handing it to a thread costs.
inline constexpr int64_t kLeastTaskElements = 16384;

// work(first, last) over `rows` rows of `width` elements: on the calling thread where that is too little to share. The pool is not
// even looked up then, which is most of what a run of one row would cost besides its work.
template <typename Work>
omni_status run_rows(const omni_parallel* given, int64_t rows, int64_t width, const Work& work) {
  const int64_t most_tasks = rows / std::max<int64_t>(1, kLeastTaskElements / std::max<int64_t>(1, width));
  if (most_tasks <= 1 && given == nullptr) {
    work(int64_t{0}, rows);
    return succeed();
  }
  omni_parallel parallel;
  if (omni_status status = effective_parallel(given, &parallel); status != OMNI_OK) return status;
  split_evenly(parallel, rows, std::max<int64_t>(1, most_tasks), work);
  return succeed();
}

}  // namespace okl
