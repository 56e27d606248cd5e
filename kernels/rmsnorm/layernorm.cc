// SPDX-License-Identifier: Apache-2.0
// The entries of omni/layernorm.h.
#include "omni/layernorm.h"

#include <cmath>
#include <memory>
#include <new>

#include "kernels/api/row_plan.h"
#include "kernels/cpu/settings.h"
#include "kernels/rmsnorm/layernorm_kernel.h"

namespace okl {
namespace {

struct LayernormPlan : RowPlan {
  static constexpr PlanKind kKind = PlanKind::kLayernorm;

  LayernormPlan() : RowPlan(kKind) {}

  uint16_t x_type = OMNI_DTYPE_NONE, y_type = OMNI_DTYPE_NONE;
  int64_t n = 0;
  float eps = 0;
  LayernormRowFn run = nullptr;
};

omni_status check_query(const omni_layernorm_query& query) {
  if (query.size < sizeof query) {
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_layernorm_query.size is %u, needs %zu", query.size, sizeof query);
  }
  if (!is_float_type(query.x_type)) return fail(OMNI_ERR_TYPE, "x_type %u is neither bf16 nor f32", query.x_type);
  if (!is_float_type(query.y_type)) return fail(OMNI_ERR_TYPE, "y_type %u is neither bf16 nor f32", query.y_type);
  if (query.reserved != 0) return fail(OMNI_ERR_TYPE, "reserved is %u", query.reserved);
  if (query.n < 1) return fail(OMNI_ERR_SHAPE, "n is %lld", static_cast<long long>(query.n));
  if (!(query.eps >= 0.0F) || std::isinf(query.eps)) {
    return fail(OMNI_ERR_RANGE, "eps is %g, must be finite and not negative", static_cast<double>(query.eps));
  }
  return OMNI_OK;
}

omni_status check_operands(const LayernormPlan& plan, const omni_layernorm_args& args) {
  omni_status status = check_rows("x", args.x, plan.x_type, args.m, plan.n, args.ldx);
  if (status == OMNI_OK) status = check_rows("y", args.y, plan.y_type, args.m, plan.n, args.ldy);
  if (status == OMNI_OK && args.weight != nullptr) status = check_array("weight", args.weight, sizeof(float));
  if (status == OMNI_OK && args.bias != nullptr) status = check_array("bias", args.bias, sizeof(float));
  return status;
}

void run_part(const LayernormPlan& plan, const omni_layernorm_args& args, int64_t first, int64_t last) {
  const auto x_bytes = static_cast<int64_t>(type_bytes(plan.x_type)), y_bytes = static_cast<int64_t>(type_bytes(plan.y_type));
  for (int64_t r = first; r < last; ++r) {
    const LayernormRow row = {static_cast<const uint8_t*>(args.x) + r * args.ldx * x_bytes, args.weight, args.bias,
                              static_cast<uint8_t*>(args.y) + r * args.ldy * y_bytes,       plan.n,      plan.eps};
    plan.run(&row);
  }
}

}  // namespace
}  // namespace okl

using namespace okl;

extern "C" {

omni_status omni_layernorm_select(const omni_layernorm_query* query, omni_plan** plan) {
  if (query == nullptr || plan == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", query == nullptr ? "query" : "plan");
  if (omni_status status = ensure_initialised(); status != OMNI_OK) return status;
  if (omni_status status = check_query(*query); status != OMNI_OK) return status;
  try {
    auto made = std::make_unique<LayernormPlan>();
    if (omni_status status = made->choose(Op::kLayernorm, query->kernel, query->max_isa); status != OMNI_OK) return status;
    made->x_type = query->x_type;
    made->y_type = query->y_type;
    made->n = query->n;
    made->eps = query->eps;
    made->run = made->row->as<Op::kLayernorm>().row_for(query->x_type, query->y_type);
    *plan = made.release();
    return succeed();
  } catch (const std::bad_alloc&) {
    return fail(OMNI_ERR_OUT_OF_MEMORY, "no memory for a plan");
  }
}

omni_status omni_layernorm_run(const omni_plan* handle, const omni_layernorm_args* args) {
  omni_status status;
  const auto* plan = plan_as<LayernormPlan>(handle, &status);
  if (plan == nullptr) return status;
  if (status = check_args(*plan, args, args != nullptr ? args->size : 0, sizeof *args); status != OMNI_OK) return status;
  if (args->m == 0) return succeed();
  if (status = check_operands(*plan, *args); status != OMNI_OK) return status;
  return run_rows(args->parallel, args->m, plan->n, [&](int64_t first, int64_t last) { run_part(*plan, *args, first, last); });
}

}  // extern "C"
