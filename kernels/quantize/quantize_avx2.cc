// SPDX-License-Identifier: Apache-2.0
#include "kernels/quantize/quantize_row.inl"

namespace okl {

extern const QuantizeKernel quantize_avx2;
const QuantizeKernel quantize_avx2 = {quantize_row<uint16_t>, quantize_row<float>};

}  // namespace okl
