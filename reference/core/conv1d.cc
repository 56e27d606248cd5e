// SPDX-License-Identifier: Apache-2.0
#include "reference/core/conv1d.h"

#include <algorithm>
#include <array>

#include "reference/core/describe.h"

namespace ref {
namespace {

omni_conv1d_query query_of(const Matrix& matrix, const Conv1dShape& shape, omni_dtype x_type, const LinearOutput& output, bool bias,
                           uint32_t most_rows, const Backend& backend) {
  omni_conv1d_query query = {};
  query.x_type = static_cast<uint16_t>(x_type);
  query.y_type = static_cast<uint16_t>(output.type);
  query.residual_type = output.add ? OMNI_DTYPE_F32 : OMNI_DTYPE_NONE;
  query.epilogue = (bias ? uint32_t{OMNI_EPILOGUE_BIAS} : 0) | (output.add ? uint32_t{OMNI_EPILOGUE_RESIDUAL} : 0);
  query.inputs = static_cast<uint32_t>(shape.inputs);
  query.taps = static_cast<uint32_t>(shape.taps);
  query.dilation = static_cast<uint32_t>(shape.dilation);
  query.stride = static_cast<uint32_t>(shape.stride);
  query.max_m = most_rows;
  query.max_threads = backend.parallel.threads;
  query.weights = matrix.layout;
  return query;
}

}  // namespace

omni_dtype conv1d_row_type(const Matrix& matrix, const Conv1dShape& shape, const RowPolicy& policy) {
  if (shape.taps > 1 && shape.inputs % 2 != 0) return OMNI_DTYPE_F32;
  return common_row_type({&matrix}, policy);
}

Conv1d::Conv1d(std::string name, const Matrix& matrix, std::vector<float> bias, const Conv1dShape& shape, omni_dtype x_type,
               const LinearOutput& output, uint32_t most_rows, PlanMap& plans)
    : name_(std::move(name)),
      matrix_(matrix),
      bias_(std::move(bias)),
      shape_(shape),
      x_type_(x_type),
      add_(output.add),
      backend_(&plans.backend()) {
  check_matrix_bytes(name_, matrix);
  const omni_conv1d_query query = query_of(matrix, shape, x_type, output, !bias_.empty(), most_rows, plans.backend());
  plan_ = plans.find(name_.c_str(), omni_conv1d_select, query);
  for (uint32_t rows = 1; rows <= most_rows; ++rows) {  // no rising function of the rows
    size_t bytes = 0;
    check(omni_conv1d_workspace_size(plan_, rows, &bytes), name_.c_str());
    plans.backend().need_workspace(bytes);
  }
}

void Conv1d::run(uint32_t rows, const void* x, int64_t ldx, void* y, int64_t ldy) const {
  omni_conv1d_args args = {};
  args.size = sizeof args;
  args.m = rows;
  args.x = x;
  args.ldx = ldx;
  args.codes = matrix_.codes.data();
  args.codes_bytes = matrix_.codes.size();
  args.bias = bias_.empty() ? nullptr : bias_.data();
  args.residual = add_ ? y : nullptr;
  args.ld_residual = ldy;
  args.y = y;
  args.ldy = ldy;
  args.workspace = backend_->workspace.data();
  args.workspace_bytes = backend_->workspace.size();
  args.parallel = &backend_->parallel;
  check(omni_conv1d_run(plan_, &args), name_.c_str());
}

std::string Conv1d::describe(const std::string& what) const {
  std::array<char, 96> text;
  check(omni_layout_to_text(&matrix_.layout, text.data(), text.size()), name_.c_str());
  return kernel_line(what + " (" + row_type_name(x_type_) + " rows) " + text.data(), plan_);
}

}  // namespace ref
