// SPDX-License-Identifier: Apache-2.0
// The entries of omni/headnorm.h.
#include "omni/headnorm.h"

#include <cmath>
#include <memory>
#include <new>

#include "kernels/api/row_plan.h"
#include "kernels/cpu/settings.h"
#include "kernels/rmsnorm/headnorm_kernel.h"

namespace okl {
namespace {

struct HeadnormPlan : RowPlan {
  static constexpr PlanKind kKind = PlanKind::kHeadnorm;

  HeadnormPlan() : RowPlan(kKind) {}

  int64_t width() const { return (q_heads + k_heads) * head_dim; }

  uint16_t type = OMNI_DTYPE_NONE;
  int64_t q_heads = 0, k_heads = 0, head_dim = 0;
  float eps = 0;
  HeadnormRowFn run = nullptr;
};

omni_status check_query(const omni_headnorm_query& query) {
  if (query.size < sizeof query) {
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_headnorm_query.size is %u, needs %zu", query.size, sizeof query);
  }
  if (!is_float_type(query.type)) return fail(OMNI_ERR_TYPE, "type %u is neither bf16 nor f32", query.type);
  if (query.reserved != 0) return fail(OMNI_ERR_TYPE, "reserved is %u", query.reserved);
  if (query.q_heads == 0 && query.k_heads == 0) return fail(OMNI_ERR_SHAPE, "q_heads and k_heads are 0");
  if (query.head_dim == 0) return fail(OMNI_ERR_SHAPE, "head_dim is 0");
  const uint64_t heads = uint64_t{query.q_heads} + query.k_heads;
  if (heads > INT64_MAX / query.head_dim) {
    return fail(OMNI_ERR_OVERFLOW, "%llu heads of %u elements do not fit 63 bits", static_cast<unsigned long long>(heads),
                query.head_dim);
  }
  if (!(query.eps >= 0.0F) || std::isinf(query.eps)) {
    return fail(OMNI_ERR_RANGE, "eps is %g, must be finite and not negative", static_cast<double>(query.eps));
  }
  return OMNI_OK;
}

omni_status check_operands(const HeadnormPlan& plan, const omni_headnorm_args& args) {
  omni_status status = check_rows("x", args.x, plan.type, args.m, plan.width(), args.ldx);
  if (status == OMNI_OK && plan.q_heads > 0) status = check_array("q_weight", args.q_weight, sizeof(float));
  if (status == OMNI_OK && plan.k_heads > 0) status = check_array("k_weight", args.k_weight, sizeof(float));
  return status;
}

void run_part(const HeadnormPlan& plan, const omni_headnorm_args& args, int64_t first, int64_t last) {
  const auto bytes = static_cast<int64_t>(type_bytes(plan.type));
  for (int64_t r = first; r < last; ++r) {
    auto* x = static_cast<uint8_t*>(args.x) + r * args.ldx * bytes;
    const HeadnormRow q = {x, args.q_weight, plan.q_heads, plan.head_dim, plan.eps};
    const HeadnormRow k = {x + plan.q_heads * plan.head_dim * bytes, args.k_weight, plan.k_heads, plan.head_dim, plan.eps};
    plan.run(&q);
    plan.run(&k);
  }
}

}  // namespace
}  // namespace okl

using namespace okl;

extern "C" {

omni_status omni_headnorm_select(const omni_headnorm_query* query, omni_plan** plan) {
  if (query == nullptr || plan == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", query == nullptr ? "query" : "plan");
  if (omni_status status = ensure_initialised(); status != OMNI_OK) return status;
  if (omni_status status = check_query(*query); status != OMNI_OK) return status;
  try {
    auto made = std::make_unique<HeadnormPlan>();
    if (omni_status status = made->choose(Op::kHeadnorm, query->kernel, query->max_isa); status != OMNI_OK) return status;
    made->type = query->type;
    made->q_heads = query->q_heads;
    made->k_heads = query->k_heads;
    made->head_dim = query->head_dim;
    made->eps = query->eps;
    made->run = made->row->as<Op::kHeadnorm>().row_for(query->type);
    *plan = made.release();
    return succeed();
  } catch (const std::bad_alloc&) {
    return fail(OMNI_ERR_OUT_OF_MEMORY, "no memory for a plan");
  }
}

omni_status omni_headnorm_run(const omni_plan* handle, const omni_headnorm_args* args) {
  omni_status status;
  const auto* plan = plan_as<HeadnormPlan>(handle, &status);
  if (plan == nullptr) return status;
  if (status = check_args(*plan, args, args != nullptr ? args->size : 0, sizeof *args); status != OMNI_OK) return status;
  if (args->m == 0) return succeed();
  if (status = check_operands(*plan, *args); status != OMNI_OK) return status;
  return run_rows(args->parallel, args->m, plan->width(),
                  [&](int64_t first, int64_t last) { run_part(*plan, *args, first, last); });
}

}  // extern "C"
