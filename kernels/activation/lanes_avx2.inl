// SPDX-License-Identifier: Apache-2.0
// lanes.inl in AVX2 and FMA: two registers of eight.
#pragma once

#include <immintrin.h>

#include <cstdint>

namespace okl {
namespace {

struct F32 {
  __m256 lo, hi;
};
struct U32 {
  __m256i lo, hi;
};
struct Mask {
  __m256 lo, hi;
};

OMNI_LANE_FN F32 splat(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
OMNI_LANE_FN U32 splat_bits(uint32_t x) { return {_mm256_set1_epi32(static_cast<int>(x)), _mm256_set1_epi32(static_cast<int>(x))}; }
OMNI_LANE_FN F32 load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
OMNI_LANE_FN void store(float* p, F32 x) {
  _mm256_storeu_ps(p, x.lo);
  _mm256_storeu_ps(p + 8, x.hi);
}
OMNI_LANE_FN __m256i load_words(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }
OMNI_LANE_FN U32 load_bits(const void* p) { return {load_words(p), load_words(static_cast<const char*>(p) + 32)}; }

OMNI_LANE_FN U32 as_bits(F32 x) { return {_mm256_castps_si256(x.lo), _mm256_castps_si256(x.hi)}; }
OMNI_LANE_FN F32 as_float(U32 x) { return {_mm256_castsi256_ps(x.lo), _mm256_castsi256_ps(x.hi)}; }

OMNI_LANE_FN F32 operator+(F32 a, F32 b) { return {_mm256_add_ps(a.lo, b.lo), _mm256_add_ps(a.hi, b.hi)}; }
OMNI_LANE_FN F32 operator-(F32 a, F32 b) { return {_mm256_sub_ps(a.lo, b.lo), _mm256_sub_ps(a.hi, b.hi)}; }
OMNI_LANE_FN F32 operator*(F32 a, F32 b) { return {_mm256_mul_ps(a.lo, b.lo), _mm256_mul_ps(a.hi, b.hi)}; }
OMNI_LANE_FN F32 operator/(F32 a, F32 b) { return {_mm256_div_ps(a.lo, b.lo), _mm256_div_ps(a.hi, b.hi)}; }
OMNI_LANE_FN F32 fma(F32 a, F32 b, F32 c) { return {_mm256_fmadd_ps(a.lo, b.lo, c.lo), _mm256_fmadd_ps(a.hi, b.hi, c.hi)}; }
OMNI_LANE_FN F32 max(F32 a, F32 b) { return {_mm256_max_ps(a.lo, b.lo), _mm256_max_ps(a.hi, b.hi)}; }
OMNI_LANE_FN F32 min(F32 a, F32 b) { return {_mm256_min_ps(a.lo, b.lo), _mm256_min_ps(a.hi, b.hi)}; }

OMNI_LANE_FN U32 operator&(U32 a, U32 b) { return {_mm256_and_si256(a.lo, b.lo), _mm256_and_si256(a.hi, b.hi)}; }
OMNI_LANE_FN U32 operator|(U32 a, U32 b) { return {_mm256_or_si256(a.lo, b.lo), _mm256_or_si256(a.hi, b.hi)}; }
OMNI_LANE_FN U32 operator^(U32 a, U32 b) { return {_mm256_xor_si256(a.lo, b.lo), _mm256_xor_si256(a.hi, b.hi)}; }
OMNI_LANE_FN U32 operator+(U32 a, U32 b) { return {_mm256_add_epi32(a.lo, b.lo), _mm256_add_epi32(a.hi, b.hi)}; }
OMNI_LANE_FN U32 max(U32 a, U32 b) { return {_mm256_max_epu32(a.lo, b.lo), _mm256_max_epu32(a.hi, b.hi)}; }
OMNI_LANE_FN U32 max_halves(U32 a, U32 b) { return {_mm256_max_epu16(a.lo, b.lo), _mm256_max_epu16(a.hi, b.hi)}; }
template <int count>
OMNI_LANE_FN U32 shift_left(U32 x) {
  return {_mm256_slli_epi32(x.lo, count), _mm256_slli_epi32(x.hi, count)};
}
template <int count>
OMNI_LANE_FN U32 shift_right(U32 x) {
  return {_mm256_srli_epi32(x.lo, count), _mm256_srli_epi32(x.hi, count)};
}

OMNI_LANE_FN Mask less(F32 a, F32 b) { return {_mm256_cmp_ps(a.lo, b.lo, _CMP_LT_OQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_LT_OQ)}; }
OMNI_LANE_FN Mask not_less_equal(F32 a, F32 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_NLE_UQ), _mm256_cmp_ps(a.hi, b.hi, _CMP_NLE_UQ)};
}
OMNI_LANE_FN Mask unordered(F32 a, F32 b) {
  return {_mm256_cmp_ps(a.lo, b.lo, _CMP_UNORD_Q), _mm256_cmp_ps(a.hi, b.hi, _CMP_UNORD_Q)};
}
OMNI_LANE_FN Mask operator|(Mask a, Mask b) { return {_mm256_or_ps(a.lo, b.lo), _mm256_or_ps(a.hi, b.hi)}; }
OMNI_LANE_FN bool any(Mask m) { return _mm256_movemask_ps(_mm256_or_ps(m.lo, m.hi)) != 0; }
OMNI_LANE_FN F32 select(Mask m, F32 yes, F32 no) {
  return {_mm256_blendv_ps(no.lo, yes.lo, m.lo), _mm256_blendv_ps(no.hi, yes.hi, m.hi)};
}
OMNI_LANE_FN F32 zero_where(Mask m, F32 x) { return {_mm256_andnot_ps(m.lo, x.lo), _mm256_andnot_ps(m.hi, x.hi)}; }

OMNI_LANE_FN __m256 lookup8(__m256 low, __m256 high, __m256i index) {
  // Bit 3 of the index to the sign, where the blend looks.
  const __m256 upper = _mm256_castsi256_ps(_mm256_slli_epi32(index, 28));
  return _mm256_blendv_ps(_mm256_permutevar8x32_ps(low, index), _mm256_permutevar8x32_ps(high, index), upper);
}
OMNI_LANE_FN F32 lookup(const float* table, U32 index) {
  const __m256 low = _mm256_loadu_ps(table), high = _mm256_loadu_ps(table + 8);
  return {lookup8(low, high, index.lo), lookup8(low, high, index.hi)};
}

// Lane i + half onto lane i, for lanes below half; other lanes are of no use afterwards.
template <int half>
OMNI_LANE_FN F32 fold(F32 x) {
  if constexpr (half == 8) {
    return {_mm256_add_ps(x.lo, x.hi), x.hi};
  } else if constexpr (half == 4) {
    return {_mm256_add_ps(x.lo, _mm256_permute2f128_ps(x.lo, x.lo, 0x11)), x.hi};
  } else {
    return {_mm256_add_ps(x.lo, _mm256_permute_ps(x.lo, half == 2 ? 0x4E : 0xB1)), x.hi};
  }
}
OMNI_LANE_FN float first(F32 x) { return _mm256_cvtss_f32(x.lo); }
OMNI_LANE_FN uint32_t largest(U32 x) {
  const __m256i both = _mm256_max_epu32(x.lo, x.hi);
  __m128i most = _mm_max_epu32(_mm256_castsi256_si128(both), _mm256_extracti128_si256(both, 1));
  most = _mm_max_epu32(most, _mm_shuffle_epi32(most, 0x4E));
  most = _mm_max_epu32(most, _mm_shuffle_epi32(most, 0xB1));
  return static_cast<uint32_t>(_mm_cvtsi128_si32(most));
}

OMNI_LANE_FN __m256 widen8(const uint16_t* p) {
  const __m128i half = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16));
}
OMNI_LANE_FN F32 load_bf16(const uint16_t* p) { return {widen8(p), widen8(p + 8)}; }
// Pairs of bf16 without those below the magnitude, which is given in both halves.
OMNI_LANE_FN __m256i scrub_words(__m256i pairs, __m256i least) {
  const __m256i magnitude = _mm256_and_si256(pairs, _mm256_set1_epi16(0x7FFF));
  return _mm256_andnot_si256(_mm256_cmpgt_epi16(least, magnitude), pairs);
}
OMNI_LANE_FN U32 scrub_bf16(U32 pairs, U32 least) { return {scrub_words(pairs.lo, least.lo), scrub_words(pairs.hi, least.hi)}; }
OMNI_LANE_FN void split_bf16(U32 pairs, F32* even, F32* odd) {
  const __m256i high = _mm256_set1_epi32(static_cast<int>(0xFFFF0000));
  *even = {_mm256_castsi256_ps(_mm256_slli_epi32(pairs.lo, 16)), _mm256_castsi256_ps(_mm256_slli_epi32(pairs.hi, 16))};
  *odd = {_mm256_castsi256_ps(_mm256_and_si256(pairs.lo, high)), _mm256_castsi256_ps(_mm256_and_si256(pairs.hi, high))};
}

