// SPDX-License-Identifier: Apache-2.0
// The portable tier: runs anywhere, and on any machine with a correct fmaf() gives the bits of the contract.
#include "kernels/gemm/dense_twin.inc"

namespace okl {

extern const DenseKernel dense_portable;
const DenseKernel dense_portable = {kTwinRows, DenseElement::kFloat, false, false, &make_dense};

}  // namespace okl
