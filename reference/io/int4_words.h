// SPDX-License-Identifier: Apache-2.0
// Elements of checkpoint tensors and the nibbles in their words. Tensors of a safetensors file may lie at any address.
#pragma once

#include <cstdint>
#include <cstring>

#include "reference/core/half.h"
#include "reference/io/linear_source.h"

namespace ref {

template <typename T>
T load(const TensorView& view, int64_t index) {
  T value;
  std::memcpy(&value, view.bytes().data() + static_cast<size_t>(index) * sizeof(T), sizeof(T));
  return value;
}

// Element of a BF16, F16 or F32 tensor, widened exactly.
inline float load_float(const TensorView& view, int64_t index) {
  if (view.dtype() == "F32") return load<float>(view, index);
  const auto half = load<uint16_t>(view, index);
  return view.dtype() == "BF16" ? widen_bf16(half) : widen_f16(half);
}

inline int nibble(uint32_t word, int64_t index) { return static_cast<int>(word >> (4 * index) & 15u); }

// AWQ's nibble of channel 8c + i.
constexpr int kAwqNibble[8] = {0, 4, 1, 5, 2, 6, 3, 7};

// 0..15; of GPTQ v1, whose stored 15 is a true 16, up to 16.
inline int zero_point(const LinearSource& source, int64_t group, int64_t channel) {
  const int64_t words = (source.n + 7) / 8, c = channel / 8, i = channel % 8;
  switch (source.zeros_kind) {
    case OMNI_ZEROS_GPTQ_V1:
      return nibble(load<uint32_t>(*source.zeros, group * words + c), i) + 1;
    case OMNI_ZEROS_GPTQ_V2:
      return nibble(load<uint32_t>(*source.zeros, group * words + c), i);
    case OMNI_ZEROS_AWQ:
      return nibble(load<uint32_t>(*source.zeros, group * words + c), kAwqNibble[i]);
    case OMNI_ZEROS_CT_PACKED:
      return nibble(load<uint32_t>(*source.zeros, c * source.groups() + group), i);
    default:
      return 8;
  }
}

inline float scale_of(const LinearSource& source, int64_t group, int64_t channel) {
  return load_float(*source.scales, source.scales_by_channel ? channel * source.groups() + group : group * source.n + channel);
}

// Of linear_rows.cc, which serves every kind of source.
void read_convolution_rows(const LinearSource& source, int64_t n0, int64_t n1, float* out);
void read_transposed_rows(const LinearSource& source, int64_t n0, int64_t n1, float* out);

}  // namespace ref
