// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/weight_check.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <string>

#include "reference/core/error.h"
#include "reference/core/parallel.h"

namespace ref {
namespace {

// Squares of larger ones, weighted and summed up, leave fp32; no model means them.
constexpr float kMostWeight = 1e15F;

}  // namespace

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

}  // namespace ref
