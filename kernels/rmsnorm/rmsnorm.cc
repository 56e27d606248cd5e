// SPDX-License-Identifier: Apache-2.0
// The entries of omni/rmsnorm.h.
#include "omni/rmsnorm.h"

#include <cmath>
#include <memory>
#include <new>

#include "kernels/api/row_plan.h"
#include "kernels/cpu/settings.h"
#include "kernels/rmsnorm/rmsnorm_kernel.h"

namespace okl {
namespace {

struct RmsnormPlan : RowPlan {
  static constexpr PlanKind kKind = PlanKind::kRmsnorm;

  RmsnormPlan() : RowPlan(kKind) {}

  RmsnormConfig config = {};
  RmsnormSteps steps = {};
  int64_t n = 0;
  float eps = 0;
};

bool float_or_none(uint16_t type) { return type == OMNI_DTYPE_NONE || is_float_type(type); }

omni_status check_query(const omni_rmsnorm_query& query) {
  if (query.size < sizeof query) {
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_rmsnorm_query.size is %u, needs %zu", query.size, sizeof query);
  }
  if (!is_float_type(query.x_type)) return fail(OMNI_ERR_TYPE, "x_type %u is neither bf16 nor f32", query.x_type);
  if (!float_or_none(query.weight_type)) return fail(OMNI_ERR_TYPE, "weight_type %u is not bf16, f32 or none", query.weight_type);
  if (!float_or_none(query.residual_type)) {
    return fail(OMNI_ERR_TYPE, "residual_type %u is not bf16, f32 or none", query.residual_type);
  }
  const bool codes = query.y_type == OMNI_DTYPE_S8;
  if (!codes && !is_float_type(query.y_type)) return fail(OMNI_ERR_TYPE, "y_type %u is not bf16, f32 or s8", query.y_type);
  if (codes ? !is_float_type(query.code_source) : query.code_source != OMNI_DTYPE_NONE) {
    return fail(OMNI_ERR_TYPE, "code_source %u does not go with y_type %u", query.code_source, query.y_type);
  }
  if (query.rounding != OMNI_RMSNORM_ONE_ROUNDING && query.rounding != OMNI_RMSNORM_TWO_ROUNDINGS) {
    return fail(OMNI_ERR_TYPE, "rounding %u is unknown", query.rounding);
  }
  if (query.reserved != 0) return fail(OMNI_ERR_TYPE, "reserved is %u", query.reserved);
  if (query.n < 1) return fail(OMNI_ERR_SHAPE, "n is %lld", static_cast<long long>(query.n));
  if (!(query.eps >= 0.0F) || std::isinf(query.eps)) {
    return fail(OMNI_ERR_RANGE, "eps is %g, must be finite and not negative", static_cast<double>(query.eps));
  }
  return OMNI_OK;
}

omni_status check_operands(const RmsnormPlan& plan, const omni_rmsnorm_args& args) {
  const RmsnormConfig& config = plan.config;
  omni_status status = check_rows("x", args.x, config.x_type, args.m, plan.n, args.ldx);
  if (status == OMNI_OK) status = check_rows("y", args.y, config.y_type, args.m, plan.n, args.ldy);
  if (status == OMNI_OK && config.weight_type != OMNI_DTYPE_NONE) {
    status = check_array("weight", args.weight, type_bytes(config.weight_type));
  }
  if (status == OMNI_OK && config.residual_type != OMNI_DTYPE_NONE) {
    status = check_rows("residual", args.residual, config.residual_type, args.m, plan.n, args.ld_residual);
  }
  if (status == OMNI_OK && config.y_type == OMNI_DTYPE_S8) status = check_array("scales", args.scales, sizeof(float));
  return status;
}

int64_t row_bytes(int64_t ld, uint16_t type) { return ld * static_cast<int64_t>(type_bytes(type)); }

void run_part(const RmsnormPlan& plan, const omni_rmsnorm_args& args, int64_t first, int64_t last) {
  const RmsnormConfig& config = plan.config;
  const bool adds = config.residual_type != OMNI_DTYPE_NONE, codes = config.y_type == OMNI_DTYPE_S8;
  RmsnormRow row;
  row.config = &config;
  row.weight = args.weight;
  row.n = plan.n;
  row.eps = plan.eps;
  for (int64_t r = first; r < last; ++r) {
    row.x = static_cast<const uint8_t*>(args.x) + r * row_bytes(args.ldx, config.x_type);
    row.residual = adds ? static_cast<uint8_t*>(args.residual) + r * row_bytes(args.ld_residual, config.residual_type) : nullptr;
    row.y = static_cast<uint8_t*>(args.y) + r * row_bytes(args.ldy, config.y_type);
    row.scale = codes ? args.scales + r : nullptr;
    plan.steps.measure(&row);
    plan.steps.scale(&row);
  }
}

}  // namespace
}  // namespace okl

using namespace okl;

extern "C" {

omni_status omni_rmsnorm_select(const omni_rmsnorm_query* query, omni_plan** plan) {
  if (query == nullptr || plan == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", query == nullptr ? "query" : "plan");
  if (omni_status status = ensure_initialised(); status != OMNI_OK) return status;
  if (omni_status status = check_query(*query); status != OMNI_OK) return status;
  try {
    auto made = std::make_unique<RmsnormPlan>();
    if (omni_status status = made->choose(Op::kRmsnorm, query->kernel, query->max_isa); status != OMNI_OK) return status;
    made->config = {query->x_type, query->weight_type, query->residual_type, query->y_type, query->code_source, query->rounding};
    made->steps = made->row->as<Op::kRmsnorm>().steps(made->config);
    made->n = query->n;
    made->eps = query->eps;
    *plan = made.release();
    return succeed();
  } catch (const std::bad_alloc&) {
    return fail(OMNI_ERR_OUT_OF_MEMORY, "no memory for a plan");
  }
}

omni_status omni_rmsnorm_run(const omni_plan* handle, const omni_rmsnorm_args* args) {
  omni_status status;
  const auto* plan = plan_as<RmsnormPlan>(handle, &status);
  if (plan == nullptr) return status;
  if (status = check_args(*plan, args, args != nullptr ? args->size : 0, sizeof *args); status != OMNI_OK) return status;
  if (args->m == 0) return succeed();
  if (status = check_operands(*plan, *args); status != OMNI_OK) return status;
  return run_rows(args->parallel, args->m, plan->n, [&](int64_t first, int64_t last) { run_part(*plan, *args, first, last); });
}

}  // extern "C"
