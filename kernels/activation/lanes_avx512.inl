// SPDX-License-Identifier: Apache-2.0
// lanes.inl in AVX-512F/BW/DQ/VL, and BF16 where the file has it.
#pragma once

// g++ 12 warns of the undefined operands inside its own header.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <cstdint>

namespace okl {
namespace {

struct F32 {
  __m512 v;
};
struct U32 {
  __m512i v;
};
struct Mask {
  __mmask16 v;
};

OMNI_LANE_FN F32 splat(float x) { return {_mm512_set1_ps(x)}; }
OMNI_LANE_FN U32 splat_bits(uint32_t x) { return {_mm512_set1_epi32(static_cast<int>(x))}; }
OMNI_LANE_FN F32 load(const float* p) { return {_mm512_loadu_ps(p)}; }
OMNI_LANE_FN void store(float* p, F32 x) { _mm512_storeu_ps(p, x.v); }
OMNI_LANE_FN U32 load_bits(const void* p) { return {_mm512_loadu_si512(p)}; }

OMNI_LANE_FN U32 as_bits(F32 x) { return {_mm512_castps_si512(x.v)}; }
OMNI_LANE_FN F32 as_float(U32 x) { return {_mm512_castsi512_ps(x.v)}; }

OMNI_LANE_FN F32 operator+(F32 a, F32 b) { return {_mm512_add_ps(a.v, b.v)}; }
OMNI_LANE_FN F32 operator-(F32 a, F32 b) { return {_mm512_sub_ps(a.v, b.v)}; }
OMNI_LANE_FN F32 operator*(F32 a, F32 b) { return {_mm512_mul_ps(a.v, b.v)}; }
OMNI_LANE_FN F32 operator/(F32 a, F32 b) { return {_mm512_div_ps(a.v, b.v)}; }
OMNI_LANE_FN F32 fma(F32 a, F32 b, F32 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
OMNI_LANE_FN F32 max(F32 a, F32 b) { return {_mm512_max_ps(a.v, b.v)}; }
OMNI_LANE_FN F32 min(F32 a, F32 b) { return {_mm512_min_ps(a.v, b.v)}; }

OMNI_LANE_FN U32 operator&(U32 a, U32 b) { return {_mm512_and_si512(a.v, b.v)}; }
OMNI_LANE_FN U32 operator|(U32 a, U32 b) { return {_mm512_or_si512(a.v, b.v)}; }
OMNI_LANE_FN U32 operator^(U32 a, U32 b) { return {_mm512_xor_si512(a.v, b.v)}; }
OMNI_LANE_FN U32 operator+(U32 a, U32 b) { return {_mm512_add_epi32(a.v, b.v)}; }
OMNI_LANE_FN U32 max(U32 a, U32 b) { return {_mm512_max_epu32(a.v, b.v)}; }
OMNI_LANE_FN U32 max_halves(U32 a, U32 b) { return {_mm512_max_epu16(a.v, b.v)}; }
template <int count>
OMNI_LANE_FN U32 shift_left(U32 x) {
  return {_mm512_slli_epi32(x.v, count)};
}
template <int count>
OMNI_LANE_FN U32 shift_right(U32 x) {
  return {_mm512_srli_epi32(x.v, count)};
}

OMNI_LANE_FN Mask less(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_LT_OQ)}; }
OMNI_LANE_FN Mask not_less_equal(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_NLE_UQ)}; }
OMNI_LANE_FN Mask unordered(F32 a, F32 b) { return {_mm512_cmp_ps_mask(a.v, b.v, _CMP_UNORD_Q)}; }
OMNI_LANE_FN Mask operator|(Mask a, Mask b) { return {_kor_mask16(a.v, b.v)}; }
OMNI_LANE_FN bool any(Mask m) { return m.v != 0; }
OMNI_LANE_FN F32 select(Mask m, F32 yes, F32 no) { return {_mm512_mask_blend_ps(m.v, no.v, yes.v)}; }
OMNI_LANE_FN F32 zero_where(Mask m, F32 x) { return {_mm512_maskz_mov_ps(_knot_mask16(m.v), x.v)}; }

OMNI_LANE_FN F32 lookup(const float* table, U32 index) { return {_mm512_permutexvar_ps(index.v, _mm512_loadu_ps(table))}; }

// Lane i + half onto lane i, for lanes below half; other lanes are of no use afterwards.
template <int half>
OMNI_LANE_FN F32 fold(F32 x) {
  if constexpr (half == 8) {
    return {_mm512_add_ps(x.v, _mm512_shuffle_f32x4(x.v, x.v, 0x4E))};
  } else if constexpr (half == 4) {
    return {_mm512_add_ps(x.v, _mm512_shuffle_f32x4(x.v, x.v, 0xB1))};
  } else {
    return {_mm512_add_ps(x.v, _mm512_permute_ps(x.v, half == 2 ? 0x4E : 0xB1))};
  }
}
OMNI_LANE_FN float first(F32 x) { return _mm512_cvtss_f32(x.v); }
OMNI_LANE_FN uint32_t largest(U32 x) { return _mm512_reduce_max_epu32(x.v); }

