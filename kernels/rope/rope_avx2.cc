// SPDX-License-Identifier: Apache-2.0
#include "kernels/rope/rope_row.inl"

namespace okl {

extern const RopeKernel rope_avx2;
const RopeKernel rope_avx2 = {rope_row<uint16_t>, rope_row<float>};

}  // namespace okl
