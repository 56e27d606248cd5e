// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/gated_row.inl"
#include "kernels/activation/gelu.inl"

namespace okl {

extern const GatedKernel geglu_avx512bf16;
const GatedKernel geglu_avx512bf16 = {Gated<Gelu>::row_for};

}  // namespace okl
