// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/activation/gelu.inl"
#include "kernels/activation/lanes_probe.h"
#include "kernels/activation/sigmoid.inl"

namespace okl::test {
namespace {

constexpr LanesProbe make_lanes_probe() {
  return {[](const float* x, float* y) { store(y, exp_lanes(load(x))); },
          [](const float* x, float* y) { store(y, sigmoid_lanes(load(x))); },
          [](const float* x, float* y) { store(y, silu_lanes(load(x))); },
          [](const float* x, float* y) { store(y, phi_lanes(load(x))); },
          [](const float* x, uint16_t* y) { store_bf16(y, load(x)); },
          [](const float* even, const float* odd, uint16_t* y) { store_bf16_split(y, load(even), load(odd)); },
          [](const float* x, float* y) { store(y, round_to_bf16(load(x))); },
          [](const float* even, const float* odd, int8_t* y) { store_s8_split(y, load(even), load(odd)); }};
}

}  // namespace
}  // namespace okl::test
