// SPDX-License-Identifier: Apache-2.0
// Compiled with -mavx512f. 24 chains in 32 registers.
#include <immintrin.h>

#include "bench/arms/peak_loops.h"

namespace omnibench {

float peak_fma_avx512(int64_t rounds) {
  __m512 a = _mm512_set1_ps(0.999F);
  __m512 b = _mm512_set1_ps(0.001F);
  __m512 sum[24];
  for (__m512& s : sum) s = _mm512_setzero_ps();
  for (int64_t r = 0; r < rounds; ++r) {
    __asm__ volatile("" : "+v"(a), "+v"(b));  // the compiler may not fold rounds together
#pragma GCC unroll 24
    for (__m512& s : sum) s = _mm512_fmadd_ps(s, a, b);
  }
  __m512 total = sum[0];
  for (int i = 1; i < 24; ++i) total = _mm512_add_ps(total, sum[i]);
  return _mm512_cvtss_f32(total);
}

}  // namespace omnibench
