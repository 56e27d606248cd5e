// SPDX-License-Identifier: Apache-2.0
// The compiled twin of class exact for AVX-512: serves where executable memory is refused.
#include "kernels/gemm/exact_twin.inc"

namespace okl {

extern const ExactKernel exact_twin_avx512;
const ExactKernel exact_twin_avx512 = kExactTwin;

}  // namespace okl
