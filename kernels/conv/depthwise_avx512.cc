// SPDX-License-Identifier: Apache-2.0
#include "kernels/conv/depthwise_rows.inl"

namespace okl {

extern const DepthwiseKernel depthwise_avx512;
const DepthwiseKernel depthwise_avx512 = {depthwise_steps};

}  // namespace okl
