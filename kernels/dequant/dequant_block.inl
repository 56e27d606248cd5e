// SPDX-License-Identifier: Apache-2.0
// The compiled dequantisation: the portable one, and its twins in leaf files, are this text compiled for their ISA. The loops are
// written for the vectoriser: counted, over arrays of 64 channels or 16 inputs.
#include "kernels/dequant/dequant_kernel.h"
#include "kernels/format/bf16.h"
#include "kernels/format/tg4.h"
#include "kernels/repack/byte_transpose.inl"

namespace okl {
namespace {

inline constexpr int64_t kCompiledDequantStep = 16;

template <bool kWide>
inline float load_real(const void* data, int64_t index) {
  if constexpr (kWide) return static_cast<const float*>(data)[index];
  return bf16_to_float(static_cast<const uint16_t*>(data)[index]);
}

// fma(code - 8, s, z) with one rounding, on machines without the instruction, too.
template <bool kWideScale>
inline float weight(int code, float scale, float zero) {
  const float step = static_cast<float>(code - 8);
#if !defined(__FP_FAST_FMAF)
  // bf16 scales: at most 11 and 8 significant bits. Either their sum is exact in double, or the smaller one lies so far below the
  // larger that fp32 gives the larger in any case. A call to fmaf() would cost ten times as much.
  if constexpr (!kWideScale) {
    return static_cast<float>(static_cast<double>(step) * static_cast<double>(scale) + static_cast<double>(zero));
  }
#endif
  return __builtin_fmaf(step, scale, zero);
}

template <bool kWideOut>
inline void store_weight(uint8_t* out, int64_t index, float value) {
  if constexpr (kWideOut) {
    const uint32_t bits = value != value ? kF32NaN : __builtin_bit_cast(uint32_t, value);
    reinterpret_cast<uint32_t*>(out)[index] = bits;
  } else {
    reinterpret_cast<uint16_t*>(out)[index] = bf16_round_ieee(value);
  }
}

template <bool kWideScale, bool kWideOut>
void tile_kn(const DequantTile* tile) {
  float scale[64], zero[64];
  for (int c = 0; c < 64; ++c) {
    scale[c] = load_real<kWideScale>(tile->scales, 2 * c);
    zero[c] = load_real<kWideScale>(tile->scales, 2 * c + 1);
  }
  for (int64_t input = 0; input < tile->inputs; ++input) {
    const uint8_t* codes = tile->codes + input * 32;
    uint8_t* out = tile->out + input * tile->ld_out;
    for (int d = 0; d < 32; ++d) store_weight<kWideOut>(out, d, weight<kWideScale>(codes[d] & 15, scale[d], zero[d]));
    for (int d = 0; d < 32; ++d)
      store_weight<kWideOut>(out, d + 32, weight<kWideScale>(codes[d] >> 4, scale[d + 32], zero[d + 32]));
  }
}

template <bool kWideScale, bool kWideOut>
void tile_nk(const DequantTile* tile) {
  for (int64_t input = 0; input < tile->inputs; input += kCompiledDequantStep) {
    for (int half = 0; half < 32; half += 16) {
      Bytes16 rows[16];
      for (int i = 0; i < 16; ++i) rows[i] = load16(tile->codes + (input + i) * 32 + half);
      transpose_16x16(rows);
      for (int i = 0; i < 16; ++i) {
        uint8_t codes[16];
        store16(codes, rows[i]);
        for (int shift = 0; shift < 8; shift += 4) {
          const int channel = half + i + 8 * shift;  // 32 channels apart
          const float scale = load_real<kWideScale>(tile->scales, 2 * channel);
          const float zero = load_real<kWideScale>(tile->scales, 2 * channel + 1);
          uint8_t* out = tile->out + channel * tile->ld_out;
          for (int j = 0; j < 16; ++j) {
            store_weight<kWideOut>(out, input + j, weight<kWideScale>(codes[j] >> shift & 15, scale, zero));
          }
        }
      }
    }
  }
}

template <bool kWideScale, bool kWideOut, bool kByInput>
void edge_tile(const DequantEdge* edge) {
  const int64_t run = edge->width / 2;
  for (int64_t c = 0; c < edge->channels; ++c) {
    const int64_t channel = edge->first_channel + c;
    const tg4::Position at = tg4::position_in_run(edge->width, channel);
    const float scale = load_real<kWideScale>(edge->scales, 2 * channel);
    const float zero = load_real<kWideScale>(edge->scales, 2 * channel + 1);
    for (int64_t input = 0; input < edge->inputs; ++input) {
      const float value = weight<kWideScale>(edge->codes[input * run + at.byte] >> at.shift & 15, scale, zero);
      if constexpr (kByInput) {
        store_weight<kWideOut>(edge->out + input * edge->ld_out, c, value);
      } else {
        store_weight<kWideOut>(edge->out + c * edge->ld_out, input, value);
      }
    }
  }
}

template <bool kWideScale, bool kWideOut>
DequantCode code_for_order(const DequantConfig& config) {
  if (config.order == OMNI_ORDER_KN) return {tile_kn<kWideScale, kWideOut>, edge_tile<kWideScale, kWideOut, true>};
  return {tile_nk<kWideScale, kWideOut>, edge_tile<kWideScale, kWideOut, false>};
}

DequantCode dequant_code(const DequantConfig& config) {
  const bool wide_out = config.out_type == OMNI_DTYPE_F32;
  if (config.scale_type == OMNI_DTYPE_F32)
    return wide_out ? code_for_order<true, true>(config) : code_for_order<true, false>(config);
  return wide_out ? code_for_order<false, true>(config) : code_for_order<false, false>(config);
}

}  // namespace
}  // namespace okl
