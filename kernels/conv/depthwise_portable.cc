// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/depthwise_rows.inl"

namespace okl {

extern const DepthwiseKernel depthwise_portable;
const DepthwiseKernel depthwise_portable = {depthwise_steps};

}  // namespace okl
