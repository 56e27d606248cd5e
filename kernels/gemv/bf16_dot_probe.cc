// SPDX-License-Identifier: Apache-2.0
// One VDPBF16PS, for the start-up self-test. A leaf file: compiled with AVX-512 BF16 and called only where CPUID has it.
#include <immintrin.h>

#include <cstdint>

namespace okl {

// accumulator[i] = VDPBF16PS of lane i, for 16 lanes of (even, odd) bf16 pairs.
void bf16_dot_lanes(const uint32_t* a, const uint32_t* b, float* accumulator) {
  const __m512 sum = _mm512_loadu_ps(accumulator);
  const __m512 result = _mm512_dpbf16_ps(sum, (__m512bh)_mm512_loadu_si512(a), (__m512bh)_mm512_loadu_si512(b));
  _mm512_storeu_ps(accumulator, result);
}

}  // namespace okl
