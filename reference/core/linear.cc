// SPDX-License-Identifier: Apache-2.0
#include "reference/core/linear.h"

#include <algorithm>
#include <array>

namespace ref {
namespace {

bool scrubbed(const Matrix& matrix) { return (matrix.layout.flags & OMNI_LAYOUT_SCRUBBED) != 0; }

omni_numerics numerics_of(const omni_layout& layout, omni_dtype x_type, const RowPolicy& policy) {
  switch (layout.format) {
    case OMNI_FORMAT_TG4:
      return x_type == OMNI_DTYPE_F32 ? OMNI_NUMERICS_TORCH : OMNI_NUMERICS_GROUP;
    case OMNI_FORMAT_W4S:
      return OMNI_NUMERICS_EXACT;
    case OMNI_FORMAT_W8S:
      return policy.quantise_for_w8 ? OMNI_NUMERICS_EXACT : OMNI_NUMERICS_GROUP;
    default:
      return OMNI_NUMERICS_DENSE;
  }
}

// The form whose kernels take rows of x_type.
ExpandedMatrix fit(const Matrix& matrix, omni_dtype x_type, const RowPolicy& policy, const omni_parallel* parallel) {
  const bool wide = x_type == OMNI_DTYPE_F32;
  const uint16_t format = matrix.layout.format;
  if (format == OMNI_FORMAT_TG4 && wide) return widen_scales(matrix, parallel);
  if (format == OMNI_FORMAT_W8S && wide && !policy.quantise_for_w8) return expand_to_w32(matrix, parallel);
  if (format == OMNI_FORMAT_W16 && !wide && !scrubbed(matrix)) return expand_to_w32(matrix, parallel);
  return {matrix, {}};
}

}  // namespace

void check_matrix_bytes(const std::string& name, const Matrix& matrix) {
  size_t codes = 0, scales = 0;
  check(omni_layout_check(&matrix.layout), name.c_str());
  check(omni_packed_size(&matrix.layout, &codes), name.c_str());
  check(omni_scales_size(&matrix.layout, &scales), name.c_str());
  if (matrix.codes.size() < codes || matrix.scales.size() < scales) {
    throw Error(name + ": holds " + std::to_string(matrix.codes.size()) + " bytes of codes and " +
                std::to_string(matrix.scales.size()) + " of scales, its layout needs " + std::to_string(codes) + " and " +
                std::to_string(scales));
  }
  if (!matrix.permutation.empty() && static_cast<int64_t>(matrix.permutation.size()) != matrix.layout.k) {
    throw Error(name + ": has a permutation of " + std::to_string(matrix.permutation.size()) + " inputs for " +
                std::to_string(matrix.layout.k));
  }
}

RowType row_type(const Matrix& matrix, const RowPolicy& policy) {
  if (policy.fp32) return {OMNI_DTYPE_F32, true};
  switch (matrix.layout.format) {
    case OMNI_FORMAT_TG4:
      return {OMNI_DTYPE_BF16, true};
    case OMNI_FORMAT_W8S:
      return policy.quantise_for_w8 ? RowType{OMNI_DTYPE_F32, false} : RowType{OMNI_DTYPE_BF16, true};
    case OMNI_FORMAT_W16:
      return {scrubbed(matrix) ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32, false};
    default:
      return {OMNI_DTYPE_F32, false};
  }
}

omni_dtype common_row_type(std::initializer_list<const Matrix*> matrices, const RowPolicy& policy) {
  bool wide = false;
  for (const Matrix* matrix : matrices) {
    const RowType type = row_type(*matrix, policy);
    if (type.must) return type.type;
    wide = wide || type.type == OMNI_DTYPE_F32;
  }
  return wide ? OMNI_DTYPE_F32 : OMNI_DTYPE_BF16;
}

const omni_plan* LinearPlans::find(const omni_layout& weights, omni_numerics numerics, omni_dtype x_type,
                                   const LinearOutput& output, bool bias) {
  std::array<char, 96> text;
  check(omni_layout_to_text(&weights, text.data(), text.size()), "layout");
  const std::string key = std::string(text.data()) + "/" + std::to_string(numerics) + "/" + std::to_string(x_type) + "/" +
                          std::to_string(output.type) + (output.add ? "+" : "") + (bias ? "b" : "");
  Plan& known = plans_[key];
  if (known) return known.get();
  omni_linear_query query = {};
  query.size = sizeof query;
  query.numerics = static_cast<uint16_t>(numerics);
  query.x_type = static_cast<uint16_t>(x_type);
  query.y_type = static_cast<uint16_t>(output.type);
  query.residual_type = output.add ? OMNI_DTYPE_F32 : OMNI_DTYPE_NONE;
  query.epilogue = (bias ? uint32_t{OMNI_EPILOGUE_BIAS} : 0) | (output.add ? uint32_t{OMNI_EPILOGUE_RESIDUAL} : 0);
  query.max_m = backend_.max_rows;
  query.max_threads = backend_.parallel.threads;
  query.weights = weights;
  query.max_isa = backend_.isa();
  omni_plan* plan = nullptr;
  check(omni_select(&query, &plan), text.data());
  known.reset(plan);
  // Not a rising function of the rows: one row has another kernel than many.
  for (uint32_t rows = 1; rows <= backend_.max_rows; ++rows) {
    size_t bytes = 0;
    check(omni_workspace_size(plan, rows, &bytes), text.data());
    backend_.need_workspace(bytes);
  }
  return plan;
}

Linear::Linear(std::string name, const Matrix& matrix, std::vector<float> bias, omni_dtype x_type, const LinearOutput& output,
               const RowPolicy& policy, Backend& backend, LinearPlans& plans)
    : name_(std::move(name)), bias_(std::move(bias)), add_(output.add), backend_(&backend) {
  check_matrix_bytes(name_, matrix);
  expanded_ = fit(matrix, x_type, policy, &backend.parallel);
  plan_ = plans.find(layout(), numerics_of(layout(), x_type, policy), x_type, output, !bias_.empty());
}

void Linear::run(uint32_t rows, const void* x, int64_t ldx, void* y, int64_t ldy) const {
  const Matrix& matrix = expanded_.matrix;
  omni_linear_args args = {};
  args.size = sizeof args;
  args.m = rows;
  args.x = x;
  args.ldx = ldx;
  args.k_permutation = matrix.permutation.empty() ? nullptr : matrix.permutation.data();
  args.codes = matrix.codes.data();
  args.codes_bytes = matrix.codes.size();
  args.scales = matrix.scales.data();
  args.scales_bytes = matrix.scales.size();
  args.bias = bias_.empty() ? nullptr : bias_.data();
  args.residual = add_ ? y : nullptr;
  args.ld_residual = ldy;
  args.y = y;
  args.ldy = ldy;
  args.workspace = backend_->workspace.data();
  args.workspace_bytes = backend_->workspace.size();
  args.parallel = &backend_->parallel;
  check(omni_run(plan_, &args), name_.c_str());
}

uint64_t Linear::bytes() const {
  return expanded_.matrix.codes.size() + expanded_.matrix.scales.size() + expanded_.matrix.permutation.size_bytes();
}

std::string Linear::describe() const {
  omni_plan_info info = {};
  info.size = sizeof info;
  check(omni_plan_get_info(plan_, &info), name_.c_str());
  std::array<char, 96> text;
  check(omni_layout_to_text(&layout(), text.data(), text.size()), name_.c_str());
  std::string line = std::string(text.data()) + ": " + info.kernel + " (" + info.reason + ")";
  if (info.kernel_rows[0] != '\0') line += "; rows: " + std::string(info.kernel_rows) + " (" + info.reason_rows + ")";
  return line;
}

}  // namespace ref
