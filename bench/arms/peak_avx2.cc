// SPDX-License-Identifier: Apache-2.0
// Compiled with -mavx2 -mfma. Ten chains cover a latency of 4 at two a cycle, in sixteen registers.
#include <immintrin.h>

#include "bench/arms/peak_loops.h"

namespace omnibench {

float peak_fma_avx2(int64_t rounds) {
  __m256 a = _mm256_set1_ps(0.999F);
  __m256 b = _mm256_set1_ps(0.001F);
  __m256 sum[10];
  for (__m256& s : sum) s = _mm256_setzero_ps();
  for (int64_t r = 0; r < rounds; ++r) {
    __asm__ volatile("" : "+x"(a), "+x"(b));  // the compiler may not fold rounds together
#pragma GCC unroll 10
    for (__m256& s : sum) s = _mm256_fmadd_ps(s, a, b);
  }
  __m256 total = sum[0];
  for (int i = 1; i < 10; ++i) total = _mm256_add_ps(total, sum[i]);
  return _mm256_cvtss_f32(total);
}

}  // namespace omnibench
