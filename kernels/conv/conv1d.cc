// SPDX-License-Identifier: Apache-2.0
// The entries of dense convolution: check everything, then call the plan.
#include <cinttypes>
#include <memory>
#include <new>

#include "kernels/api/row_plan.h"
#include "kernels/conv/conv_plan.h"
#include "kernels/cpu/settings.h"
#include "omni/conv1d.h"

namespace okl {
namespace {

constexpr size_t kWorkspaceAlignment = 64;
constexpr size_t kCodesAlignment = 16;

omni_status check_types(const omni_conv1d_query& query) {
  if (!is_float_type(query.x_type)) return fail(OMNI_ERR_TYPE, "x_type %u is neither bf16 nor f32", query.x_type);
  if (!is_float_type(query.y_type)) return fail(OMNI_ERR_TYPE, "y_type %u is neither bf16 nor f32", query.y_type);
  if (query.reserved != 0) return fail(OMNI_ERR_TYPE, "reserved is %u, not 0", query.reserved);
  if ((query.epilogue & ~uint32_t{OMNI_EPILOGUE_BIAS | OMNI_EPILOGUE_RESIDUAL}) != 0) {
    return fail(OMNI_ERR_TYPE, "epilogue 0x%x has unknown bits", query.epilogue);
  }
  const bool residual = (query.epilogue & OMNI_EPILOGUE_RESIDUAL) != 0;
  if (residual ? !is_float_type(query.residual_type) : query.residual_type != OMNI_DTYPE_NONE) {
    return fail(OMNI_ERR_TYPE, "residual_type %u does not go with epilogue 0x%x", query.residual_type, query.epilogue);
  }
  return OMNI_OK;
}

omni_status check_shape(const omni_conv1d_query& query) {
  if (query.inputs == 0) return fail(OMNI_ERR_SHAPE, "inputs is 0");
  if (query.taps < 1 || query.taps > OMNI_CONV1D_MOST_TAPS) {
    return fail(OMNI_ERR_SHAPE, "taps %u is outside 1..%d", query.taps, OMNI_CONV1D_MOST_TAPS);
  }
  if (query.dilation == 0 || query.stride == 0) return fail(OMNI_ERR_SHAPE, "%s is 0", query.dilation == 0 ? "dilation" : "stride");
  if (query.max_m < 1 || query.max_m > OMNI_LINEAR_MOST_ROWS) {
    return fail(OMNI_ERR_SHAPE, "max_m %u is outside 1..%u", query.max_m, OMNI_LINEAR_MOST_ROWS);
  }
  if (query.weights.k != int64_t{query.taps} * query.inputs) {
    return fail(OMNI_ERR_SHAPE, "weights have K %" PRId64 ", but %u taps of %u inputs are %" PRId64, query.weights.k, query.taps,
                query.inputs, int64_t{query.taps} * query.inputs);
  }
  // Rows of x are at most 2^20 * 2^32 + 2^38, of less than 2^32 inputs.
  const int64_t rows = (int64_t{query.max_m} - 1) * query.stride + (int64_t{query.taps} - 1) * query.dilation + 1;
  int64_t bytes = 0;
  if (!checked_product({rows, int64_t{query.inputs} + 64, 8}, &bytes)) {
    return fail(OMNI_ERR_OVERFLOW, "%" PRId64 " rows of %u inputs do not fit 63 bits", rows, query.inputs);
  }
  return OMNI_OK;
}

omni_status check_weights(const omni_conv1d_query& query) {
  if (query.weights.format != OMNI_FORMAT_W16 && query.weights.format != OMNI_FORMAT_W32) {
    return fail(OMNI_ERR_LAYOUT, "weights of format %u: a convolution takes w16 or w32", query.weights.format);
  }
  if (query.weights.format != OMNI_FORMAT_W16 || query.x_type != OMNI_DTYPE_BF16) return OMNI_OK;
  if ((query.weights.flags & OMNI_LAYOUT_SCRUBBED) == 0) {
    return fail(OMNI_ERR_LAYOUT,
                "w16 weights are not scrubbed (OMNI_LAYOUT_SCRUBBED), which bf16 x needs: pack them so, or give x in f32");
  }
  if (query.inputs % 2 != 0 && query.taps > 1) {
    return fail(OMNI_ERR_SHAPE, "inputs %u are odd, but bf16 x and w16 weights of several taps are multiplied in pairs",
                query.inputs);
  }
  return OMNI_OK;
}

omni_status check_query(const omni_conv1d_query& query) {
  if (query.size < sizeof query) {
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_conv1d_query.size is %u, needs %zu", query.size, sizeof query);
  }
  if (omni_status status = omni_layout_check(&query.weights); status != OMNI_OK) return status;
  if (omni_status status = check_types(query); status != OMNI_OK) return status;
  if (omni_status status = check_weights(query); status != OMNI_OK) return status;
  return check_shape(query);
}

ConvFacts facts_of(const omni_conv1d_query& query) {
  ConvFacts facts{};
  facts.linear.weights = query.weights;
  facts.linear.numerics = Numerics::kDense;
  facts.linear.x_type = static_cast<omni_dtype>(query.x_type);
  facts.linear.y_type = static_cast<omni_dtype>(query.y_type);
  facts.linear.residual_type = static_cast<omni_dtype>(query.residual_type);
  facts.linear.epilogue = query.epilogue;
  facts.linear.max_m = query.max_m;
  facts.linear.max_threads = query.max_threads != 0 ? query.max_threads : omni_num_threads();
  facts.linear.kernel = query.kernel != nullptr ? query.kernel : "";
  facts.inputs = query.inputs;
  facts.taps = query.taps;
  facts.dilation = query.dilation;
  facts.stride = query.stride;
  return facts;
}

omni_status check_workspace(const ConvPlan& plan, const omni_conv1d_args& args) {
  const size_t needed = plan.workspace_bytes(args.m);
  if (needed == 0) return OMNI_OK;
  if (omni_status status = check_array("workspace", args.workspace, kWorkspaceAlignment); status != OMNI_OK) return status;
  if (args.workspace_bytes >= needed) return OMNI_OK;
  return fail(OMNI_ERR_BUFFER_SIZE, "workspace_bytes %zu, needs %zu for %u rows", args.workspace_bytes, needed, args.m);
}

omni_status check_codes(const ConvPlan& plan, const omni_conv1d_args& args) {
  size_t codes = 0;
  if (omni_status status = omni_packed_size(&plan.facts.linear.weights, &codes); status != OMNI_OK) return status;
  if (omni_status status = check_array("codes", args.codes, kCodesAlignment); status != OMNI_OK) return status;
  if (args.codes_bytes >= codes) return OMNI_OK;
  return fail(OMNI_ERR_BUFFER_SIZE, "codes_bytes %zu, needs %zu", args.codes_bytes, codes);
}

omni_status check_operands(const ConvPlan& plan, const omni_conv1d_args& args) {
  const LinearFacts& facts = plan.facts.linear;
  const int64_t n = facts.weights.n;
  omni_status status = check_rows("x", args.x, facts.x_type, plan.input_rows(args.m), plan.facts.inputs, args.ldx);
  if (status == OMNI_OK) status = check_workspace(plan, args);
  if (status == OMNI_OK) status = check_codes(plan, args);
  if (status == OMNI_OK) status = check_rows("y", args.y, facts.y_type, args.m, n, args.ldy);
  if (status == OMNI_OK && facts.has(OMNI_EPILOGUE_BIAS)) status = check_array("bias", args.bias, sizeof(float));
  if (status == OMNI_OK && facts.has(OMNI_EPILOGUE_RESIDUAL)) {
    status = check_rows("residual", args.residual, facts.residual_type, args.m, n, args.ld_residual);
  }
  return status;
}

}  // namespace
}  // namespace okl

