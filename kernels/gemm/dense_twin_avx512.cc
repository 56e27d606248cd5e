// SPDX-License-Identifier: Apache-2.0
// The compiled twin for AVX-512: serves where executable memory is refused.
#include "kernels/gemm/dense_twin.inc"

namespace okl {

extern const DenseKernel dense_twin_avx512;
const DenseKernel dense_twin_avx512 = {kTwinRows, DenseElement::kFloat, false, false, &make_dense};

}  // namespace okl
