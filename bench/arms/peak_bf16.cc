// SPDX-License-Identifier: Apache-2.0
// Compiled with -mavx512f -mavx512bf16. Inline assembly: g++ 12 has no other way to keep 24 accumulators of VDPBF16PS in registers.
#include <immintrin.h>

#include "bench/arms/peak_loops.h"

namespace omnibench {

float peak_bf16_avx512(int64_t rounds) {
  const __m512i a = _mm512_set1_epi32(0x3f803f80);  // pairs of 1.0
  __m512 sum[24];
  for (__m512& s : sum) s = _mm512_setzero_ps();
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 24
    for (__m512& s : sum) __asm__ volatile("vdpbf16ps %1, %1, %0" : "+v"(s) : "v"(a));
  }
  __m512 total = sum[0];
  for (int i = 1; i < 24; ++i) total = _mm512_add_ps(total, sum[i]);
  return _mm512_cvtss_f32(total);
}

}  // namespace omnibench
