// SPDX-License-Identifier: Apache-2.0
#include "kernels/quantize/quantize_row.inl"

namespace okl {

extern const QuantizeKernel quantize_portable;
const QuantizeKernel quantize_portable = {quantize_row<uint16_t>, quantize_row<float>};

}  // namespace okl
