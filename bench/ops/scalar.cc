// SPDX-License-Identifier: Apache-2.0
#include "bench/ops/scalar.h"

#include <algorithm>
#include <cmath>

namespace omnibench {
namespace {

/// Inputs nearer to zero than `limit` count as +0.
float scrub(float value, float limit) { return std::fabs(value) < limit ? 0.0F : value; }

float group_class(const Generator& w, const uint16_t* x, int64_t channel) {
  float c = 0;
  for (int64_t k0 = 0, g = 0; k0 < w.k; k0 += w.group, ++g) {
    const int64_t k1 = std::min<int64_t>(w.k, k0 + w.group);
    float d = 0;
    float sum = 0;
    for (int64_t k = k0; k < k1; k += 2) {  // pairs, the odd element first
      if (k + 1 < k1) {
        const float odd = scrub(bf16_to_float(x[k + 1]), 0x1p-119F);
        d = std::fma(odd, static_cast<float>(w.code(channel, k + 1) - 8), d);
        sum = std::fma(odd, 1.0F, sum);
      }
      const float even = scrub(bf16_to_float(x[k]), 0x1p-119F);
      d = std::fma(even, static_cast<float>(w.code(channel, k) - 8), d);
      sum = std::fma(even, 1.0F, sum);
    }
    uint16_t s = 0;
    uint16_t z = 0;
    w.scale_zero(g, channel, &s, &z);
    c = std::fma(bf16_to_float(s), d, c);
    c = std::fma(bf16_to_float(z), sum, c);
  }
  return c;
}

float torch_class(const Generator& w, const uint16_t* x, int64_t channel) {
  float c = 0;
  for (int64_t k = 0; k < w.k; ++k) {
    uint16_t s = 0;
    uint16_t z = 0;
    w.scale_zero(k / w.group, channel, &s, &z);
    const float weight = std::fma(static_cast<float>(w.code(channel, k) - 8), bf16_to_float(s), bf16_to_float(z));
    c = std::fma(bf16_to_float(x[k]), weight, c);
  }
  return c;
}

}  // namespace

float scalar_gemv(const Generator& weights, omni_numerics numerics, const uint16_t* x, int64_t channel) {
  return numerics == OMNI_NUMERICS_TORCH ? torch_class(weights, x, channel) : group_class(weights, x, channel);
}

uint16_t scalar_dequant(const Generator& weights, int64_t channel, int64_t input) {
  uint16_t s = 0;
  uint16_t z = 0;
  weights.scale_zero(input / weights.group, channel, &s, &z);
  return float_to_bf16(std::fma(static_cast<float>(weights.code(channel, input) - 8), bf16_to_float(s), bf16_to_float(z)));
}

float scalar_group(const uint16_t* x, int64_t k, int64_t group, const std::function<float(int64_t)>& weight,
                   const std::function<float(int64_t)>& scale) {
  float c = 0;
  for (int64_t k0 = 0, g = 0; k0 < k; k0 += group, ++g) {
    const int64_t k1 = std::min(k, k0 + group);
    const float d = scalar_dense(
        k1 - k0, true, [&](int64_t i) { return scrub(bf16_to_float(x[k0 + i]), 0x1p-119F); },
        [&](int64_t i) { return weight(k0 + i); });
    c = std::fma(scale(g), d, c);
  }
  return c;
}

QuantizedRow scalar_quantize(const uint16_t* x, int64_t k) {
  float amax = 1e-7F;
  for (int64_t i = 0; i < k; ++i) amax = std::max(amax, std::fabs(bf16_to_float(x[i])));
  QuantizedRow row;
  row.scale = amax / 127.0F;
  const float inverse = 127.0F / amax;
  for (int64_t i = 0; i < k; ++i) row.codes.push_back(static_cast<int8_t>(std::nearbyint(bf16_to_float(x[i]) * inverse)));
  return row;
}

float scalar_exact(const QuantizedRow& row, int64_t block, const std::function<int(int64_t)>& weight,
                   const std::function<float(int64_t)>& scale_at) {
  const auto k = static_cast<int64_t>(row.codes.size());
  float c = 0;
  for (int64_t k0 = 0; k0 < k; k0 += block) {
    int64_t sum = 0;
    for (int64_t i = k0; i < std::min(k, k0 + block); ++i) sum += static_cast<int64_t>(row.codes[i]) * weight(i);
    c = std::fma(static_cast<float>(sum) * row.scale, scale_at(k0), c);
  }
  return c;
}

float scalar_dense(int64_t k, bool pairs, const std::function<float(int64_t)>& x, const std::function<float(int64_t)>& weight) {
  float d = 0;
  for (int64_t i = 0; i < k; i += pairs ? 2 : 1) {
    if (pairs && i + 1 < k) d = std::fma(x(i + 1), weight(i + 1), d);
    d = std::fma(x(i), weight(i), d);
  }
  return d;
}

}  // namespace omnibench
