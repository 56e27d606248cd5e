// SPDX-License-Identifier: Apache-2.0
// The linear entries of the C interface: check everything, then call the driver.
#include "omni/linear.h"

#include <cinttypes>
#include <cstdint>
#include <memory>
#include <new>

#include "jit/memory/executable_memory.h"
#include "kernels/api/error.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/settings.h"
#include "kernels/cpu/trace.h"
#include "kernels/dispatch/select_linear.h"
#include "kernels/gemv/bf16_self_test.h"
#include "kernels/gemv/linear.h"
#include "kernels/parallel/split.h"

namespace okl {
namespace {

constexpr size_t kWorkspaceAlignment = 64;
constexpr size_t kCodesAlignment = 16;

bool misaligned(const void* pointer, size_t alignment) { return reinterpret_cast<uintptr_t>(pointer) % alignment != 0; }
int64_t bytes_of(uint16_t type) { return type == OMNI_DTYPE_F32 ? 4 : 2; }

omni_status check_query(const omni_linear_query& query) {
  if (query.size < sizeof query)
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_linear_query.size is %u, needs %zu", query.size, sizeof query);
  if (omni_status status = omni_layout_check(&query.weights); status != OMNI_OK) return status;
  if (query.weights.format != OMNI_FORMAT_TG4) {
    return fail(OMNI_ERR_LAYOUT, "weights.format %u is not tg4: repack it first", query.weights.format);
  }
  const bool torch = query.numerics == OMNI_NUMERICS_TORCH;
  if (query.numerics != OMNI_NUMERICS_GROUP && !torch) return fail(OMNI_ERR_TYPE, "numerics %u is unknown", query.numerics);
  const bool x_fits = query.x_type == OMNI_DTYPE_BF16 || (torch && query.x_type == OMNI_DTYPE_F32);
  if (!x_fits) return fail(OMNI_ERR_TYPE, "x_type %u: class group takes bf16, class torch bf16 or f32", query.x_type);
  if (torch && query.weights.scale_type != query.x_type) {
    return fail(OMNI_ERR_TYPE, "class torch needs x and scales of one type, not x_type %u and scale_type %u", query.x_type,
                query.weights.scale_type);
  }
  if (query.y_type != OMNI_DTYPE_BF16 && query.y_type != OMNI_DTYPE_F32) return fail(OMNI_ERR_TYPE, "y_type %u", query.y_type);
  if ((query.epilogue & ~uint32_t{OMNI_EPILOGUE_BIAS | OMNI_EPILOGUE_RESIDUAL}) != 0) {
    return fail(OMNI_ERR_TYPE, "epilogue 0x%x has unknown bits", query.epilogue);
  }
  const bool residual = (query.epilogue & OMNI_EPILOGUE_RESIDUAL) != 0;
  const bool residual_fits = residual ? query.residual_type == OMNI_DTYPE_BF16 || query.residual_type == OMNI_DTYPE_F32
                                      : query.residual_type == OMNI_DTYPE_NONE;
  if (!residual_fits)
    return fail(OMNI_ERR_TYPE, "residual_type %u does not go with epilogue 0x%x", query.residual_type, query.epilogue);
  if (query.max_m < 1 || query.max_m > kMostRows) return fail(OMNI_ERR_SHAPE, "max_m %u is outside 1..%u", query.max_m, kMostRows);
  return OMNI_OK;
}

LinearConfig base_config(const omni_linear_query& query) {
  LinearConfig config{};
  config.k = query.weights.k;
  config.group = query.weights.group < query.weights.k ? query.weights.group : query.weights.k;
  config.scale_type = query.weights.scale_type;
  config.y_type = query.y_type;
  config.residual_type = query.residual_type;
  config.epilogue = static_cast<uint8_t>(query.epilogue);
  config.numerics = static_cast<Numerics>(query.numerics);
  return config;
}

omni_status selection_machine(const omni_linear_query& query, SelectionMachine* out) {
  ensure_bf16_dot_tested();
  const omni_machine machine = current_machine();
  out->isa = machine.isa;
  out->traits = machine.traits;
  if (query.max_isa != nullptr && query.max_isa[0] != '\0') {
    const std::optional<IsaMask> cap = tier_mask(query.max_isa);
    if (!cap) return fail(OMNI_ERR_UNKNOWN_NAME, "max_isa \"%s\" is no tier", query.max_isa);
    out->isa &= *cap;
  }
  out->jit_allowed = jit::code_state() != jit::CodeState::kRefused;
  out->jit_reason = jit::code_state_reason();
  return OMNI_OK;
}

// Chooses and generates for one or for many rows.
omni_status make_code(const omni_linear_query& query, const SelectionMachine& machine, bool many, omni_plan* plan) {
  LinearRequest request;
  request.numerics = static_cast<Numerics>(query.numerics);
  request.x_type = static_cast<omni_dtype>(query.x_type);
  request.many_rows = many;
  const std::string forced = settings().kernel;
  if (query.kernel != nullptr && query.kernel[0] != '\0') {
    if (find_kernel(query.kernel) == nullptr)
      return fail(OMNI_ERR_UNKNOWN_NAME, "kernel \"%s\" is in no registry row", query.kernel);
    request.kernel = query.kernel;
  } else {
    request.kernel = forced;
    request.kernel_optional = true;
  }
  const Selection selection = select_linear(request, machine);
  if (selection.row == nullptr) return fail(OMNI_ERR_NO_KERNEL, "%s", selection.reason.c_str());
  LinearCodeSet& code = many ? plan->many : plan->one;
  if (!code.make(*selection.row, plan->config, query.weights.n, many ? query.max_m : 1)) {
    return fail(OMNI_ERR_JIT, "%s could not be generated", std::string(selection.row->name).c_str());
  }
  (many ? plan->reason_many : plan->reason_one) = selection.reason;
  if (const IsaMask missing = selection.row->required & ~hardware_isa(); missing != 0) {
    plan->not_runnable = std::string(selection.row->name) + " needs " + isa_to_text(missing) + ", which this processor lacks";
  }
  trace("dispatch: n=%" PRId64 " k=%" PRId64 " m=%s -> %s (%s)", query.weights.n, query.weights.k, many ? "2+" : "1",
        std::string(selection.row->name).c_str(), selection.reason.c_str());
  return OMNI_OK;
}

const char* code_state_text(const omni_plan& plan) {
  if (plan.one.row().code == Code::kCompiled) return "compiled";
  return jit::code_state() == jit::CodeState::kDoubleMapped ? "jit (double mapping)" : "jit";
}

omni_status check_strides(const omni_plan& plan, const omni_linear_args& args) {
  const omni_layout& weights = plan.weights;
  if (args.ldx < weights.k) return fail(OMNI_ERR_STRIDE, "ldx %" PRId64 " is less than K %" PRId64, args.ldx, weights.k);
  if (args.ldy < weights.n) return fail(OMNI_ERR_STRIDE, "ldy %" PRId64 " is less than N %" PRId64, args.ldy, weights.n);
  const bool residual = (plan.config.epilogue & OMNI_EPILOGUE_RESIDUAL) != 0;
  if (residual && args.ld_residual < weights.n) {
    return fail(OMNI_ERR_STRIDE, "ld_residual %" PRId64 " is less than N %" PRId64, args.ld_residual, weights.n);
  }
  constexpr int64_t kMost = INT64_MAX / (4 * kMostRows);  // m rows of 4-byte elements still fit 63 bits
  if (args.ldx > kMost || args.ldy > kMost || (residual && args.ld_residual > kMost)) {
    return fail(OMNI_ERR_OVERFLOW, "a leading dimension times %u rows does not fit 63 bits", args.m);
  }
  return OMNI_OK;
}

// Arguments that prepare reads: x and the workspace.
omni_status check_input(const omni_plan& plan, const omni_linear_args& args) {
  if (args.x == nullptr) return fail(OMNI_ERR_NULL, "x is NULL");
  if (misaligned(args.x, static_cast<size_t>(bytes_of(static_cast<uint16_t>(plan.x_type)))))
    return fail(OMNI_ERR_ALIGNMENT, "x is not aligned to its element");
  if (args.k_permutation != nullptr) {
    if (misaligned(args.k_permutation, 4)) return fail(OMNI_ERR_ALIGNMENT, "k_permutation is not aligned to 4 bytes");
    for (int64_t i = 0; i < plan.weights.k; ++i) {
      if (args.k_permutation[i] < 0 || args.k_permutation[i] >= plan.weights.k) {
        return fail(OMNI_ERR_RANGE, "k_permutation[%" PRId64 "] is %d, outside 0..K-1", i, args.k_permutation[i]);
      }
    }
  }
  return OMNI_OK;
}

omni_status check_workspace(const omni_plan& plan, const omni_linear_args& args) {
  size_t needed = 0;
  if (omni_status status = omni_workspace_size(&plan, args.m, &needed); status != OMNI_OK) return status;
  if (args.workspace == nullptr) return fail(OMNI_ERR_NULL, "workspace is NULL");
  if (misaligned(args.workspace, kWorkspaceAlignment)) return fail(OMNI_ERR_ALIGNMENT, "workspace is not aligned to 64 bytes");
  if (args.workspace_bytes < needed) {
    return fail(OMNI_ERR_BUFFER_SIZE, "workspace_bytes %zu, needs %zu for %u rows", args.workspace_bytes, needed, args.m);
  }
  return OMNI_OK;
}

omni_status check_weights(const omni_plan& plan, const omni_linear_args& args) {
  size_t codes = 0, scales = 0;
  if (omni_status status = omni_packed_size(&plan.weights, &codes); status != OMNI_OK) return status;
  if (omni_status status = omni_scales_size(&plan.weights, &scales); status != OMNI_OK) return status;
  if (args.codes == nullptr || args.scales == nullptr)
    return fail(OMNI_ERR_NULL, "%s is NULL", args.codes == nullptr ? "codes" : "scales");
  if (misaligned(args.codes, kCodesAlignment)) return fail(OMNI_ERR_ALIGNMENT, "codes is not aligned to 16 bytes");
  if (misaligned(args.scales, static_cast<size_t>(bytes_of(plan.config.scale_type)))) {
    return fail(OMNI_ERR_ALIGNMENT, "scales is not aligned to its element");
  }
  if (args.codes_bytes < codes) return fail(OMNI_ERR_BUFFER_SIZE, "codes_bytes %zu, needs %zu", args.codes_bytes, codes);
  if (args.scales_bytes < scales) return fail(OMNI_ERR_BUFFER_SIZE, "scales_bytes %zu, needs %zu", args.scales_bytes, scales);
  return OMNI_OK;
}

omni_status check_output(const omni_plan& plan, const omni_linear_args& args) {
  if (args.y == nullptr) return fail(OMNI_ERR_NULL, "y is NULL");
  if (misaligned(args.y, static_cast<size_t>(bytes_of(plan.config.y_type))))
    return fail(OMNI_ERR_ALIGNMENT, "y is not aligned to its element");
  if ((plan.config.epilogue & OMNI_EPILOGUE_BIAS) != 0) {
    if (args.bias == nullptr) return fail(OMNI_ERR_NULL, "bias is NULL");
    if (misaligned(args.bias, 4)) return fail(OMNI_ERR_ALIGNMENT, "bias is not aligned to 4 bytes");
  }
  if ((plan.config.epilogue & OMNI_EPILOGUE_RESIDUAL) != 0) {
    if (args.residual == nullptr) return fail(OMNI_ERR_NULL, "residual is NULL");
    if (misaligned(args.residual, static_cast<size_t>(bytes_of(plan.config.residual_type)))) {
      return fail(OMNI_ERR_ALIGNMENT, "residual is not aligned to its element");
    }
  }
  return OMNI_OK;
}

omni_status check_header(const omni_plan* plan, const omni_linear_args* args) {
  if (plan == nullptr || args == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", plan == nullptr ? "plan" : "args");
  if (args->size < sizeof *args)
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_linear_args.size is %u, needs %zu", args->size, sizeof *args);
  if (args->m > plan->max_m) return fail(OMNI_ERR_SHAPE, "m %u is above the plan's max_m %u", args->m, plan->max_m);
  if (!plan->not_runnable.empty()) return fail(OMNI_ERR_NO_KERNEL, "%s", plan->not_runnable.c_str());
  return OMNI_OK;
}

bool nothing_to_do(const omni_plan& plan, const omni_linear_args& args) { return args.m == 0 || plan.weights.n == 0; }

omni_status check_all(const omni_plan& plan, const omni_linear_args& args) {
  for (const auto check : {check_strides, check_input, check_workspace, check_weights, check_output}) {
    if (omni_status status = check(plan, args); status != OMNI_OK) return status;
  }
  return OMNI_OK;
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
    auto made = std::make_unique<omni_plan>();
    made->weights = query->weights;
    made->config = base_config(*query);
    made->max_m = query->max_m;
    made->x_type = static_cast<omni_dtype>(query->x_type);
    SelectionMachine machine;
    if (omni_status status = selection_machine(*query, &machine); status != OMNI_OK) return status;
    if (query->max_m > 1) {
      if (omni_status status = make_code(*query, machine, true, made.get()); status != OMNI_OK) return status;
    }
    if (omni_status status = make_code(*query, machine, false, made.get()); status != OMNI_OK) return status;
    made->code_state = code_state_text(*made);
    *plan = made.release();
    return succeed();
  } catch (const std::bad_alloc&) {
    return fail(OMNI_ERR_OUT_OF_MEMORY, "no memory for a plan");
  }
}

void omni_plan_destroy(omni_plan* plan) { delete plan; }

omni_status omni_plan_get_info(const omni_plan* plan, omni_plan_info* out) {
  if (plan == nullptr || out == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", plan == nullptr ? "plan" : "out");
  if (out->size < sizeof *out) return fail(OMNI_ERR_STRUCT_SIZE, "omni_plan_info.size is %u, needs %zu", out->size, sizeof *out);
  const bool many = plan->max_m > 1;
  out->isa_required = plan->one.row().required | (many ? plan->many.row().required : 0);
  out->kernel = plan->one.row().name.data();
  out->reason = plan->reason_one.c_str();
  out->kernel_rows = many ? plan->many.row().name.data() : "";
  out->reason_rows = plan->reason_many.c_str();
  out->code = plan->code_state;
  out->code_bytes = plan->one.code_bytes() + (many ? plan->many.code_bytes() : 0);
  out->weights = plan->weights;
  return succeed();
}

omni_status omni_workspace_size(const omni_plan* plan, uint32_t m, size_t* bytes) {
  if (plan == nullptr || bytes == nullptr) return fail(OMNI_ERR_NULL, "%s is NULL", plan == nullptr ? "plan" : "bytes");
  if (m > plan->max_m) return fail(OMNI_ERR_SHAPE, "m %u is above the plan's max_m %u", m, plan->max_m);
  *bytes = m == 0 ? 0 : WorkspaceLayout(plan->config, plan->code_for(m).kernel().x_form).total(m);
  return succeed();
}

omni_status omni_run(const omni_plan* plan, const omni_linear_args* args) {
  if (omni_status status = check_header(plan, args); status != OMNI_OK) return status;
  if (nothing_to_do(*plan, *args)) return succeed();
  if (omni_status status = check_all(*plan, *args); status != OMNI_OK) return status;
  omni_parallel parallel;
  if (omni_status status = effective_parallel(args->parallel, &parallel); status != OMNI_OK) return status;
  prepare_linear(*plan, *args);
  run_parallel(*plan, *args, parallel);
  return succeed();
}

omni_status omni_prepare(const omni_plan* plan, const omni_linear_args* args) {
  if (omni_status status = check_header(plan, args); status != OMNI_OK) return status;
  if (nothing_to_do(*plan, *args)) return succeed();
  if (omni_status status = check_strides(*plan, *args); status != OMNI_OK) return status;
  if (omni_status status = check_input(*plan, *args); status != OMNI_OK) return status;
  if (omni_status status = check_workspace(*plan, *args); status != OMNI_OK) return status;
  prepare_linear(*plan, *args);
  return succeed();
}

omni_status omni_run_portion(const omni_plan* plan, const omni_linear_args* args, int64_t n0, int64_t n1) {
  if (omni_status status = check_header(plan, args); status != OMNI_OK) return status;
  if (n0 < 0 || n1 < n0 || n1 > plan->weights.n) {
    return fail(OMNI_ERR_RANGE, "portion [%" PRId64 ", %" PRId64 ") of %" PRId64 " channels", n0, n1, plan->weights.n);
  }
  if (nothing_to_do(*plan, *args) || n0 == n1) return succeed();
  for (const auto check : {check_strides, check_workspace, check_weights, check_output}) {
    if (omni_status status = check(*plan, *args); status != OMNI_OK) return status;
  }
  run_channels(*plan, *args, n0, n1);
  return succeed();
}

}  // extern "C"
