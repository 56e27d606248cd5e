// SPDX-License-Identifier: Apache-2.0
#include "kernels/fast/fast_prepare.h"

#include <algorithm>
#include <cstring>

#include "kernels/format/bf16.h"

namespace okl {
namespace {

constexpr int kLanes = 16;  // independent chains, so that a compiler may use vectors

// bf16 below 2^-119 in magnitude: exponent field under 8.
constexpr uint16_t kScrubBelow = 8 << 7;

void scrub(uint16_t* x, int64_t count) {
  for (int64_t i = 0; i < count; ++i) x[i] = (x[i] & 0x7FFF) < kScrubBelow ? 0 : x[i];
}

float sum_of(const uint16_t* x, int64_t count) {
  float lanes[kLanes] = {};
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) lanes[lane] += bf16_to_float(x[i + lane]);
  }
  for (; i < count; ++i) lanes[i % kLanes] += bf16_to_float(x[i]);
  for (int half = kLanes / 2; half > 0; half /= 2) {
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

}  // namespace

void prepare_fast_rows(const FastRows& rows, uint32_t first, uint32_t last) {
  const FastConfig& config = *rows.config;
  const omni_linear_args& args = *rows.args;
  const int64_t k = config.k, row_elements = config.row_bytes() / 2, blocks = config.blocks();
  for (int64_t row = first; row < last; ++row) {
    const uint16_t* from = static_cast<const uint16_t*>(args.x) + row * args.ldx;
    uint16_t* to = rows.rows + row * row_elements;
    if (args.k_permutation == nullptr) {
      std::memcpy(to, from, static_cast<size_t>(k) * 2);
    } else {
      for (int64_t i = 0; i < k; ++i) to[i] = from[args.k_permutation[i]];
    }
    std::memset(to + k, 0, static_cast<size_t>(row_elements - k) * 2);
    if (!config.is_w4()) continue;
    scrub(to, k);
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t begin = b * config.block, end = std::min(begin + config.block, k);
      rows.sums[row * blocks + b] = sum_of(to + begin, end - begin);
    }
  }
}

}  // namespace okl
