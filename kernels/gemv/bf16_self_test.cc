// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemv/bf16_self_test.h"

#include <bit>
#include <cmath>
#include <mutex>

#include "kernels/cpu/machine.h"
#include "kernels/cpu/trace.h"
#include "kernels/format/bf16.h"

namespace okl {

void bf16_dot_lanes(const uint32_t* a, const uint32_t* b, float* accumulator);  // bf16_dot_probe.cc

namespace {

constexpr int kLanes = 16;

float expected(uint32_t a, uint32_t b, float d) {
  const auto low = [](uint32_t pair) { return bf16_to_float(static_cast<uint16_t>(pair)); };
  const auto high = [](uint32_t pair) { return bf16_to_float(static_cast<uint16_t>(pair >> 16)); };
  d = std::fma(high(a), high(b), d);
  return std::fma(low(a), low(b), d);
}

bool same(float a, float b) { return (std::isnan(a) && std::isnan(b)) || std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }

bool lanes_agree(Bf16DotFn dot, const uint32_t (&x)[kLanes], const uint32_t (&w)[kLanes], const float (&d)[kLanes]) {
  float result[kLanes];
  for (int i = 0; i < kLanes; ++i) result[i] = d[i];
  dot(x, w, result);
  for (int i = 0; i < kLanes; ++i) {
    if (!same(result[i], expected(x[i], w[i], d[i]))) return false;
  }
  return true;
}

uint64_t next_random(uint64_t& state) {  // splitmix64
  state += 0x9E3779B97F4A7C15;
  uint64_t z = state;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

// Scrubbed x as kernels see it: +0, or at least 2^-119 in magnitude, infinities and NaN included.
constexpr uint16_t kEdges[] = {0x0000, 0x0400, 0x8400, 0x0480, 0x3F80, 0xBF80, 0x3F81, 0x4049,
                               0x7B80, 0xFB80, 0x7F7F, 0xFF7F, 0x7F80, 0xFF80, 0x7FC0, 0x0407};
constexpr uint16_t kWeights[] = {0xC100, 0xC0E0, 0xC0C0, 0xC0A0, 0xC080, 0xC040, 0xC000, 0xBF80,
                                 0x0000, 0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0, 0x40C0, 0x40E0};

}  // namespace

bool bf16_dot_agrees(Bf16DotFn dot) {
  uint32_t x[kLanes], w[kLanes];
  float d[kLanes];
  constexpr uint32_t kSums[] = {0, 0x00800000, 0x80800000, 0x3F800000, 0xBF800001, 0x4B7FFFFF, 0x7F7FFFFF, 0x7F800000};
  for (const uint16_t odd : kEdges) {
    for (const uint16_t even : kEdges) {
      for (const uint32_t sum : kSums) {
        for (int i = 0; i < kLanes; ++i) {
          x[i] = static_cast<uint32_t>(odd) << 16 | even;
          w[i] = static_cast<uint32_t>(kWeights[i]) << 16 | kWeights[(i * 7 + 3) % kLanes];
          d[i] = std::bit_cast<float>(sum);
        }
        if (!lanes_agree(dot, x, w, d)) return false;
      }
    }
  }
  uint64_t state = 1;
  for (int round = 0; round < 4096 / kLanes; ++round) {
    for (int i = 0; i < kLanes; ++i) {
      const uint64_t random = next_random(state);
      const auto element = [&](int shift) {  // |x| in [2^-7, 2^8)
        const uint64_t bits = random >> shift;
        return static_cast<uint32_t>((bits & 1) << 15 | (120 + (bits >> 1 & 15)) << 7 | (bits >> 5 & 127));
      };
      x[i] = element(0) << 16 | element(12);
      w[i] = static_cast<uint32_t>(kWeights[random >> 24 & 15]) << 16 | kWeights[random >> 28 & 15];
      d[i] = static_cast<float>(static_cast<int32_t>(random >> 32)) * 0x1p-28F;
    }
    if (!lanes_agree(dot, x, w, d)) return false;
  }
  return true;
}

void ensure_bf16_dot_tested() {
  static std::once_flag once;
  std::call_once(once, [] {
    if ((hardware_isa() & kIsaAvx512Bf16Tier) != kIsaAvx512Bf16Tier || bf16_dot_agrees(&bf16_dot_lanes)) return;
    set_bf16_dot_demoted(true);
    trace("dispatch: VDPBF16PS of this processor disagrees with the contract: tier avx512bf16 is off");
  });
}

}  // namespace okl
