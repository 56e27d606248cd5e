// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemm/exact_prepare.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include <cmath>
#include <cstring>
#include <limits>

#include "kernels/format/bf16.h"

namespace okl {
namespace {

float widen(uint16_t bits) { return bf16_to_float(bits); }
float widen(float value) { return value; }

// A permuted row, in the steps of kernels/quantize, each code written where the weights want it: amax = max(max|x|, 1e-7); scale =
// amax / 127; code = rint(x * (127 / amax)), ties to even. A row with NaN or Inf has scale NaN.
template <typename Source>
float quantize_permuted(const Source* x, const int32_t* permutation, int64_t k, int8_t* codes) {
  constexpr float kLeastAmax = 1e-7F;
  float amax = kLeastAmax;
  bool finite = true;
  for (int64_t i = 0; i < k; ++i) {
    const float magnitude = std::fabs(widen(x[i]));
    finite &= magnitude <= std::numeric_limits<float>::max();
    amax = magnitude > amax ? magnitude : amax;
  }
  if (!finite) {
    std::memset(codes, 0, static_cast<size_t>(k));
    return std::numeric_limits<float>::quiet_NaN();
  }
  const float factor = 127.0F / amax;
  constexpr float kRound = 0x1.8p23F;  // adding it leaves the integer nearest, ties to even, in the low bits
  for (int64_t i = 0; i < k; ++i) {
    const float value = widen(x[permutation[i]]) * factor + kRound;
    codes[i] = static_cast<int8_t>(__builtin_bit_cast(int32_t, value) - __builtin_bit_cast(int32_t, kRound));
  }
  return amax / 127.0F;
}

float copy_codes(const int8_t* x, float scale, const int32_t* permutation, int64_t k, int8_t* codes) {
  if (permutation == nullptr) {
    std::memcpy(codes, x, static_cast<size_t>(k));
  } else {
    for (int64_t i = 0; i < k; ++i) codes[i] = x[permutation[i]];
  }
  return scale;
}

// |sum| stays below 131,071 * 128.
int32_t sum_of(const int8_t* codes, int64_t count) {
  int32_t sum = 0;
  int64_t i = 0;
#ifdef __SSE2__
  // PSADBW adds bytes as unsigned ones: a block of 128 takes 8 of them, where widening takes 60 instructions.
  __m128i all = _mm_setzero_si128();
  const __m128i flip = _mm_set1_epi8(-128);
  for (; i + 16 <= count; i += 16) {
    const __m128i bytes = _mm_xor_si128(_mm_loadu_si128(reinterpret_cast<const __m128i*>(codes + i)), flip);
    all = _mm_add_epi64(all, _mm_sad_epu8(bytes, _mm_setzero_si128()));
  }
  all = _mm_add_epi64(all, _mm_unpackhi_epi64(all, all));
  sum = _mm_cvtsi128_si32(all) - static_cast<int32_t>(128 * i);
#endif
  for (; i < count; ++i) sum += codes[i];
  return sum;
}

}  // namespace

void prepare_exact_rows(const ExactRows& rows, uint32_t first, uint32_t last) {
  const ExactConfig& config = *rows.config;
  const omni_linear_args& args = *rows.args;
  const int64_t k = config.k, row_bytes = config.row_bytes(), blocks = config.blocks();
  for (int64_t row = first; row < last; ++row) {
    int8_t* codes = rows.rows + row * row_bytes;
    const int64_t offset = row * args.ldx;
    float scale;
    if (rows.x_type == OMNI_DTYPE_S8) {
      scale = copy_codes(static_cast<const int8_t*>(args.x) + offset, args.x_scales[row], args.k_permutation, k, codes);
    } else if (args.k_permutation == nullptr) {
      const int64_t element = rows.x_type == OMNI_DTYPE_F32 ? 4 : 2;
      const QuantizeRow job = {static_cast<const uint8_t*>(args.x) + offset * element, k, codes, &scale};
      rows.quantize_row(&job);
    } else if (rows.x_type == OMNI_DTYPE_F32) {
      scale = quantize_permuted(static_cast<const float*>(args.x) + offset, args.k_permutation, k, codes);
    } else {
      scale = quantize_permuted(static_cast<const uint16_t*>(args.x) + offset, args.k_permutation, k, codes);
    }
    std::memset(codes + k, 0, static_cast<size_t>(row_bytes - k));
    rows.x_scales[row] = scale;
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t end = (b + 1) * config.block < k ? (b + 1) * config.block : k;
      const int32_t sum = sum_of(codes + b * config.block, end - b * config.block);
      const ExactStarts starts(config, sum);
      rows.sums[row * blocks + b] = sum;
      rows.starts[2 * (row * blocks + b)] = starts.first;
      rows.starts[2 * (row * blocks + b) + 1] = starts.second;
    }
  }
}

}  // namespace okl
