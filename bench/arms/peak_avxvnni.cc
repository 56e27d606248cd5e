// SPDX-License-Identifier: Apache-2.0
// Compiled with -mavx2. The VEX form of VPDPBUSD, for processors that have no AVX-512: only the assembler needs to know it.
#include <immintrin.h>

#include "bench/arms/peak_loops.h"

namespace omnibench {

float peak_vnni_avx2(int64_t rounds) {
  const __m256i a = _mm256_set1_epi8(1);
  __m256i sum[12];
  for (__m256i& s : sum) s = _mm256_setzero_si256();
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 12
    for (__m256i& s : sum) __asm__ volatile("%{vex%} vpdpbusd %1, %1, %0" : "+x"(s) : "x"(a));
  }
  __m256i total = sum[0];
  for (int i = 1; i < 12; ++i) total = _mm256_add_epi32(total, sum[i]);
  return static_cast<float>(_mm_cvtsi128_si32(_mm256_castsi256_si128(total)));
}

}  // namespace omnibench
