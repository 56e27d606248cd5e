// SPDX-License-Identifier: Apache-2.0
// The entries of omni/geglu.h.
#include "omni/geglu.h"

#include "kernels/activation/gated.h"

using namespace okl;

extern "C" {

omni_status omni_geglu_select(const omni_geglu_query* query, omni_plan** plan) {
  return select_gated<Op::kGeglu, PlanKind::kGeglu>(query, "omni_geglu_query", plan);
}

omni_status omni_geglu_run(const omni_plan* plan, const omni_geglu_args* args) {
  return run_gated<Op::kGeglu, PlanKind::kGeglu>(plan, args);
}

}  // extern "C"
