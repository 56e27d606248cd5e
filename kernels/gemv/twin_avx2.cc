// SPDX-License-Identifier: Apache-2.0
// The compiled twin for AVX2: serves where executable memory is refused.
#include "kernels/gemv/twin.inc"

namespace okl {

extern const LinearKernel linear_group_twin_avx2, linear_torch_twin_avx2;
const LinearKernel linear_group_twin_avx2 = {XForm::kFloats, kTwinRows, &make_group};
const LinearKernel linear_torch_twin_avx2 = {XForm::kFloats, kTwinRows, &make_torch};

}  // namespace okl
