// SPDX-License-Identifier: Apache-2.0
#include "kernels/attention/attention_vector.inl"

namespace okl {

extern const AttentionKernel attention_bf16_avx512f = kVectorKernel<OMNI_DTYPE_BF16>;
extern const AttentionKernel attention_f32_avx512f = kVectorKernel<OMNI_DTYPE_F32>;
extern const AttentionKernel attention_s8_avx512f = kVectorKernel<OMNI_DTYPE_S8>;

}  // namespace okl
