// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope/rope_row.inl"

namespace okl {

extern const RopeKernel rope_avx512bf16;
const RopeKernel rope_avx512bf16 = {rope_row<uint16_t>, rope_row<float>};

}  // namespace okl
