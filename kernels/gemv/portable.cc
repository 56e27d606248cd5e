// SPDX-License-Identifier: Apache-2.0
// The portable tier: runs anywhere, and on any machine with a correct fmaf() gives the bits of the contract.
#include "kernels/gemv/twin.inc"

namespace okl {

extern const LinearKernel linear_group_portable, linear_torch_portable;
const LinearKernel linear_group_portable = {XForm::kFloats, kTwinRows, &make_group};
const LinearKernel linear_torch_portable = {XForm::kFloats, kTwinRows, &make_torch};

}  // namespace okl
