// SPDX-License-Identifier: Apache-2.0
// The plan of an attention shape: which kernel, and how a run of m rows is cut into units and its workspace.
#pragma once

#include <string>

#include "kernels/api/plan.h"
#include "kernels/attention/attention_kernel.h"

namespace okl {

// How m rows are cut. It depends on the plan and on m only, so that the workspace does.
struct AttentionCut {
  int64_t rows;       // of one K/V head
  int64_t unit_rows;  // at most; the last unit of a head may have fewer
  int64_t units;      // of all heads; unit u is of head u % kv_heads
  int64_t units_per_head;
  bool by_segment;                 // few units: the segments of a unit are computed in parallel and merged afterwards
  int64_t wave_segments;           // with by_segment: segments of each unit that are in flight together
  int64_t q_floats, state_floats;  // of a unit
  int64_t workspace_floats;
};

struct AttentionPlan final : omni_plan {
  static constexpr PlanKind kKind = PlanKind::kAttention;
  explicit AttentionPlan(const omni_attention_query& from);
  void describe(omni_plan_info* out) const override;
  AttentionCut cut(uint32_t m) const;

  omni_attention_query query;  // pointers cleared, max_threads and scale resolved
  int64_t group;               // query heads of a K/V head
  const KernelRow* row = nullptr;
  const AttentionKernel* kernel = nullptr;
  std::string reason;
  std::string not_runnable;  // why the hardware cannot run it (a profile was emulated), "" when it can
};

// Checked arguments, m > 0.
void run_attention(const AttentionPlan& plan, const omni_attention_args& args, const omni_parallel& parallel);

// Which of the caller's structures is wrong, and how.
omni_status check_cache(const omni_kv_cache* cache);

}  // namespace okl
