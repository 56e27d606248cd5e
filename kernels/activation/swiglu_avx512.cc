// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/gated_row.inl"
#include "kernels/activation/sigmoid.inl"

namespace okl {

extern const GatedKernel swiglu_avx512;
const GatedKernel swiglu_avx512 = {Gated<Silu>::row_for};

}  // namespace okl
