// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/activation_row.inl"

namespace okl {

extern const ActivationKernel activation_avx512;
const ActivationKernel activation_avx512 = {activation_row_for};

}  // namespace okl
