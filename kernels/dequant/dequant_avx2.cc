// SPDX-License-Identifier: Apache-2.0
#include "kernels/dequant/dequant_block.inl"

namespace okl {

DequantCode dequant_avx2_code(const DequantConfig& config) { return dequant_code(config); }

}  // namespace okl
