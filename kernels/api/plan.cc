// SPDX-License-Identifier: Apache-2.0
#include "kernels/api/plan.h"

namespace okl {

const char* plan_kind_name(PlanKind kind) {
  switch (kind) {
    case PlanKind::kLinear:
      return "linear";
    case PlanKind::kQuantize:
      return "quantize";
    case PlanKind::kGather:
      return "gather";
    case PlanKind::kRmsnorm:
      return "rmsnorm";
    case PlanKind::kHeadgate:
      return "headgate";
    case PlanKind::kGeglu:
      return "geglu";
    case PlanKind::kRope:
      return "rope";
    case PlanKind::kAttention:
      return "attention";
    case PlanKind::kSwiglu:
      return "swiglu";
    case PlanKind::kHeadnorm:
      return "headnorm";
    case PlanKind::kConv1d:
      return "conv1d";
    case PlanKind::kDepthwise:
      return "depthwise";
    case PlanKind::kLayernorm:
      return "layernorm";
    case PlanKind::kActivation:
      return "activation";
  }
  return "";
}

}  // namespace okl

using namespace okl;

extern "C" {

void omni_plan_destroy(omni_plan* plan) { delete plan; }

omni_status omni_plan_get_info(const omni_plan* plan, omni_plan_info* out) {
  if (plan == nullptr || out == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", plan == nullptr ? "plan" : "out");
  if (out->size < sizeof *out) return fail(OMNI_ERR_STRUCT_SIZE, "omni_plan_info.size is %u, needs %zu", out->size, sizeof *out);
  omni_plan_info info{};
  info.size = out->size;
  info.kernel = info.reason = info.kernel_rows = info.reason_rows = info.code = "";
  plan->describe(&info);
  *out = info;
  return succeed();
}

}  // extern "C"
