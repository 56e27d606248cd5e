// SPDX-License-Identifier: Apache-2.0
#include "kernels/rmsnorm/rmsnorm_steps.inl"

namespace okl {

extern const RmsnormKernel rmsnorm_avx512bf16;
const RmsnormKernel rmsnorm_avx512bf16 = {rmsnorm_steps};

}  // namespace okl
