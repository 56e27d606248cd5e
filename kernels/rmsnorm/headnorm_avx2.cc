// SPDX-License-Identifier: Apache-2.0
#include "kernels/rmsnorm/headnorm_row.inl"

namespace okl {

extern const HeadnormKernel headnorm_avx2;
const HeadnormKernel headnorm_avx2 = {headnorm_row_for};

}  // namespace okl
