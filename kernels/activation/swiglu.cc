// SPDX-License-Identifier: Apache-2.0
// The entries of omni/swiglu.h.
#include "omni/swiglu.h"

#include "kernels/activation/gated.h"

using namespace okl;

extern "C" {

omni_status omni_swiglu_select(const omni_swiglu_query* query, omni_plan** plan) {
  return select_gated<Op::kSwiglu, PlanKind::kSwiglu>(query, "omni_swiglu_query", plan);
}

omni_status omni_swiglu_run(const omni_plan* plan, const omni_swiglu_args* args) {
  return run_gated<Op::kSwiglu, PlanKind::kSwiglu>(plan, args);
}

}  // extern "C"
