// SPDX-License-Identifier: Apache-2.0
#include "kernels/api/linear_checks.h"

#include <cinttypes>
#include <cstdint>

#include "kernels/api/error.h"

namespace okl {
namespace {

constexpr size_t kWorkspaceAlignment = 64;
constexpr size_t kCodesAlignment = 16;

bool misaligned(const void* pointer, size_t alignment) { return reinterpret_cast<uintptr_t>(pointer) % alignment != 0; }
int64_t bytes_of(uint16_t type) { return type == OMNI_DTYPE_F32 ? 4 : type == OMNI_DTYPE_S8 ? 1 : 2; }

}  // namespace

omni_status check_query(const omni_linear_query& query) {
  if (query.size < sizeof query)
    return fail(OMNI_ERR_STRUCT_SIZE, "omni_linear_query.size is %u, needs %zu", query.size, sizeof query);
  if (omni_status status = omni_layout_check(&query.weights); status != OMNI_OK) return status;
  if (query.numerics > OMNI_NUMERICS_FAST) return fail(OMNI_ERR_TYPE, "numerics %u is unknown", query.numerics);
  if (query.y_type != OMNI_DTYPE_BF16 && query.y_type != OMNI_DTYPE_F32) return fail(OMNI_ERR_TYPE, "y_type %u", query.y_type);
  if ((query.epilogue & ~uint32_t{OMNI_EPILOGUE_BIAS | OMNI_EPILOGUE_RESIDUAL}) != 0) {
    return fail(OMNI_ERR_TYPE, "epilogue 0x%x has unknown bits", query.epilogue);
  }
  const bool residual = (query.epilogue & OMNI_EPILOGUE_RESIDUAL) != 0;
  const bool residual_fits = residual ? query.residual_type == OMNI_DTYPE_BF16 || query.residual_type == OMNI_DTYPE_F32
                                      : query.residual_type == OMNI_DTYPE_NONE;
  if (!residual_fits)
    return fail(OMNI_ERR_TYPE, "residual_type %u does not go with epilogue 0x%x", query.residual_type, query.epilogue);
  if (query.max_m < 1 || query.max_m > OMNI_LINEAR_MOST_ROWS)
    return fail(OMNI_ERR_SHAPE, "max_m %u is outside 1..%u", query.max_m, OMNI_LINEAR_MOST_ROWS);
  if (query.numerics == OMNI_NUMERICS_TORCH && query.weights.scale_type != query.x_type) {
    return fail(OMNI_ERR_TYPE, "class torch needs x and scales of one type, not x_type %u and scale_type %u", query.x_type,
                query.weights.scale_type);
  }
  return OMNI_OK;
}

omni_status check_strides(const LinearPlan& plan, const omni_linear_args& args) {
  const omni_layout& weights = plan.facts.weights;
  if (args.ldx < weights.k) return fail(OMNI_ERR_STRIDE, "ldx %" PRId64 " is less than K %" PRId64, args.ldx, weights.k);
  if (args.ldy < weights.n) return fail(OMNI_ERR_STRIDE, "ldy %" PRId64 " is less than N %" PRId64, args.ldy, weights.n);
  const bool residual = plan.facts.has(OMNI_EPILOGUE_RESIDUAL);
  if (residual && args.ld_residual < weights.n) {
    return fail(OMNI_ERR_STRIDE, "ld_residual %" PRId64 " is less than N %" PRId64, args.ld_residual, weights.n);
  }
  constexpr int64_t kMost = INT64_MAX / (4 * int64_t{OMNI_LINEAR_MOST_ROWS});  // m rows of 4-byte elements still fit 63 bits
  if (args.ldx > kMost || args.ldy > kMost || (residual && args.ld_residual > kMost)) {
    return fail(OMNI_ERR_OVERFLOW, "a leading dimension times %u rows does not fit 63 bits", args.m);
  }
  return OMNI_OK;
}

// Arguments that prepare reads: x and the workspace.
omni_status check_input(const LinearPlan& plan, const omni_linear_args& args) {
  if (args.x == nullptr) return fail(OMNI_ERR_NULL, "x is NULL");
  if (misaligned(args.x, static_cast<size_t>(bytes_of(plan.facts.x_type))))
    return fail(OMNI_ERR_ALIGNMENT, "x is not aligned to its element");
  if (plan.facts.x_type == OMNI_DTYPE_S8) {
    if (args.x_scales == nullptr) return fail(OMNI_ERR_NULL, "x_scales is NULL");
    if (misaligned(args.x_scales, 4)) return fail(OMNI_ERR_ALIGNMENT, "x_scales is not aligned to 4 bytes");
  }
  if (args.k_permutation != nullptr) {
    if (misaligned(args.k_permutation, 4)) return fail(OMNI_ERR_ALIGNMENT, "k_permutation is not aligned to 4 bytes");
    for (int64_t i = 0; i < plan.facts.weights.k; ++i) {
      if (args.k_permutation[i] < 0 || args.k_permutation[i] >= plan.facts.weights.k) {
        return fail(OMNI_ERR_RANGE, "k_permutation[%" PRId64 "] is %d, outside 0..K-1", i, args.k_permutation[i]);
      }
    }
  }
  return OMNI_OK;
}

omni_status check_workspace(const LinearPlan& plan, const omni_linear_args& args) {
  const size_t needed = plan.workspace_bytes(args.m);
  if (args.workspace == nullptr) return fail(OMNI_ERR_NULL, "workspace is NULL");
  if (misaligned(args.workspace, kWorkspaceAlignment)) return fail(OMNI_ERR_ALIGNMENT, "workspace is not aligned to 64 bytes");
  if (args.workspace_bytes < needed) {
    return fail(OMNI_ERR_BUFFER_SIZE, "workspace_bytes %zu, needs %zu for %u rows", args.workspace_bytes, needed, args.m);
  }
  return OMNI_OK;
}

omni_status check_scratch(const LinearPlan& plan, const omni_linear_args& args) {
  const size_t needed = plan.scratch_bytes(args.m);
  if (needed == 0) return OMNI_OK;
  if (args.scratch == nullptr) return fail(OMNI_ERR_NULL, "scratch is NULL");
  if (misaligned(args.scratch, kWorkspaceAlignment)) return fail(OMNI_ERR_ALIGNMENT, "scratch is not aligned to 64 bytes");
  if (args.scratch_bytes < needed) {
    return fail(OMNI_ERR_BUFFER_SIZE, "scratch_bytes %zu, needs %zu for %u rows", args.scratch_bytes, needed, args.m);
  }
  return OMNI_OK;
}

omni_status check_weights(const LinearPlan& plan, const omni_linear_args& args) {
  size_t codes = 0, scales = 0;
  if (omni_status status = omni_packed_size(&plan.facts.weights, &codes); status != OMNI_OK) return status;
  if (omni_status status = omni_scales_size(&plan.facts.weights, &scales); status != OMNI_OK) return status;
  if (args.codes == nullptr) return fail(OMNI_ERR_NULL, "codes is NULL");
  if (args.scales == nullptr && scales > 0) return fail(OMNI_ERR_NULL, "scales is NULL");
  if (misaligned(args.codes, kCodesAlignment)) return fail(OMNI_ERR_ALIGNMENT, "codes is not aligned to 16 bytes");
  if (misaligned(args.scales, static_cast<size_t>(bytes_of(plan.facts.weights.scale_type)))) {
    return fail(OMNI_ERR_ALIGNMENT, "scales is not aligned to its element");
  }
  if (args.codes_bytes < codes) return fail(OMNI_ERR_BUFFER_SIZE, "codes_bytes %zu, needs %zu", args.codes_bytes, codes);
  if (args.scales_bytes < scales) return fail(OMNI_ERR_BUFFER_SIZE, "scales_bytes %zu, needs %zu", args.scales_bytes, scales);
  return OMNI_OK;
}

omni_status check_output(const LinearPlan& plan, const omni_linear_args& args) {
  if (args.y == nullptr) return fail(OMNI_ERR_NULL, "y is NULL");
  if (misaligned(args.y, static_cast<size_t>(bytes_of(plan.facts.y_type))))
    return fail(OMNI_ERR_ALIGNMENT, "y is not aligned to its element");
  if (plan.facts.has(OMNI_EPILOGUE_BIAS)) {
    if (args.bias == nullptr) return fail(OMNI_ERR_NULL, "bias is NULL");
    if (misaligned(args.bias, 4)) return fail(OMNI_ERR_ALIGNMENT, "bias is not aligned to 4 bytes");
  }
  if (plan.facts.has(OMNI_EPILOGUE_RESIDUAL)) {
    if (args.residual == nullptr) return fail(OMNI_ERR_NULL, "residual is NULL");
    if (misaligned(args.residual, static_cast<size_t>(bytes_of(plan.facts.residual_type)))) {
      return fail(OMNI_ERR_ALIGNMENT, "residual is not aligned to its element");
    }
  }
  return OMNI_OK;
}

}  // namespace okl