// bf16 in the high half of each lane, the low half of no use.
OMNI_LANE_FN __m256i rounded_high(__m256 x) {
  const __m256i bits = _mm256_castps_si256(x), exponent = _mm256_set1_epi32(0x7F800000);
  const __m256i odd = _mm256_and_si256(_mm256_srli_epi32(bits, 16), _mm256_set1_epi32(1));
  const __m256i rounded = _mm256_add_epi32(bits, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7FFF)));
  const __m256i sign = _mm256_and_si256(bits, _mm256_set1_epi32(static_cast<int>(0x80000000)));
  const __m256i tiny = _mm256_cmpeq_epi32(_mm256_and_si256(bits, exponent), _mm256_setzero_si256());
  const __m256i flushed = _mm256_blendv_epi8(rounded, sign, tiny);
  const __m256i nan = _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q));
  return _mm256_blendv_epi8(flushed, _mm256_set1_epi32(static_cast<int>(kNanBits)), nan);
}
OMNI_LANE_FN void store_words(void* p, __m256i x) { _mm256_storeu_si256(static_cast<__m256i*>(p), x); }
OMNI_LANE_FN void store_bf16(uint16_t* p, F32 x) {
  // VPACKUSDW interleaves the quarters.
  const __m256i mixed = _mm256_packus_epi32(_mm256_srli_epi32(rounded_high(x.lo), 16), _mm256_srli_epi32(rounded_high(x.hi), 16));
  store_words(p, _mm256_permute4x64_epi64(mixed, 0xD8));
}
// The even and the odd elements of 32 as bf16, in order.
OMNI_LANE_FN __m256i pack_words(__m256 even, __m256 odd) {
  return _mm256_blend_epi16(_mm256_srli_epi32(rounded_high(even), 16), rounded_high(odd), 0xAA);
}
OMNI_LANE_FN U32 pack_bf16(F32 even, F32 odd) { return {pack_words(even.lo, odd.lo), pack_words(even.hi, odd.hi)}; }
OMNI_LANE_FN void store_bits(void* p, U32 x) {
  store_words(p, x.lo);
  store_words(static_cast<char*>(p) + 32, x.hi);
}
// To bf16 and back.
OMNI_LANE_FN F32 round_to_bf16(F32 x) {
  const __m256i high = _mm256_set1_epi32(static_cast<int>(0xFFFF0000));
  return {_mm256_castsi256_ps(_mm256_and_si256(rounded_high(x.lo), high)),
          _mm256_castsi256_ps(_mm256_and_si256(rounded_high(x.hi), high))};
}

// rint(x), ties to even, of values in -128..127.
OMNI_LANE_FN void store_s8(int8_t* p, F32 x) {
  const __m256i words = _mm256_packs_epi32(_mm256_cvtps_epi32(x.lo), _mm256_cvtps_epi32(x.hi));
  const __m256i ordered = _mm256_permute4x64_epi64(words, 0xD8);
  const __m128i bytes = _mm_packs_epi16(_mm256_castsi256_si128(ordered), _mm256_extracti128_si256(ordered, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
}
OMNI_LANE_FN __m256i code_words(__m256 even, __m256 odd) {
  return _mm256_blend_epi16(_mm256_cvtps_epi32(even), _mm256_slli_epi32(_mm256_cvtps_epi32(odd), 16), 0xAA);
}
OMNI_LANE_FN void store_s8_split(int8_t* p, F32 even, F32 odd) {
  const __m256i mixed = _mm256_packs_epi16(code_words(even.lo, odd.lo), code_words(even.hi, odd.hi));
  store_words(p, _mm256_permute4x64_epi64(mixed, 0xD8));
}

}  // namespace
}  // namespace okl
