// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/quantiser.h"

#include <algorithm>
#include <atomic>
#include <cmath>

#include "reference/core/error.h"
#include "reference/core/half.h"
#include "reference/core/parallel.h"
#include "reference/pack/scale_search.h"

namespace ref {
namespace {

// Beyond this no range of a group can be formed in fp32, and no model means it.
constexpr float kMostWeight = 1e30F;

int64_t group_size(int64_t group, int64_t k) { return group <= 0 ? k : std::min(group, k); }

// Throws Error naming the first weight that is NaN, infinite or absurd.
void check_weights(const float* w, int64_t rows, int64_t k, int64_t ld, const omni_parallel* parallel) {
  std::atomic<int64_t> bad_row{rows};
  parallel_for(parallel, rows, [&](int64_t row) {
    bool good = true;
    for (int64_t i = 0; i < k; ++i) good &= std::fabs(w[row * ld + i]) < kMostWeight;
    for (int64_t seen = bad_row; !good && row < seen;) {
      if (bad_row.compare_exchange_weak(seen, row)) break;
    }
  });
  if (bad_row == rows) return;
  const float* row = w + bad_row * ld;
  const auto column = std::find_if(row, row + k, [](float value) { return !(std::fabs(value) < kMostWeight); }) - row;
  throw Error("weight [" + std::to_string(bad_row) + ", " + std::to_string(column) + "] is " + std::to_string(row[column]) +
              ", which cannot be quantised");
}

void quantise_row(const float* w, int64_t k, int64_t group, bool symmetric, Quantiser quantiser, const float* importance,
                  uint8_t* codes, float* scales, uint8_t* zeros) {
  thread_local WeightGroup weights;
  for (int64_t begin = 0; begin < k; begin += group) {
    const int64_t count = std::min(group, k - begin);
    GroupScale scale;
    if (quantiser == Quantiser::kNearest) {
      scale = nearest_scale(w + begin, count, symmetric);
    } else {
      weights.assign(w + begin, importance == nullptr ? nullptr : importance + begin, count);
      scale = search_scale(weights, symmetric);
    }
    for (int64_t i = begin; i < begin + count; ++i) codes[i] = code_of(w[i], scale);
    scales[begin / group] = scale.scale;
    zeros[begin / group] = static_cast<uint8_t>(scale.zero);
  }
}

}  // namespace

void quantise_rows(const float* w, int64_t rows, int64_t k, int64_t ld, int64_t group, bool symmetric, Quantiser quantiser,
                   std::span<const float> importance, const QuantisedRows& out, const omni_parallel* parallel) {
  if (!importance.empty() && static_cast<int64_t>(importance.size()) != k) {
    throw Error("importance of " + std::to_string(importance.size()) + " inputs for a matrix of " + std::to_string(k));
  }
  check_weights(w, rows, k, ld, parallel);
  const int64_t size = group_size(group, k), groups = (k + size - 1) / size;
  parallel_for(parallel, rows, [&](int64_t row) {
    quantise_row(w + row * ld, k, size, symmetric, quantiser, importance.empty() ? nullptr : importance.data(), out.codes + row * k,
                 out.scales + row * groups, out.zeros + row * groups);
  });
}

void quantise_rows_s8(const float* w, int64_t rows, int64_t k, int64_t ld, int64_t group, bool bf16_scales, int8_t* codes,
                      float* scales, const omni_parallel* parallel) {
  check_weights(w, rows, k, ld, parallel);
  const int64_t size = group_size(group, k), groups = (k + size - 1) / size;
  parallel_for(parallel, rows, [&](int64_t row) {
    for (int64_t begin = 0; begin < k; begin += size) {
      const int64_t end = std::min(begin + size, k);
      float most = 0;
      for (int64_t i = begin; i < end; ++i) most = std::max(most, std::fabs(w[row * ld + i]));
      float scale = most / 127;
      if (bf16_scales) scale = widen_bf16(round_bf16(scale));
      // A group of nothing, or of what vanishes in a quotient.
      if (scale < 0x1p-120F) scale = 1;
      for (int64_t i = begin; i < end; ++i) {
        codes[row * k + i] = static_cast<int8_t>(std::clamp(std::nearbyint(w[row * ld + i] / scale), -127.0F, 127.0F));
      }
      scales[row * groups + begin / size] = scale;
    }
  });
}

}  // namespace ref
