// SPDX-License-Identifier: Apache-2.0
// Compiled with -mavx512f -mavx512vnni. Inline assembly for the same reason as in peak_bf16.cc.
#include <immintrin.h>

#include "bench/arms/peak_loops.h"

namespace omnibench {

float peak_vnni_avx512(int64_t rounds) {
  const __m512i a = _mm512_set1_epi32(0x01010101);
  __m512i sum[24];
  for (__m512i& s : sum) s = _mm512_setzero_si512();
  for (int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 24
    for (__m512i& s : sum) __asm__ volatile("vpdpbusd %1, %1, %0" : "+v"(s) : "v"(a));
  }
  __m512i total = sum[0];
  for (int i = 1; i < 24; ++i) total = _mm512_add_epi32(total, sum[i]);
  int32_t lanes[16];
  _mm512_storeu_si512(lanes, total);
  return static_cast<float>(lanes[0]);
}

}  // namespace omnibench
