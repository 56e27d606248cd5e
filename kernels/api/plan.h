// SPDX-License-Identifier: Apache-2.0
// What stands behind the opaque omni_plan: one base, one derived class for each operation.
#pragma once

#include "kernels/api/error.h"
#include "kernels/dispatch/kernel.h"
#include "omni/linear.h"

namespace okl {

enum class PlanKind : uint8_t {
  kLinear,
  kQuantize,
  kGather,
  kRmsnorm,
  kHeadgate,
  kGeglu,
  kRope,
  kAttention,
  kSwiglu,
  kHeadnorm,
  kConv1d,
  kDepthwise,
  kLayernorm,
  kActivation
};

const char* plan_kind_name(PlanKind kind);

}  // namespace okl

// The opaque handle. Immutable after the select call that made it, so any number of threads may use it.
struct omni_plan {
  explicit omni_plan(okl::PlanKind plan_kind) : kind(plan_kind) {}
  omni_plan(const omni_plan&) = delete;
  omni_plan& operator=(const omni_plan&) = delete;
  virtual ~omni_plan() = default;

  // Fills everything but `size`, which the caller has checked; `out` is all zero and empty strings before.
  virtual void describe(omni_plan_info* out) const = 0;

  const okl::PlanKind kind;
};

namespace okl {

// The plan as its class, or nullptr with the status set for omni_last_error() when it is NULL or of another operation.
template <typename Plan>
const Plan* plan_as(const omni_plan* plan, omni_status* status) {
  if (plan == nullptr) {
    *status = fail(OMNI_ERR_NULL, "plan is NULL");
    return nullptr;
  }
  if (plan->kind != Plan::kKind) {
    *status = fail(OMNI_ERR_TYPE, "plan is of operation %s, not %s", plan_kind_name(plan->kind), plan_kind_name(Plan::kKind));
    return nullptr;
  }
  *status = OMNI_OK;
  return static_cast<const Plan*>(plan);
}

}  // namespace okl
