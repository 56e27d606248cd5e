// SPDX-License-Identifier: Apache-2.0
// Rounding of q, K and V to the type of the cache, and the append built on it: loops that a compiler vectorises, included once for
// each ISA. Everything is in an anonymous namespace: leaf objects may hold no symbol that the linker could merge.
#include "kernels/attention/attention_kernel.h"
#include "kernels/format/bf16.h"

namespace okl {
namespace {

constexpr uint32_t kMagnitude = 0x7FFFFFFF, kInfinity = 0x7F800000;
// Exponent fields below which an operand of a dot product counts as +0: 2^-56 where both sides are scrubbed, 2^-119 against int8.
// Then every product is a multiple of 2^-126, and an instruction that flushes subnormals has nothing to flush.
constexpr uint32_t kScrubBoth = (127 - 56) << 23, kScrubOne = (127 - 119) << 23;

// A bf16 value as fp32, without branches: round to nearest even, subnormals to a zero of their sign, any NaN 0x7FC0.
inline uint32_t rounded_to_bf16(float value) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, value), magnitude = bits & kMagnitude;
  const uint32_t rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000;
  const uint32_t flushed = magnitude < 0x00800000 ? bits & 0x80000000 : rounded;
  return magnitude > kInfinity ? kF32NaN : flushed;
}

inline uint32_t scrubbed(uint32_t bits, uint32_t below) { return (bits & kMagnitude) < below ? 0 : bits; }

inline float source_value(const void* row, uint16_t type, int64_t i) {
  return type == OMNI_DTYPE_F32 ? static_cast<const float*>(row)[i] : bf16_to_float(static_cast<const uint16_t*>(row)[i]);
}

// A row of the caller as fp32.
inline void widen_row(const void* row, uint16_t type, int32_t head_dim, float* out) {
  if (type == OMNI_DTYPE_F32) {
    for (int32_t i = 0; i < head_dim; ++i) out[i] = static_cast<const float*>(row)[i];
  } else {
    for (int32_t i = 0; i < head_dim; ++i) out[i] = bf16_to_float(static_cast<const uint16_t*>(row)[i]);
  }
}

// q as the dot product takes it.
template <omni_dtype cache>
inline void round_q(float* row, int32_t head_dim) {
  if constexpr (cache != OMNI_DTYPE_F32) {
    constexpr uint32_t below = cache == OMNI_DTYPE_S8 ? kScrubOne : kScrubBoth;
    for (int32_t i = 0; i < head_dim; ++i) row[i] = __builtin_bit_cast(float, scrubbed(rounded_to_bf16(row[i]), below));
  }
}

// Codes of one row and its scale, the arithmetic of class `exact`: amax = max(max|a|, 1e-7), scale amax / 127, code
// rint(a * (127 / amax)). A row with NaN or Inf gets the scale NaN.
inline float quantise(const float* row, int32_t head_dim, int8_t* codes) {
  uint32_t largest = 0;
  for (int32_t i = 0; i < head_dim; ++i) {
    const uint32_t magnitude = __builtin_bit_cast(uint32_t, row[i]) & kMagnitude;
    largest = magnitude > largest ? magnitude : largest;
  }
  if (largest >= kInfinity) {
    for (int32_t i = 0; i < head_dim; ++i) codes[i] = 0;
    return __builtin_bit_cast(float, kF32NaN);
  }
  const float magnitude = __builtin_bit_cast(float, largest);
  const float amax = magnitude > 1e-7F ? magnitude : 1e-7F;
  const float factor = 127.0F / amax;
  // Adding and taking away 1.5 * 2^23 rounds to an integer, ties to even.
  constexpr float kRounder = 12582912.0F;
  for (int32_t i = 0; i < head_dim; ++i) {
    const float shifted = row[i] * factor + kRounder;
    codes[i] = static_cast<int8_t>(__builtin_bit_cast(int32_t, shifted) - __builtin_bit_cast(int32_t, kRounder));
  }
  return amax / 127.0F;
}

template <omni_dtype cache>
inline void append_slot(const AttentionAppend& args, int32_t index) {
  const int32_t dim = args.head_dim, slot = args.first_slot + index;
  float k[kMostHeadDim], v[kMostHeadDim];
  widen_row(static_cast<const uint8_t*>(args.k) + index * args.ldk, args.kv_type, dim, k);
  widen_row(static_cast<const uint8_t*>(args.v) + index * args.ldv, args.kv_type, dim, v);
  uint8_t* values = args.record + kBlockKeys * dim * cache_element_bytes(cache);
  if constexpr (cache == OMNI_DTYPE_BF16) {
    auto* pairs = reinterpret_cast<uint32_t*>(args.record) + slot;
    uint32_t bits[kMostHeadDim];
    for (int32_t i = 0; i < dim; ++i) bits[i] = scrubbed(rounded_to_bf16(k[i]), kScrubBoth);
    for (int32_t j = 0; j < dim / 2; ++j) pairs[j * kBlockKeys] = bits[2 * j] >> 16 | bits[2 * j + 1];
    auto* row = reinterpret_cast<uint16_t*>(values) + slot * dim;
    for (int32_t i = 0; i < dim; ++i) row[i] = static_cast<uint16_t>(rounded_to_bf16(v[i]) >> 16);
  } else if constexpr (cache == OMNI_DTYPE_F32) {
    auto* column = reinterpret_cast<float*>(args.record) + slot;
    for (int32_t i = 0; i < dim; ++i) column[i * kBlockKeys] = k[i];
    auto* row = reinterpret_cast<float*>(values) + slot * dim;
    for (int32_t i = 0; i < dim; ++i) row[i] = v[i];
  } else {
    int8_t codes[kMostHeadDim];
    auto* scales = reinterpret_cast<float*>(values + kBlockKeys * dim);
    scales[slot] = quantise(k, dim, codes);
    auto* column = reinterpret_cast<int8_t*>(args.record) + slot;
    for (int32_t i = 0; i < dim; ++i) column[i * kBlockKeys] = codes[i];
    scales[kBlockKeys + slot] = quantise(v, dim, reinterpret_cast<int8_t*>(values) + slot * dim);
  }
}

template <omni_dtype cache>
void append_rows(const AttentionAppend* args) {
  for (int32_t i = 0; i < args->rows; ++i) append_slot<cache>(*args, i);
}

// One row of the result: any NaN is stored as 0x7FC00000 or 0x7FC0.
inline void store_row(const float* row, int32_t head_dim, uint16_t type, void* out) {
  if (type == OMNI_DTYPE_F32) {
    for (int32_t i = 0; i < head_dim; ++i) {
      const uint32_t bits = __builtin_bit_cast(uint32_t, row[i]);
      static_cast<uint32_t*>(out)[i] = (bits & kMagnitude) > kInfinity ? kF32NaN : bits;
    }
  } else {
    for (int32_t i = 0; i < head_dim; ++i) static_cast<uint16_t*>(out)[i] = static_cast<uint16_t>(rounded_to_bf16(row[i]) >> 16);
  }
}

}  // namespace
}  // namespace okl
