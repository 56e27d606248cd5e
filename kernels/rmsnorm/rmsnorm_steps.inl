// SPDX-License-Identifier: Apache-2.0
// RMSNorm of one row in every form, for leaf files: codes for class exact, and the choice of the two steps.
#pragma once

#include "kernels/quantize/quantize_row.inl"
#include "kernels/rmsnorm/rmsnorm_row.inl"

namespace okl {
namespace {

// Longer rows compute y twice, once for the largest and once for the codes: there is no room to keep it.
template <typename H, typename W>
[[gnu::noinline]] uint32_t largest_of_chunks(const Chunks<H, W>& chunks) {
  U32 most[4] = {splat_bits(0), splat_bits(0), splat_bits(0), splat_bits(0)};
  for (int64_t i = 0; i < chunks.n; i += kChunk) {
    const Vectors y = scaled<order_of<H, W>()>(chunks.h + i, chunks.weight_at(i), chunks.r, chunks.two_roundings);
    for (int j = 0; j < 4; ++j) most[j] = max(most[j], as_bits(abs(y.v[j])));
  }
  return largest(max(max(most[0], most[1]), max(most[2], most[3])));
}

template <typename H, typename W>
[[gnu::noinline]] void code_chunks(const Chunks<H, W>& chunks, F32 inverse, int8_t* codes) {
  for (int64_t i = 0; i < chunks.n; i += kChunk) {
    Vectors y = scaled<order_of<H, W>()>(chunks.h + i, chunks.weight_at(i), chunks.r, chunks.two_roundings);
    for (int j = 0; j < 4; ++j) {
      if (chunks.codes_from_bf16) y.v[j] = round_finite_to_bf16(y.v[j]);  // a subnormal's code is 0 anyway
      y.v[j] = y.v[j] * inverse;
    }
    store64<order_of<H, W>()>(codes + i, y);
  }
}

// Rows that fit some stack are stored there and quantised.
constexpr int64_t kMostOnStack = 4096;

template <typename H, typename W, typename Y>
[[gnu::noinline]] void scale_on_stack(const RmsnormRow* row) {
  alignas(64) Y y[kMostOnStack];
  RmsnormRow stored = *row;
  stored.y = y;
  scale<H, W, Y>(&stored);
  const QuantizeRow codes = {y, row->n, static_cast<int8_t*>(row->y), row->scale};
  quantize_row<Y>(&codes);
}

template <typename H, typename W>
void scale_to_codes(const RmsnormRow* row) {
  if (row->n <= kMostOnStack) {
    row->config->code_source == OMNI_DTYPE_BF16 ? scale_on_stack<H, W, uint16_t>(row) : scale_on_stack<H, W, float>(row);
    return;
  }
  auto* codes = static_cast<int8_t*>(row->y);
  uint32_t most = 0;
  for_chunks<H, W>(row, [&](const Chunks<H, W>& chunks, int64_t, int64_t) {
    const uint32_t found = largest_of_chunks<H, W>(chunks);
    most = found > most ? found : most;
  });
  // Rounding is monotonic: the largest rounded value is the rounded largest one.
  if (row->config->code_source == OMNI_DTYPE_BF16)
    most = __builtin_bit_cast(uint32_t, first(round_to_bf16(splat_bits_float(most))));
  const RowScale scale = row_scale(most);
  *row->scale = scale.scale;
  if (!scale.finite) {
    __builtin_memset(codes, 0, static_cast<size_t>(row->n));
    return;
  }
  const F32 inverse = splat(scale.inverse);
  for_chunks<H, W>(row, [&](const Chunks<H, W>& chunks, int64_t at, int64_t count) {
    if (count == chunks.n) {
      code_chunks<H, W>(chunks, inverse, codes + at);
      return;
    }
    int8_t last[kChunk];
    code_chunks<H, W>(chunks, inverse, last);
    __builtin_memcpy(codes + at, last, static_cast<size_t>(count));
  });
}

// --- choosing
// ---------------------------------------------------------------------------------------------------------------------

template <typename X>
auto measure_of(uint16_t residual_type) {
  if (residual_type == OMNI_DTYPE_NONE) return measure<X, Nothing>;
  return residual_type == OMNI_DTYPE_F32 ? measure<X, float> : measure<X, uint16_t>;
}

template <typename H, typename W>
auto scale_of(uint16_t y_type) {
  if (y_type == OMNI_DTYPE_S8) return scale_to_codes<H, W>;
  return y_type == OMNI_DTYPE_F32 ? scale<H, W, float> : scale<H, W, uint16_t>;
}

template <typename H>
auto scale_of_weight(const RmsnormConfig& config) {
  if (config.weight_type == OMNI_DTYPE_NONE) return scale_of<H, Nothing>(config.y_type);
  return config.weight_type == OMNI_DTYPE_F32 ? scale_of<H, float>(config.y_type) : scale_of<H, uint16_t>(config.y_type);
}

RmsnormSteps rmsnorm_steps(const RmsnormConfig& config) {
  RmsnormSteps steps;
  steps.measure =
      config.x_type == OMNI_DTYPE_F32 ? measure_of<float>(config.residual_type) : measure_of<uint16_t>(config.residual_type);
  steps.scale = config.h_type() == OMNI_DTYPE_F32 ? scale_of_weight<float>(config) : scale_of_weight<uint16_t>(config);
  return steps;
}

}  // namespace
}  // namespace okl
