// SPDX-License-Identifier: Apache-2.0
// Moving rows of bf16 on AVX-512 F/BW/DQ/VL.
#include <immintrin.h>

#include "kernels/gemm/dense_rows_kernel.h"

namespace okl {
namespace {

inline __m512i load_scrubbed(const uint16_t* x, __m512i below) {
  const __m512i words = _mm512_loadu_si512(x), magnitude = _mm512_and_si512(words, _mm512_set1_epi16(0x7FFF));
  return _mm512_maskz_mov_epi16(_mm512_cmpge_epu16_mask(magnitude, below), words);
}

inline void store_widened(float* out, __m512i words) {
  const __m512i low = _mm512_cvtepu16_epi32(_mm512_castsi512_si256(words));
  const __m512i high = _mm512_cvtepu16_epi32(_mm512_extracti64x4_epi64(words, 1));
  _mm512_storeu_si512(out, _mm512_slli_epi32(low, 16));
  _mm512_storeu_si512(out + 16, _mm512_slli_epi32(high, 16));
}

void copy(const uint16_t* x, int64_t count, uint16_t below, uint16_t* out) {
  const __m512i least = _mm512_set1_epi16(static_cast<short>(below));
  for (int64_t i = 0; i < count; i += kDenseRowStep) _mm512_storeu_si512(out + i, load_scrubbed(x + i, least));
}

void widen(const uint16_t* x, int64_t count, uint16_t below, float* out) {
  const __m512i least = _mm512_set1_epi16(static_cast<short>(below));
  for (int64_t i = 0; i < count; i += kDenseRowStep) store_widened(out + i, load_scrubbed(x + i, least));
}

void widen_odd_first(const uint16_t* x, int64_t count, uint16_t below, float* out) {
  const __m512i least = _mm512_set1_epi16(static_cast<short>(below));
  for (int64_t i = 0; i < count; i += kDenseRowStep) {
    store_widened(out + i, _mm512_rol_epi32(load_scrubbed(x + i, least), 16));
  }
}

}  // namespace

const DenseRowsKernel dense_rows_avx512 = {&copy, &widen, &widen_odd_first};

}  // namespace okl
