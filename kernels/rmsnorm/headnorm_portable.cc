// SPDX-License-Identifier: Apache-2.0
#include "kernels/rmsnorm/headnorm_row.inl"

namespace okl {

extern const HeadnormKernel headnorm_portable;
const HeadnormKernel headnorm_portable = {headnorm_row_for};

}  // namespace okl
