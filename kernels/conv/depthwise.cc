// SPDX-License-Identifier: Apache-2.0
// The entries of depthwise convolution.
#include <memory>
#include <new>

#include "kernels/api/row_plan.h"
#include "kernels/conv/depthwise_kernel.h"
#include "kernels/cpu/settings.h"
#include "omni/conv1d.h"

namespace okl {
namespace {

struct DepthwisePlan : RowPlan {
  static constexpr PlanKind kKind = PlanKind::kDepthwise;

  DepthwisePlan() : RowPlan(kKind) {}

  DepthwiseConfig config = {};
  void (*rows)(const DepthwiseRows*) = nullptr;
  int64_t n = 0, taps = 0, dilation = 0;
};

omni_status check_query(const omni_depthwise_query& query) {
  if (query.size < sizeof query) {
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_depthwise_query.size is %u, needs %zu", query.size, sizeof query);
  }
  if (!is_float_type(query.x_type)) return fail(OMNI_ERR_TYPE, "x_type %u is neither bf16 nor f32", query.x_type);
  if (!is_float_type(query.y_type)) return fail(OMNI_ERR_TYPE, "y_type %u is neither bf16 nor f32", query.y_type);
  if (query.taps < 1 || query.taps > OMNI_CONV1D_MOST_TAPS) {
    return fail(OMNI_ERR_SHAPE, "taps %u is outside 1..%d", query.taps, OMNI_CONV1D_MOST_TAPS);
  }
  if (query.dilation == 0) return fail(OMNI_ERR_SHAPE, "dilation is 0");
  if (query.n < 1) return fail(OMNI_ERR_SHAPE, "n is %lld, below 1", static_cast<long long>(query.n));
  int64_t bytes = 0;
  if (!checked_product({query.n, query.taps, 4}, &bytes)) return fail(OMNI_ERR_OVERFLOW, "taps times n does not fit 63 bits");
  return OMNI_OK;
}

omni_status check_operands(const DepthwisePlan& plan, const omni_depthwise_args& args) {
  const int64_t rows = int64_t{args.m} + (plan.taps - 1) * plan.dilation;
  omni_status status = check_rows("x", args.x, plan.config.x_type, rows, plan.n, args.ldx);
  if (status == OMNI_OK) status = check_array("weights", args.weights, sizeof(float));
  if (status == OMNI_OK && misaligned(args.bias, sizeof(float)))
    status = fail(OMNI_ERR_ALIGNMENT, "bias is not aligned to 4 bytes");
  if (status == OMNI_OK) status = check_rows("y", args.y, plan.config.y_type, args.m, plan.n, args.ldy);
  return status;
}

void run_part(const DepthwisePlan& plan, const omni_depthwise_args& args, int64_t first, int64_t last) {
  DepthwiseRows rows = {};
  rows.x = static_cast<const uint8_t*>(args.x) + first * args.ldx * static_cast<int64_t>(type_bytes(plan.config.x_type));
  rows.ldx = args.ldx;
  rows.tap_x = plan.dilation * args.ldx;
  rows.weights = args.weights;
  rows.bias = args.bias;
  rows.y = static_cast<uint8_t*>(args.y) + first * args.ldy * static_cast<int64_t>(type_bytes(plan.config.y_type));
  rows.ldy = args.ldy;
  rows.rows = last - first;
  rows.taps = plan.taps;
  rows.n = plan.n;
  plan.rows(&rows);
}

omni_status make_plan(const omni_depthwise_query& query, DepthwisePlan* plan) {
  if (omni_status status = plan->choose(Op::kDepthwise, query.kernel, query.max_isa); status != OMNI_OK) return status;
  plan->config = {query.x_type, query.y_type};
  plan->rows = plan->row->as<Op::kDepthwise>().steps(plan->config);
  plan->n = query.n;
  plan->taps = query.taps;
  plan->dilation = query.dilation;
  return OMNI_OK;
}

}  // namespace
}  // namespace okl

using namespace okl;

extern "C" {

omni_status omni_depthwise_select(const omni_depthwise_query* query, omni_plan** plan) {
  if (query == nullptr || plan == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", query == nullptr ? "query" : "plan");
  if (omni_status status = ensure_initialised(); status != OMNI_OK) return status;
  if (omni_status status = check_query(*query); status != OMNI_OK) return status;
  try {
    auto made = std::make_unique<DepthwisePlan>();
    if (omni_status status = make_plan(*query, made.get()); status != OMNI_OK) return status;
    *plan = made.release();
    return succeed();
  } catch (const std::bad_alloc&) {
    return fail(OMNI_ERR_OUT_OF_MEMORY, "no memory for a plan");
  }
}

omni_status omni_depthwise_run(const omni_plan* handle, const omni_depthwise_args* args) {
  omni_status status;
  const auto* plan = plan_as<DepthwisePlan>(handle, &status);
  if (plan == nullptr) return status;
  if (status = check_args(*plan, args, args != nullptr ? args->size : 0, sizeof *args); status != OMNI_OK) return status;
  if (args->m == 0) return succeed();
  if (status = check_operands(*plan, *args); status != OMNI_OK) return status;
  return run_rows(args->parallel, args->m, plan->n * plan->taps / 4,
                  [&](int64_t first, int64_t last) { run_part(*plan, *args, first, last); });
}

}  // extern "C"
