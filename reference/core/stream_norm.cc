// SPDX-License-Identifier: Apache-2.0
#include "reference/core/stream_norm.h"

namespace ref {
namespace {

const omni_plan* norm_plan(PlanMap& plans, size_t n, double eps, omni_dtype y_type, bool add) {
  omni_rmsnorm_query query = {};
  query.x_type = OMNI_DTYPE_F32;
  query.weight_type = OMNI_DTYPE_F32;
  query.residual_type = add ? OMNI_DTYPE_F32 : OMNI_DTYPE_NONE;
  query.y_type = static_cast<uint16_t>(y_type);
  query.rounding = OMNI_RMSNORM_ONE_ROUNDING;
  query.n = static_cast<int64_t>(n);
  query.eps = static_cast<float>(eps);
  return plans.find("norm", omni_rmsnorm_select, query);
}

}  // namespace

StreamNorm::StreamNorm(std::vector<float> weight, double eps, omni_dtype y_type, PlanMap& plans)
    : weight_(std::move(weight)),
      type_(y_type),
      plain_(norm_plan(plans, weight_.size(), eps, y_type, false)),
      adding_(norm_plan(plans, weight_.size(), eps, y_type, true)) {}

void StreamNorm::run(const StreamRows& buffers, uint32_t first, uint32_t rows, bool pending, const Backend& backend) const {
  const Rows2d& x = pending ? buffers.branch : buffers.stream;
  const Rows2d y = buffers.normed.as(type_);
  omni_rmsnorm_args args = {};
  args.size = sizeof args;
  args.m = rows - first;
  args.x = x.at(first);
  args.ldx = x.ld;
  args.weight = weight_.data();
  args.residual = buffers.stream.at(first);
  args.ld_residual = buffers.stream.ld;
  args.y = y.at(first);
  args.ldy = y.ld;
  args.parallel = &backend.parallel;
  check(omni_rmsnorm_run(pending ? adding_ : plain_, &args), "norm");
}

}  // namespace ref
