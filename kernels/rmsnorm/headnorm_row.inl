// SPDX-License-Identifier: Apache-2.0
// The head norm, for leaf files: RMSNorm of every head, by the text of RMSNorm.
#pragma once

#include "kernels/rmsnorm/headnorm_kernel.h"
#include "kernels/rmsnorm/rmsnorm_row.inl"

namespace okl {
namespace {

constexpr RmsnormConfig kHeadConfig = {OMNI_DTYPE_NONE, OMNI_DTYPE_F32,  OMNI_DTYPE_NONE,
                                       OMNI_DTYPE_NONE, OMNI_DTYPE_NONE, OMNI_RMSNORM_ONE_ROUNDING};

template <typename X>
void headnorm_row(const HeadnormRow* heads) {
  RmsnormRow row = {};
  row.config = &kHeadConfig;
  row.weight = heads->weight;
  row.n = heads->head_dim;
  row.eps = heads->eps;
  auto* x = static_cast<X*>(heads->x);
  for (int64_t h = 0; h < heads->heads; ++h, x += heads->head_dim) {
    row.x = row.y = x;
    measure<X, Nothing>(&row);
    scale<X, float, X>(&row);
  }
}

HeadnormRowFn headnorm_row_for(uint16_t type) { return type == OMNI_DTYPE_F32 ? headnorm_row<float> : headnorm_row<uint16_t>; }

}  // namespace
}  // namespace okl
