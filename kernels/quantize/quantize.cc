// SPDX-License-Identifier: Apache-2.0
// The entries of omni/quantize.h.
#include "omni/quantize.h"

#include <memory>
#include <new>

#include "kernels/api/row_plan.h"
#include "kernels/cpu/settings.h"
#include "kernels/quantize/quantize.h"

namespace okl {

QuantizeRowFn quantize_row_for(IsaMask allowed, uint16_t x_type) {
  for (const KernelRow& row : registry()) {
    if (row.op == Op::kQuantize && (row.required & ~allowed) == 0) return row.as<Op::kQuantize>().for_type(x_type);
  }
  return nullptr;  // not reached: the portable row needs nothing
}

namespace {

struct QuantizePlan : RowPlan {
  static constexpr PlanKind kKind = PlanKind::kQuantize;

  QuantizePlan() : RowPlan(kKind) {}

  uint16_t x_type = OMNI_DTYPE_NONE;
  int64_t k = 0;
  QuantizeRowFn run = nullptr;
};

omni_status check_query(const omni_quantize_query& query) {
  if (query.size < sizeof query) {
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_quantize_query.size is %u, needs %zu", query.size, sizeof query);
  }
  if (!is_float_type(query.x_type)) return fail(OMNI_ERR_TYPE, "x_type %u is neither bf16 nor f32", query.x_type);
  if (query.reserved != 0) return fail(OMNI_ERR_TYPE, "reserved is %u", query.reserved);
  if (query.k < 0) return fail(OMNI_ERR_SHAPE, "k is %lld", static_cast<long long>(query.k));
  return OMNI_OK;
}

omni_status check_operands(const QuantizePlan& plan, const omni_quantize_args& args) {
  omni_status status = check_rows("x", args.x, plan.x_type, args.m, plan.k, args.ldx);
  if (status == OMNI_OK) status = check_rows("codes", args.codes, OMNI_DTYPE_S8, args.m, plan.k, args.ld_codes);
  if (status == OMNI_OK) status = check_array("scales", args.scales, sizeof(float));
  return status;
}

}  // namespace
}  // namespace okl

using namespace okl;

extern "C" {

omni_status omni_quantize_select(const omni_quantize_query* query, omni_plan** plan) {
  if (query == nullptr || plan == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", query == nullptr ? "query" : "plan");
  if (omni_status status = ensure_initialised(); status != OMNI_OK) return status;
  if (omni_status status = check_query(*query); status != OMNI_OK) return status;
  try {
    auto made = std::make_unique<QuantizePlan>();
    if (omni_status status = made->choose(Op::kQuantize, query->kernel, query->max_isa); status != OMNI_OK) return status;
    made->x_type = query->x_type;
    made->k = query->k;
    made->run = made->row->as<Op::kQuantize>().for_type(query->x_type);
    *plan = made.release();
    return succeed();
  } catch (const std::bad_alloc&) {
    return fail(OMNI_ERR_OUT_OF_MEMORY, "no memory for a plan");
  }
}

omni_status omni_quantize_run(const omni_plan* handle, const omni_quantize_args* args) {
  omni_status status;
  const auto* plan = plan_as<QuantizePlan>(handle, &status);
  if (plan == nullptr) return status;
  if (status = check_args(*plan, args, args != nullptr ? args->size : 0, sizeof *args); status != OMNI_OK) return status;
  if (args->m == 0) return succeed();
  if (status = check_operands(*plan, *args); status != OMNI_OK) return status;
  return run_rows(args->parallel, args->m, plan->k, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) {
      const QuantizeRow row = {
          static_cast<const uint8_t*>(args->x) + r * args->ldx * static_cast<int64_t>(type_bytes(plan->x_type)), plan->k,
          args->codes + r * args->ld_codes, args->scales + r};
      plan->run(&row);
    }
  });
}

}  // extern "C"