OMNI_LANE_FN F32 load_bf16(const uint16_t* p) {
  return {
      _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p))), 16))};
}
// Pairs of bf16 without those below the magnitude, which is given in both halves.
OMNI_LANE_FN U32 scrub_bf16(U32 pairs, U32 least) {
  const __m512i magnitude = _mm512_and_si512(pairs.v, _mm512_set1_epi16(0x7FFF));
  return {_mm512_maskz_mov_epi16(_mm512_cmpge_epu16_mask(magnitude, least.v), pairs.v)};
}
OMNI_LANE_FN void split_bf16(U32 pairs, F32* even, F32* odd) {
  even->v = _mm512_castsi512_ps(_mm512_slli_epi32(pairs.v, 16));
  odd->v = _mm512_castsi512_ps(_mm512_and_si512(pairs.v, _mm512_set1_epi32(static_cast<int>(0xFFFF0000))));
}

#if !defined(__AVX512BF16__)
// bf16 in the high half of each lane, the low half of no use.
OMNI_LANE_FN __m512i rounded_high(F32 x) {
  const __m512i bits = _mm512_castps_si512(x.v);
  const __m512i odd = _mm512_and_si512(_mm512_srli_epi32(bits, 16), _mm512_set1_epi32(1));
  const __mmask16 normal = _mm512_test_epi32_mask(bits, _mm512_set1_epi32(0x7F800000));
  const __m512i sign = _mm512_and_si512(bits, _mm512_set1_epi32(static_cast<int>(0x80000000)));
  const __m512i half = _mm512_add_epi32(odd, _mm512_set1_epi32(0x7FFF));
  const __m512i rounded = _mm512_mask_add_epi32(sign, normal, bits, half);
  const __mmask16 nan = _mm512_cmp_ps_mask(x.v, x.v, _CMP_UNORD_Q);
  return _mm512_mask_mov_epi32(rounded, nan, _mm512_set1_epi32(static_cast<int>(kNanBits)));
}
#else
OMNI_LANE_FN __m512 without_nan_payload(__m512 x) {
  return _mm512_mask_mov_ps(x, _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), _mm512_castsi512_ps(_mm512_set1_epi32(kNanBits)));
}
#endif

OMNI_LANE_FN void store_bf16(uint16_t* p, F32 x) {
#if defined(__AVX512BF16__)
  const __m256i result = (__m256i)_mm512_cvtneps_pbh(without_nan_payload(x.v));
#else
  const __m256i result = _mm512_cvtepi32_epi16(_mm512_srli_epi32(rounded_high(x), 16));
#endif
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), result);
}
// The even and the odd elements of 32 as bf16, in order.
OMNI_LANE_FN U32 pack_bf16(F32 even, F32 odd) {
#if defined(__AVX512BF16__)
  // The instruction keeps a NaN's payload. One comparison for both, and a branch that is not taken, cost half of two corrections.
  __m512 high = odd.v, low = even.v;
  if (_mm512_cmp_ps_mask(high, low, _CMP_UNORD_Q) != 0) [[unlikely]] {
    high = without_nan_payload(high);
    low = without_nan_payload(low);
  }
  const __m512i halves = (__m512i)_mm512_cvtne2ps_pbh(high, low);
  const __m512i order = _mm512_set_epi16(31, 15, 30, 14, 29, 13, 28, 12, 27, 11, 26, 10, 25, 9, 24, 8, 23, 7, 22, 6, 21, 5, 20, 4,
                                         19, 3, 18, 2, 17, 1, 16, 0);
  return {_mm512_permutexvar_epi16(order, halves)};
#else
  // The even ones move down, and words 1, 3, ... come from the odd ones.
  return {_mm512_mask_mov_epi16(_mm512_srli_epi32(rounded_high(even), 16), 0xAAAAAAAA, rounded_high(odd))};
#endif
}
OMNI_LANE_FN void store_bits(void* p, U32 x) { _mm512_storeu_si512(p, x.v); }
// To bf16 and back.
OMNI_LANE_FN F32 round_to_bf16(F32 x) {
#if defined(__AVX512BF16__)
  const __m256i half = (__m256i)_mm512_cvtneps_pbh(without_nan_payload(x.v));
  return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))};
#else
  return {_mm512_castsi512_ps(_mm512_and_si512(rounded_high(x), _mm512_set1_epi32(static_cast<int>(0xFFFF0000))))};
#endif
}

// rint(x), ties to even, of values in -128..127.
OMNI_LANE_FN void store_s8(int8_t* p, F32 x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(_mm512_cvtps_epi32(x.v)));
}
OMNI_LANE_FN void store_s8_split(int8_t* p, F32 even, F32 odd) {
  const __m512i high = _mm512_slli_epi32(_mm512_cvtps_epi32(odd.v), 16);
  const __m512i words = _mm512_mask_mov_epi16(high, 0x55555555, _mm512_cvtps_epi32(even.v));
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_cvtepi16_epi8(words));
}

}  // namespace
}  // namespace okl
