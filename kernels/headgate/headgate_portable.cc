// SPDX-License-Identifier: Apache-2.0
#include "kernels/headgate/headgate_row.inl"

namespace okl {

extern const HeadgateKernel headgate_portable;
const HeadgateKernel headgate_portable = {headgate_steps};

}  // namespace okl
