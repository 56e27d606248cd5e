// SPDX-License-Identifier: Apache-2.0
// The gather kernels, compiled for each ISA. Leaf rules: nothing from the standard library, everything in an anonymous namespace.
//
// A row of a packed table is a byte or a dword in every run of 16 to 256 bytes, so that memory decides: 2048 inputs of tg4 touch 64
// KiB, a cache line for each two inputs. What is computed is kept small: a group of tg4 has 16 values, looked up from then on.
#include "kernels/format/bf16.h"
#include "kernels/gather/gather_kernel.h"

namespace okl {
namespace {

constexpr int64_t kAhead = 24;  // strides that a row is asked for ahead of its use

template <bool kWide>
struct OutBits {
  using type = uint32_t;
};
template <>
struct OutBits<false> {
  using type = uint16_t;
};

template <bool kWideOut>
inline typename OutBits<kWideOut>::type stored(float value) {
  if constexpr (kWideOut) return value != value ? kF32NaN : __builtin_bit_cast(uint32_t, value);
  return static_cast<typename OutBits<kWideOut>::type>(bf16_round_ieee(value));
}

template <bool kWide>
inline float load_real(const uint8_t* data, int64_t index) {
  if constexpr (kWide) return reinterpret_cast<const float*>(data)[index];
  return bf16_to_float(reinterpret_cast<const uint16_t*>(data)[index]);
}

// fma(code - 8, s, z) with one rounding. Without the instruction, bf16 scales go through double: the exact sum either fits there or
// the smaller term lies so far below the larger that fp32 gives the larger in any case.
template <bool kWideScale>
inline float tg4_weight(int code, float scale, float zero) {
  const auto step = static_cast<float>(code - 8);
#if !defined(__FP_FAST_FMAF)
  if constexpr (!kWideScale) {
    return static_cast<float>(static_cast<double>(step) * static_cast<double>(scale) + static_cast<double>(zero));
  }
#endif
  return __builtin_fmaf(step, scale, zero);
}

template <bool kWideScale, bool kWideOut>
void gather_tg4(const GatherRow* row) {
  using Bits = typename OutBits<kWideOut>::type;
  auto* const out = static_cast<Bits*>(row->out);
  const uint8_t* data = row->data;
  const uint8_t* scales = row->scales;
  for (int64_t first = 0; first < row->k; first += row->group, scales += row->scale_stride) {
    const float scale = load_real<kWideScale>(scales, 0), zero = load_real<kWideScale>(scales, 1);
    Bits values[16];
    for (int code = 0; code < 16; ++code)
      values[code] = stored<kWideOut>(tg4_weight<kWideScale>(code, scale, zero) * row->multiplier);
    const int64_t end = row->k - first < row->group ? row->k : first + row->group;
    for (int64_t k = first; k < end; ++k, data += row->stride) {
      __builtin_prefetch(data + kAhead * row->stride);
      out[k] = values[*data >> row->shift & 15];
    }
  }
}

template <bool kWideScale, bool kWideOut>
void gather_w8s(const GatherRow* row) {
  auto* const out = static_cast<typename OutBits<kWideOut>::type*>(row->out);
  const uint8_t* scales = row->scales;
  for (int64_t first = 0; first < row->k; first += row->group, scales += row->scale_stride) {
    const float scale = load_real<kWideScale>(scales, 0);
    const int64_t end = row->k - first < row->group ? row->k : first + row->group;
    for (int64_t k = first; k < end; k += 4) {
      const auto* const codes = reinterpret_cast<const int8_t*>(row->data + k / 4 * row->stride);
      __builtin_prefetch(codes + kAhead * row->stride);
      const int64_t count = end - k < 4 ? end - k : 4;
      for (int64_t i = 0; i < count; ++i) {
        const float weight = static_cast<float>(codes[i]) * scale;
        out[k + i] = stored<kWideOut>(weight * row->multiplier);
      }
    }
  }
}

template <bool kWideScale, bool kWideOut>
void gather_w16(const GatherRow* row) {
  auto* const out = static_cast<typename OutBits<kWideOut>::type*>(row->out);
  for (int64_t k = 0; k < row->k; ++k) {
    const auto* const pair = reinterpret_cast<const uint16_t*>(row->data + k / 2 * row->stride);
    __builtin_prefetch(pair + kAhead * row->stride / 2);
    out[k] = stored<kWideOut>(bf16_to_float(pair[k % 2]) * row->multiplier);
  }
}

template <bool kWideScale, bool kWideOut>
void gather_w32(const GatherRow* row) {
  auto* const out = static_cast<typename OutBits<kWideOut>::type*>(row->out);
  for (int64_t k = 0; k < row->k; ++k) {
    const auto* const value = reinterpret_cast<const float*>(row->data + k * row->stride);
    __builtin_prefetch(value + kAhead * row->stride / 4);
    out[k] = stored<kWideOut>(*value * row->multiplier);
  }
}

template <bool kWide, bool kWideOut>
void gather_plain(const GatherRow* row) {
  auto* const out = static_cast<typename OutBits<kWideOut>::type*>(row->out);
  for (int64_t k = 0; k < row->k; ++k) out[k] = stored<kWideOut>(load_real<kWide>(row->data, k) * row->multiplier);
}

#define OMNI_GATHER_TYPES(function)                                                                  \
  {                                                                                                  \
    {function<false, false>, function<false, true>}, { function<true, false>, function<true, true> } \
  }
#define OMNI_GATHER_PLAIN(wide)                                                                                    \
  {                                                                                                                \
    {gather_plain<wide, false>, gather_plain<wide, true>}, { gather_plain<wide, false>, gather_plain<wide, true> } \
  }
// In the order of TableKind.
#define OMNI_GATHER_KERNEL                                                                                                        \
  {                                                                                                                               \
    {                                                                                                                             \
      OMNI_GATHER_TYPES(gather_tg4), OMNI_GATHER_TYPES(gather_w8s), OMNI_GATHER_TYPES(gather_w16), OMNI_GATHER_TYPES(gather_w32), \
          OMNI_GATHER_PLAIN(false), OMNI_GATHER_PLAIN(true)                                                                       \
    }                                                                                                                             \
  }

}  // namespace
}  // namespace okl
