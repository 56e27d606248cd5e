// SPDX-License-Identifier: Apache-2.0
#include "kernels/headgate/headgate_row.inl"

namespace okl {

extern const HeadgateKernel headgate_avx512;
const HeadgateKernel headgate_avx512 = {headgate_steps};

}  // namespace okl
