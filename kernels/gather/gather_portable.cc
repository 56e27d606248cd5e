// SPDX-License-Identifier: Apache-2.0
#include "kernels/gather/gather_row.inl"

namespace okl {

extern const GatherKernel gather_portable;
const GatherKernel gather_portable = OMNI_GATHER_KERNEL;

}  // namespace okl
