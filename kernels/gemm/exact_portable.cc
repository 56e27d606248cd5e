// SPDX-License-Identifier: Apache-2.0
// The portable tier of class exact.
#include "kernels/gemm/exact_twin.inc"

namespace okl {

extern const ExactKernel exact_portable;
const ExactKernel exact_portable = kExactTwin;

}  // namespace okl