using namespace okl;

extern "C" {

omni_status omni_conv1d_select(const omni_conv1d_query* query, omni_plan** plan) {
  if (query == nullptr || plan == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", query == nullptr ? "query" : "plan");
  if (omni_status status = ensure_initialised(); status != OMNI_OK) return status;
  if (omni_status status = check_query(*query); status != OMNI_OK) return status;
  try {
    SelectionMachine machine;
    if (omni_status status = selection_machine(query->max_isa, &machine); status != OMNI_OK) return status;
    auto made = std::make_unique<ConvPlan>(facts_of(*query));
    if (omni_status status = made->make(machine); status != OMNI_OK) return status;
    *plan = made.release();
    return succeed();
  } catch (const std::bad_alloc&) {
    return fail(OMNI_ERR_OUT_OF_MEMORY, "no memory for a plan");
  }
}

omni_status omni_conv1d_workspace_size(const omni_plan* handle, uint32_t m, size_t* bytes) {
  omni_status status;
  const auto* plan = plan_as<ConvPlan>(handle, &status);
  if (plan == nullptr) return status;
  if (bytes == nullptr) return fail(OMNI_ERR_NULL, "bytes is NULL");
  if (m > plan->facts.linear.max_m) {
    return fail(OMNI_ERR_SHAPE, "m %u is above the plan's max_m %u", m, plan->facts.linear.max_m);
  }
  *bytes = plan->workspace_bytes(m);
  return succeed();
}

omni_status omni_conv1d_run(const omni_plan* handle, const omni_conv1d_args* args) {
  omni_status status;
  const auto* plan = plan_as<ConvPlan>(handle, &status);
  if (plan == nullptr) return status;
  if (args == nullptr) return fail(OMNI_ERR_NULL, "args is NULL");
  if (args->size < sizeof *args) {
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_conv1d_args.size is %u, needs %zu", args->size, sizeof *args);
  }
  if (args->m > plan->facts.linear.max_m) {
    return fail(OMNI_ERR_SHAPE, "m %u is above the plan's max_m %u", args->m, plan->facts.linear.max_m);
  }
  if (!plan->not_runnable().empty()) return fail(OMNI_ERR_NO_KERNEL, "%s", plan->not_runnable().c_str());
  if (args->m == 0 || plan->facts.linear.weights.n == 0) return succeed();
  if (status = check_operands(*plan, *args); status != OMNI_OK) return status;
  omni_parallel parallel;
  if (status = effective_parallel(args->parallel, &parallel); status != OMNI_OK) return status;
  plan->run(*args, parallel);
  return succeed();
}

}  // extern "C"
