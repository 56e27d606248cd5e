// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/depthwise_rows.inl"

namespace okl {

extern const DepthwiseKernel depthwise_avx2;
const DepthwiseKernel depthwise_avx2 = {depthwise_steps};

}  // namespace okl
