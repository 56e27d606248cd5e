// SPDX-License-Identifier: Apache-2.0
#include "kernels/rmsnorm/headnorm_row.inl"

namespace okl {

extern const HeadnormKernel headnorm_avx512bf16;
const HeadnormKernel headnorm_avx512bf16 = {headnorm_row_for};

}  // namespace okl
