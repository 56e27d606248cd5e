// SPDX-License-Identifier: Apache-2.0
#include "kernels/activation/geglu_row.inl"

namespace okl {

extern const GegluKernel geglu_portable;
const GegluKernel geglu_portable = {geglu_row_for};

}  // namespace okl
