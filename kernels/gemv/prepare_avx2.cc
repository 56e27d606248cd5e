// SPDX-License-Identifier: Apache-2.0
// Preparing x on AVX2.
#include <immintrin.h>

#include "kernels/gemv/prepare_kernel.h"

namespace okl {
namespace {

constexpr int64_t kStep = 16;  // words of a register

inline uint16_t scrubbed_word(uint16_t x, bool scrub) { return scrub && (x & 0x7FFF) < kScrubBelow ? 0 : x; }

inline __m256i scrubbed_words(__m256i x, bool scrub) {
  if (!scrub) return x;
  // Magnitudes are at most 0x7FFF, so the signed comparison serves.
  const __m256i magnitude = _mm256_and_si256(x, _mm256_set1_epi16(0x7FFF));
  return _mm256_and_si256(x, _mm256_cmpgt_epi16(magnitude, _mm256_set1_epi16(kScrubBelow - 1)));
}

inline __m256i load_words(const uint16_t* x) { return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(x)); }
inline void store(void* out, __m256i value) { _mm256_storeu_si256(static_cast<__m256i*>(out), value); }

inline void store_widened(float* out, __m256i words) {
  store(out, _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm256_castsi256_si128(words)), 16));
  store(out + 8, _mm256_slli_epi32(_mm256_cvtepu16_epi32(_mm256_extracti128_si256(words, 1)), 16));
}

void widen(const uint16_t* x, int64_t count, bool scrub, float* out) {
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) store_widened(out + i, scrubbed_words(load_words(x + i), scrub));
  for (; i < count; ++i) {
    const uint32_t bits = static_cast<uint32_t>(scrubbed_word(x[i], scrub)) << 16;
    out[i] = __builtin_bit_cast(float, bits);
  }
}

void copy(const uint16_t* x, int64_t count, bool scrub, uint16_t* out) {
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep) store(out + i, scrubbed_words(load_words(x + i), scrub));
  for (; i < count; ++i) out[i] = scrubbed_word(x[i], scrub);
}

// Dwords 4 * quad + 0..3 of the chains parts[0..7], chain i in lane i.
inline void load_quad(const uint8_t* const* parts, int64_t offset, __m256 out[4]) {
  __m256 row[4];
  for (int r = 0; r < 4; ++r) {
    const auto at = [&](int chain) { return _mm_loadu_ps(reinterpret_cast<const float*>(parts[chain] + offset)); };
    row[r] = _mm256_insertf128_ps(_mm256_castps128_ps256(at(r)), at(r + 4), 1);
  }
  const __m256 low01 = _mm256_unpacklo_ps(row[0], row[1]), low23 = _mm256_unpacklo_ps(row[2], row[3]);
  const __m256 high01 = _mm256_unpackhi_ps(row[0], row[1]), high23 = _mm256_unpackhi_ps(row[2], row[3]);
  out[0] = _mm256_shuffle_ps(low01, low23, 0x44);
  out[1] = _mm256_shuffle_ps(low01, low23, 0xEE);
  out[2] = _mm256_shuffle_ps(high01, high23, 0x44);
  out[3] = _mm256_shuffle_ps(high01, high23, 0xEE);
}

inline __m256 add_quad(__m256 sum, XForm form, const uint8_t* const* parts, int64_t offset) {
  __m256 quad[4];
  load_quad(parts, offset, quad);
  if (form == XForm::kPairs) {
    for (int pair = 0; pair < 4; ++pair) {
      const __m256i words = _mm256_castps_si256(quad[pair]);
      sum = _mm256_add_ps(sum, _mm256_castsi256_ps(_mm256_and_si256(words, _mm256_set1_epi32(static_cast<int>(0xFFFF0000)))));
      sum = _mm256_add_ps(sum, _mm256_castsi256_ps(_mm256_slli_epi32(words, 16)));
    }
    return sum;
  }
  sum = _mm256_add_ps(sum, quad[1]);
  sum = _mm256_add_ps(sum, quad[0]);
  sum = _mm256_add_ps(sum, quad[3]);
  return _mm256_add_ps(sum, quad[2]);
}

inline int64_t slice_bytes(XForm form) { return kSumSlice * (form == XForm::kPairs ? 2 : 4); }

void add(XForm form, const uint8_t* const* parts, int64_t slices, float* sums) {
  __m256 low = _mm256_loadu_ps(sums), high = _mm256_loadu_ps(sums + 8);
  for (int64_t offset = 0; offset < slices * slice_bytes(form); offset += 16) {
    low = add_quad(low, form, parts, offset);
    high = add_quad(high, form, parts + 8, offset);
  }
  _mm256_storeu_ps(sums, low);
  _mm256_storeu_ps(sums + 8, high);
}

void move_and_add(XForm form, const uint16_t* const* x, uint8_t* const* parts, int64_t slices, float* sums) {
  __m256 low = _mm256_loadu_ps(sums), high = _mm256_loadu_ps(sums + 8);
  for (int64_t slice = 0; slice < slices; ++slice) {
    const int64_t begin = slice * slice_bytes(form);
    for (int i = 0; i < kSumChains; ++i) {
      for (int64_t first = 0; first < kSumSlice; first += kStep) {
        const __m256i words = scrubbed_words(load_words(x[i] + slice * kSumSlice + first), true);
        if (form == XForm::kPairs) {
          store(reinterpret_cast<uint16_t*>(parts[i] + begin) + first, words);
        } else {
          store_widened(reinterpret_cast<float*>(parts[i] + begin) + first, words);
        }
      }
    }
    for (int64_t offset = begin; offset < begin + slice_bytes(form); offset += 16) {
      low = add_quad(low, form, parts, offset);
      high = add_quad(high, form, parts + 8, offset);
    }
  }
  _mm256_storeu_ps(sums, low);
  _mm256_storeu_ps(sums + 8, high);
}

}  // namespace

const PrepareKernel prepare_avx2 = {&widen, &copy, &add, &move_and_add};

}  // namespace okl
