// SPDX-License-Identifier: Apache-2.0
// The compiled twin for AVX2: serves where executable memory is refused.
#include "kernels/gemm/dense_twin.inc"

namespace okl {

extern const DenseKernel dense_twin_avx2;
const DenseKernel dense_twin_avx2 = {kTwinRows, DenseElement::kFloat, false, false, &make_dense};

}  // namespace okl
