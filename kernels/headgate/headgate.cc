// SPDX-License-Identifier: Apache-2.0
// The entries of omni/headgate.h that run.
#include "omni/headgate.h"

#include <cstring>
#include <memory>
#include <new>

#include "kernels/api/row_plan.h"
#include "kernels/cpu/settings.h"
#include "kernels/headgate/headgate_kernel.h"
#include "kernels/headgate/headgate_pack.h"

namespace okl {
namespace {

struct HeadgatePlan : RowPlan {
  static constexpr PlanKind kKind = PlanKind::kHeadgate;

  HeadgatePlan() : RowPlan(kKind) {}
  bool multiplies() const { return config.value_type != OMNI_DTYPE_NONE; }

  HeadgateConfig config = {};
  HeadgateSteps steps = {};
  int64_t k = 0, heads = 0, head_dim = 0, packed_bytes = 0;
};

omni_status check_weights(const HeadgatePlan& plan, const omni_headgate_args& args) {
  if (omni_status status = check_array("weights", args.weights, 64); status != OMNI_OK) return status;
  if (args.weights_bytes < static_cast<size_t>(plan.packed_bytes)) {
    return fail(OMNI_ERR_BUFFER_SIZE, "weights_bytes is %zu, needs %lld", args.weights_bytes,
                static_cast<long long>(plan.packed_bytes));
  }
  if (misaligned(args.bias, sizeof(float))) return fail(OMNI_ERR_ALIGNMENT, "bias is not aligned to 4 bytes");
  return OMNI_OK;
}

omni_status check_operands(const HeadgatePlan& plan, const omni_headgate_args& args) {
  omni_status status = check_rows("x", args.x, plan.config.x_type, args.m, plan.k, args.ldx);
  if (status == OMNI_OK) status = check_weights(plan, args);
  if (status == OMNI_OK && (args.gates != nullptr || !plan.multiplies())) {
    status = check_rows("gates", args.gates, OMNI_DTYPE_F32, args.m, plan.heads, args.ld_gates);
  }
  if (!plan.multiplies()) return status;
  const int64_t width = plan.heads * plan.head_dim;
  if (status == OMNI_OK) status = check_rows("values", args.values, plan.config.value_type, args.m, width, args.ld_values);
  if (status == OMNI_OK) status = check_rows("out", args.out, plan.config.value_type, args.m, width, args.ld_out);
  return status;
}

void run_part(const HeadgatePlan& plan, const omni_headgate_args& args, int64_t first, int64_t last) {
  const auto x_bytes = static_cast<int64_t>(type_bytes(plan.config.x_type));
  const auto value_bytes = static_cast<int64_t>(type_bytes(plan.config.value_type));
  alignas(64) float gates[gate_room(OMNI_HEADGATE_MOST_HEADS)];
  HeadgateRow row = {};
  row.weights = args.weights;
  row.bias = args.bias;
  row.gates = gates;
  row.k = plan.k;
  row.heads = plan.heads;
  row.head_dim = plan.head_dim;
  for (int64_t r = first; r < last; ++r) {
    row.x = static_cast<const uint8_t*>(args.x) + r * args.ldx * x_bytes;
    plan.steps.gates(&row);
    if (args.gates != nullptr) std::memcpy(args.gates + r * args.ld_gates, gates, static_cast<size_t>(plan.heads) * sizeof(float));
    if (!plan.multiplies()) continue;
    row.values = static_cast<const uint8_t*>(args.values) + r * args.ld_values * value_bytes;
    row.out = static_cast<uint8_t*>(args.out) + r * args.ld_out * value_bytes;
    plan.steps.multiply(&row);
  }
}

// Where VDPBF16PS takes as long as the two FMAs and the unpacking that it replaces, both rows are equally fast; it stays preferred.
omni_status make_plan(const omni_headgate_query& query, HeadgatePlan* plan) {
  if (omni_status status = plan->choose(Op::kHeadgate, query.kernel, query.max_isa); status != OMNI_OK) return status;
  plan->config = headgate_config(query);
  plan->steps = plan->row->as<Op::kHeadgate>().steps(plan->config);
  plan->k = query.k;
  plan->heads = query.heads;
  plan->head_dim = query.head_dim;
  (void)headgate_packed_bytes(query, &plan->packed_bytes);  // checked
  return OMNI_OK;
}

}  // namespace
}  // namespace okl

using namespace okl;

extern "C" {

omni_status omni_headgate_select(const omni_headgate_query* query, omni_plan** plan) {
  if (query == nullptr || plan == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", query == nullptr ? "query" : "plan");
  if (omni_status status = ensure_initialised(); status != OMNI_OK) return status;
  if (omni_status status = check_headgate_query(*query); status != OMNI_OK) return status;
  try {
    auto made = std::make_unique<HeadgatePlan>();
    if (omni_status status = make_plan(*query, made.get()); status != OMNI_OK) return status;
    *plan = made.release();
    return succeed();
  } catch (const std::bad_alloc&) {
    return fail(OMNI_ERR_OUT_OF_MEMORY, "no memory for a plan");
  }
}

omni_status omni_headgate_run(const omni_plan* handle, const omni_headgate_args* args) {
  omni_status status;
  const auto* plan = plan_as<HeadgatePlan>(handle, &status);
  if (plan == nullptr) return status;
  if (status = check_args(*plan, args, args != nullptr ? args->size : 0, sizeof *args); status != OMNI_OK) return status;
  if (args->m == 0) return succeed();
  if (status = check_operands(*plan, *args); status != OMNI_OK) return status;
  const int64_t width = plan->k * plan->heads / 4 + plan->heads * plan->head_dim;
  return run_rows(args->parallel, args->m, width, [&](int64_t first, int64_t last) { run_part(*plan, *args, first, last); });
}

}  // extern "C"
