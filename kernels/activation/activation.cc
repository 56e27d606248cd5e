// SPDX-License-Identifier: Apache-2.0
// The entries of omni/activation.h.
#include "omni/activation.h"

#include <memory>
#include <new>

#include "kernels/activation/activation_kernel.h"
#include "kernels/api/row_plan.h"
#include "kernels/cpu/settings.h"

namespace okl {
namespace {

struct ActivationPlan : RowPlan {
  static constexpr PlanKind kKind = PlanKind::kActivation;

  ActivationPlan() : RowPlan(kKind) {}

  bool by_column() const { return function == OMNI_ACTIVATION_SNAKE; }

  uint16_t function = 0, x_type = OMNI_DTYPE_NONE, y_type = OMNI_DTYPE_NONE;
  int64_t n = 0;
  ActivationRowFn run = nullptr;
};

omni_status check_query(const omni_activation_query& query) {
  if (query.size < sizeof query) {
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_activation_query.size is %u, needs %zu", query.size, sizeof query);
  }
  if (query.function < OMNI_ACTIVATION_RELU || query.function > OMNI_ACTIVATION_SNAKE) {
    return fail(OMNI_ERR_TYPE, "function %u is unknown", query.function);
  }
  if (!is_float_type(query.x_type)) return fail(OMNI_ERR_TYPE, "x_type %u is neither bf16 nor f32", query.x_type);
  if (!is_float_type(query.y_type)) return fail(OMNI_ERR_TYPE, "y_type %u is neither bf16 nor f32", query.y_type);
  if (query.reserved != 0) return fail(OMNI_ERR_TYPE, "reserved is %u", query.reserved);
  if (query.n < 0) return fail(OMNI_ERR_SHAPE, "n is %lld", static_cast<long long>(query.n));
  return OMNI_OK;
}

omni_status check_operands(const ActivationPlan& plan, const omni_activation_args& args) {
  omni_status status = check_rows("x", args.x, plan.x_type, args.m, plan.n, args.ldx);
  if (status == OMNI_OK) status = check_rows("y", args.y, plan.y_type, args.m, plan.n, args.ldy);
  if (status == OMNI_OK && plan.by_column()) status = check_array("a", args.a, sizeof(float));
  if (status == OMNI_OK && plan.by_column()) status = check_array("b", args.b, sizeof(float));
  return status;
}

void run_part(const ActivationPlan& plan, const omni_activation_args& args, int64_t first, int64_t last) {
  const auto x_bytes = static_cast<int64_t>(type_bytes(plan.x_type)), y_bytes = static_cast<int64_t>(type_bytes(plan.y_type));
  ActivationRow row = {static_cast<const uint8_t*>(args.x) + first * args.ldx * x_bytes, args.a, args.b,
                       static_cast<uint8_t*>(args.y) + first * args.ldy * y_bytes, plan.n};
  if (!plan.by_column() && args.ldx == plan.n && args.ldy == plan.n) {  // without gaps, rows are one long one
    row.n = (last - first) * plan.n;
    plan.run(&row);
    return;
  }
  for (int64_t r = first; r < last; ++r) {
    plan.run(&row);
    row.x = static_cast<const uint8_t*>(row.x) + args.ldx * x_bytes;
    row.y = static_cast<uint8_t*>(row.y) + args.ldy * y_bytes;
  }
}

}  // namespace
}  // namespace okl

using namespace okl;

extern "C" {

omni_status omni_activation_select(const omni_activation_query* query, omni_plan** plan) {
  if (query == nullptr || plan == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", query == nullptr ? "query" : "plan");
  if (omni_status status = ensure_initialised(); status != OMNI_OK) return status;
  if (omni_status status = check_query(*query); status != OMNI_OK) return status;
  try {
    auto made = std::make_unique<ActivationPlan>();
    if (omni_status status = made->choose(Op::kActivation, query->kernel, query->max_isa); status != OMNI_OK) return status;
    made->function = query->function;
    made->x_type = query->x_type;
    made->y_type = query->y_type;
    made->n = query->n;
    made->run = made->row->as<Op::kActivation>().row_for(query->function, query->x_type, query->y_type);
    *plan = made.release();
    return succeed();
  } catch (const std::bad_alloc&) {
    return fail(OMNI_ERR_OUT_OF_MEMORY, "no memory for a plan");
  }
}

omni_status omni_activation_run(const omni_plan* handle, const omni_activation_args* args) {
  omni_status status;
  const auto* plan = plan_as<ActivationPlan>(handle, &status);
  if (plan == nullptr) return status;
  if (status = check_args(*plan, args, args != nullptr ? args->size : 0, sizeof *args); status != OMNI_OK) return status;
  if (args->m == 0) return succeed();
  if (status = check_operands(*plan, *args); status != OMNI_OK) return status;
  return run_rows(args->parallel, args->m, plan->n, [&](int64_t first, int64_t last) { run_part(*plan, *args, first, last); });
}

}  // extern "C"
