// SPDX-License-Identifier: Apache-2.0
#include "kernels/rmsnorm/layernorm_row.inl"

namespace okl {

extern const LayernormKernel layernorm_avx512;
const LayernormKernel layernorm_avx512 = {layernorm_row_for};

}  // namespace okl
