// SPDX-License-Identifier: Apache-2.0
// The lane functions of one tier behind plain functions, for tests.
#pragma once

#include <cstdint>

namespace okl::test {

struct LanesProbe {
  // Of sixteen values each.
  void (*exp)(const float* x, float* y);
  void (*sigmoid)(const float* x, float* y);
  void (*silu)(const float* x, float* y);
  void (*phi)(const float* x, float* y);
  // Stores of sixteen and of twice sixteen values, and back.
  void (*store_bf16)(const float* x, uint16_t* y);
  void (*store_bf16_split)(const float* even, const float* odd, uint16_t* y);
  void (*round_to_bf16)(const float* x, float* y);
  void (*store_s8_split)(const float* even, const float* odd, int8_t* y);
};

extern const LanesProbe lanes_probe_portable, lanes_probe_avx2, lanes_probe_avx512, lanes_probe_avx512bf16;

}  // namespace okl::test
