// SPDX-License-Identifier: Apache-2.0
// What the entries of GEGLU and SwiGLU share: the two operations differ in a function of the kernel and in names.
#pragma once

#include <memory>
#include <new>

#include "kernels/activation/gated_kernel.h"
#include "kernels/api/row_plan.h"
#include "kernels/cpu/settings.h"

namespace okl {

template <Op op, PlanKind plan_kind>
struct GatedPlan : RowPlan {
  static constexpr PlanKind kKind = plan_kind;

  GatedPlan() : RowPlan(kKind) {}

  uint16_t x_type = OMNI_DTYPE_NONE, y_type = OMNI_DTYPE_NONE;
  int64_t n = 0;
  GatedRowFn run = nullptr;
};

template <typename Query>
omni_status check_gated_query(const Query& query, const char* struct_name) {
  if (query.size < sizeof query)
    return fail(OMNI_ERR_STRUCT_SIZE, "%s.size is %u, needs %zu", struct_name, query.size, sizeof query);
  if (!is_float_type(query.x_type)) return fail(OMNI_ERR_TYPE, "x_type %u is neither bf16 nor f32", query.x_type);
  if (!is_float_type(query.y_type)) return fail(OMNI_ERR_TYPE, "y_type %u is neither bf16 nor f32", query.y_type);
  if (query.n < 0) return fail(OMNI_ERR_SHAPE, "n is %lld", static_cast<long long>(query.n));
  if (query.n > INT64_MAX / 8) return fail(OMNI_ERR_OVERFLOW, "n is %lld: 2n elements do not fit", static_cast<long long>(query.n));
  return OMNI_OK;
}

template <Op op, PlanKind kind, typename Query>
omni_status select_gated(const Query* query, const char* struct_name, omni_plan** plan) {
  if (query == nullptr || plan == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", query == nullptr ? "query" : "plan");
  if (omni_status status = ensure_initialised(); status != OMNI_OK) return status;
  if (omni_status status = check_gated_query(*query, struct_name); status != OMNI_OK) return status;
  try {
    auto made = std::make_unique<GatedPlan<op, kind>>();
    if (omni_status status = made->choose(op, query->kernel, query->max_isa); status != OMNI_OK) return status;
    made->x_type = query->x_type;
    made->y_type = query->y_type;
    made->n = query->n;
    made->run = made->row->template as<op>().row_for(query->x_type, query->y_type);
    *plan = made.release();
    return succeed();
  } catch (const std::bad_alloc&) {
    return fail(OMNI_ERR_OUT_OF_MEMORY, "no memory for a plan");
  }
}

template <Op op, PlanKind kind, typename Args>
omni_status run_gated(const omni_plan* handle, const Args* args) {
  omni_status status;
  const auto* plan = plan_as<GatedPlan<op, kind>>(handle, &status);
  if (plan == nullptr) return status;
  if (status = check_args(*plan, args, args != nullptr ? args->size : 0, sizeof *args); status != OMNI_OK) return status;
  if (args->m == 0) return succeed();
  status = check_rows("gate_up", args->gate_up, plan->x_type, args->m, 2 * plan->n, args->ld_gate_up);
  if (status == OMNI_OK) status = check_rows("y", args->y, plan->y_type, args->m, plan->n, args->ldy);
  if (status != OMNI_OK) return status;
  return run_rows(args->parallel, args->m, 2 * plan->n, [&](int64_t first, int64_t last) {
    const auto x_bytes = static_cast<int64_t>(type_bytes(plan->x_type)), y_bytes = static_cast<int64_t>(type_bytes(plan->y_type));
    for (int64_t r = first; r < last; ++r) {
      const auto* gate = static_cast<const uint8_t*>(args->gate_up) + r * args->ld_gate_up * x_bytes;
      const GatedRow row = {gate, gate + plan->n * x_bytes, static_cast<uint8_t*>(args->y) + r * args->ldy * y_bytes, plan->n};
      plan->run(&row);
    }
  });
}

}  // namespace okl
