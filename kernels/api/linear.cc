// SPDX-License-Identifier: Apache-2.0
// The linear entries of the C interface: check everything, then call the plan.
#include "omni/linear.h"

#include <cinttypes>
#include <memory>
#include <new>

#include "kernels/api/error.h"
#include "kernels/api/linear_checks.h"
#include "kernels/cpu/settings.h"
#include "kernels/fast/fast_plan.h"
#include "kernels/linear/linear_plan.h"
#include "kernels/parallel/split.h"

namespace okl {
namespace {

LinearFacts facts_of(const omni_linear_query& query) {
  LinearFacts facts{};
  facts.weights = query.weights;
  facts.numerics = static_cast<Numerics>(query.numerics);
  facts.x_type = static_cast<omni_dtype>(query.x_type);
  facts.y_type = static_cast<omni_dtype>(query.y_type);
  facts.residual_type = static_cast<omni_dtype>(query.residual_type);
  facts.epilogue = query.epilogue;
  facts.max_m = query.max_m;
  facts.max_threads = query.max_threads != 0 ? query.max_threads : omni_num_threads();
  facts.kernel = query.kernel != nullptr ? query.kernel : "";
  return facts;
}

// The plan as a linear one that can run `args`; nullptr with *status set otherwise.
const LinearPlan* check_header(const omni_plan* handle, const omni_linear_args* args, omni_status* status) {
  const auto* plan = plan_as<LinearPlan>(handle, status);
  if (plan == nullptr) return nullptr;
  if (args == nullptr) {
    *status = fail(OMNI_ERR_NULL, "args is NULL");
  } else if (args->size < sizeof *args) {
    *status = fail(OMNI_ERR_STRUCT_SIZE, "omni_linear_args.size is %u, needs %zu", args->size, sizeof *args);
  } else if (args->m > plan->facts.max_m) {
    *status = fail(OMNI_ERR_SHAPE, "m %u is above the plan's max_m %u", args->m, plan->facts.max_m);
  } else if (!plan->not_runnable().empty()) {
    *status = fail(OMNI_ERR_NO_KERNEL, "%s", plan->not_runnable().c_str());
  }
  return *status == OMNI_OK ? plan : nullptr;
}

bool nothing_to_do(const LinearPlan& plan, const omni_linear_args& args) { return args.m == 0 || plan.facts.weights.n == 0; }

using Check = omni_status (*)(const LinearPlan&, const omni_linear_args&);

omni_status check_all(const LinearPlan& plan, const omni_linear_args& args, std::initializer_list<Check> checks) {
  for (const Check check : checks) {
    if (omni_status status = check(plan, args); status != OMNI_OK) return status;
  }
  return OMNI_OK;
}

// The plan with checked rows; nullptr with *status set otherwise.
const LinearPlan* check_rows(const omni_plan* handle, uint32_t m, const size_t* bytes, omni_status* status) {
  const auto* plan = plan_as<LinearPlan>(handle, status);
  if (plan == nullptr) return nullptr;
  if (bytes == nullptr) {
    *status = fail(OMNI_ERR_NULL, "bytes is NULL");
  } else if (m > plan->facts.max_m) {
    *status = fail(OMNI_ERR_SHAPE, "m %u is above the plan's max_m %u", m, plan->facts.max_m);
  }
  return *status == OMNI_OK ? plan : nullptr;
}

}  // namespace
}  // namespace okl

using namespace okl;

extern "C" {

omni_status omni_select(const omni_linear_query* query, omni_plan** plan) {
  if (query == nullptr || plan == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", query == nullptr ? "query" : "plan");
  if (omni_status status = ensure_initialised(); status != OMNI_OK) return status;
  if (omni_status status = check_query(*query); status != OMNI_OK) return status;
  try {
    SelectionMachine machine;
    omni_status status = selection_machine(query->max_isa, &machine);
    if (status != OMNI_OK) return status;
    LinearFacts facts = facts_of(*query);
    serve_fast_by_promised_class(&facts, machine);
    std::unique_ptr<LinearPlan> made = make_linear_plan(std::move(facts), &status);
    if (made == nullptr) return status;
    if (status = made->make(machine); status != OMNI_OK) return status;
    *plan = made.release();
    return succeed();
  } catch (const std::bad_alloc&) {
    return fail(OMNI_ERR_OUT_OF_MEMORY, "no memory for a plan");
  }
}

omni_status omni_workspace_size(const omni_plan* handle, uint32_t m, size_t* bytes) {
  omni_status status;
  const LinearPlan* plan = check_rows(handle, m, bytes, &status);
  if (plan == nullptr) return status;
  *bytes = plan->workspace_bytes(m);
  return succeed();
}

omni_status omni_scratch_size(const omni_plan* handle, uint32_t m, size_t* bytes) {
  omni_status status;
  const LinearPlan* plan = check_rows(handle, m, bytes, &status);
  if (plan == nullptr) return status;
  *bytes = m == 0 ? 0 : plan->scratch_bytes(m);
  return succeed();
}

omni_status omni_run(const omni_plan* handle, const omni_linear_args* args) {
  omni_status status;
  const LinearPlan* plan = check_header(handle, args, &status);
  if (plan == nullptr) return status;
  if (nothing_to_do(*plan, *args)) return succeed();
  status = check_all(*plan, *args, {check_strides, check_input, check_workspace, check_weights, check_output});
  if (status != OMNI_OK) return status;
  omni_parallel parallel;
  if (status = effective_parallel(args->parallel, &parallel); status != OMNI_OK) return status;
  plan->run(*args, parallel);
  return succeed();
}

omni_status omni_prepare(const omni_plan* handle, const omni_linear_args* args) {
  omni_status status;
  const LinearPlan* plan = check_header(handle, args, &status);
  if (plan == nullptr) return status;
  if (nothing_to_do(*plan, *args)) return succeed();
  if (status = check_all(*plan, *args, {check_strides, check_input, check_workspace}); status != OMNI_OK) return status;
  plan->prepare(*args, 0, plan->row_units(args->m));
  return succeed();
}

omni_status omni_run_portion(const omni_plan* handle, const omni_linear_args* args, int64_t n0, int64_t n1) {
  omni_status status;
  const LinearPlan* plan = check_header(handle, args, &status);
  if (plan == nullptr) return status;
  const int64_t n = plan->facts.weights.n;
  if (n0 < 0 || n1 < n0 || n1 > n) {
    return fail(OMNI_ERR_RANGE, "portion [%" PRId64 ", %" PRId64 ") of %" PRId64 " channels", n0, n1, n);
  }
  if (nothing_to_do(*plan, *args) || n0 == n1) return succeed();
  status = check_all(*plan, *args, {check_strides, check_workspace, check_scratch, check_weights, check_output});
  if (status != OMNI_OK) return status;
  plan->compute(*args, 0, plan->row_units(args->m), n0, n1, args->scratch);
  return succeed();
}

}  // extern "C"
