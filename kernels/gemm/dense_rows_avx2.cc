// SPDX-License-Identifier: Apache-2.0
// Moving rows of bf16 on AVX2.
#include <immintrin.h>

#include "kernels/gemm/dense_rows_kernel.h"

namespace okl {
namespace {

constexpr int64_t kWords = 16;

// `below` is at most 0x7FFF, so that signed comparison serves.
inline __m256i load_scrubbed(const uint16_t* x, __m256i below) {
  const __m256i words = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x));
  const __m256i magnitude = _mm256_and_si256(words, _mm256_set1_epi16(0x7FFF));
  return _mm256_andnot_si256(_mm256_cmpgt_epi16(below, magnitude), words);
}

inline void store(void* out, __m256i words) { _mm256_storeu_si256(static_cast<__m256i*>(out), words); }

inline void store_widened(float* out, __m256i words) {
  const __m256i low = _mm256_cvtepu16_epi32(_mm256_castsi256_si128(words));
  const __m256i high = _mm256_cvtepu16_epi32(_mm256_extracti128_si256(words, 1));
  store(out, _mm256_slli_epi32(low, 16));
  store(out + 8, _mm256_slli_epi32(high, 16));
}

void copy(const uint16_t* x, int64_t count, uint16_t below, uint16_t* out) {
  const __m256i least = _mm256_set1_epi16(static_cast<short>(below));
  for (int64_t i = 0; i < count; i += kWords) store(out + i, load_scrubbed(x + i, least));
}

void widen(const uint16_t* x, int64_t count, uint16_t below, float* out) {
  const __m256i least = _mm256_set1_epi16(static_cast<short>(below));
  for (int64_t i = 0; i < count; i += kWords) store_widened(out + i, load_scrubbed(x + i, least));
}

void widen_odd_first(const uint16_t* x, int64_t count, uint16_t below, float* out) {
  const __m256i least = _mm256_set1_epi16(static_cast<short>(below));
  for (int64_t i = 0; i < count; i += kWords) {
    const __m256i words = load_scrubbed(x + i, least);
    store_widened(out + i, _mm256_or_si256(_mm256_slli_epi32(words, 16), _mm256_srli_epi32(words, 16)));
  }
}

}  // namespace

const DenseRowsKernel dense_rows_avx2 = {&copy, &widen, &widen_odd_first};

}  // namespace okl
