// SPDX-License-Identifier: Apache-2.0
#include "kernels/rmsnorm/rmsnorm_steps.inl"

namespace okl {

extern const RmsnormKernel rmsnorm_portable;
const RmsnormKernel rmsnorm_portable = {rmsnorm_steps};

}  // namespace okl
