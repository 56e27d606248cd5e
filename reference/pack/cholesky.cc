// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/cholesky.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "reference/core/error.h"
#include "reference/core/parallel.h"
#include "reference/pack/dense_product.h"
#include "reference/pack/vector_clones.h"

namespace ref {
namespace {

constexpr int64_t kPanel = 128, kColumns = 512, kSolveColumns = 256;

// y -= factor * x.
REF_VECTOR_CLONES void subtract(const float* x, float factor, int64_t count, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] -= factor * x[i];
}
REF_VECTOR_CLONES void scale(float factor, int64_t count, float* y) {
  for (int64_t i = 0; i < count; ++i) y[i] *= factor;
}

// Rows [begin, end) of an upper factor, their own columns.
void factorise_diagonal(float* h, int64_t k, int64_t begin, int64_t end) {
  for (int64_t r = begin; r < end; ++r) {
    float* row = h + r * k;
    if (!(row[r] > 0) || !std::isfinite(row[r])) {
      throw Error("statistics: moments are not positive definite at input " + std::to_string(k - 1 - r));
    }
    row[r] = std::sqrt(row[r]);
    scale(1 / row[r], end - r - 1, row + r + 1);
    for (int64_t below = r + 1; below < end; ++below) subtract(row + below, row[below], end - below, h + below * k + below);
  }
}

// The same rows right of them.
void solve_panel(float* h, int64_t k, int64_t begin, int64_t end, const omni_parallel* parallel) {
  parallel_for(parallel, (k - end + kSolveColumns - 1) / kSolveColumns, [&](int64_t chunk) {
    const int64_t c0 = end + chunk * kSolveColumns, count = std::min(kSolveColumns, k - c0);
    for (int64_t r = begin; r < end; ++r) {
      float* row = h + r * k;
      for (int64_t above = begin; above < r; ++above) subtract(h + above * k + c0, h[above * k + r], count, row + c0);
      scale(1 / row[r], count, row + c0);
    }
  });
}

// What is left of the moments below, upper triangle: - panel^T panel.
void update_rest(float* h, int64_t k, int64_t begin, int64_t end, const omni_parallel* parallel) {
  const int64_t rest = k - end, depth = end - begin;
  std::vector<float> plain(static_cast<size_t>(rest * depth)), negative(plain.size());
  transpose(h + begin * k + end, depth, rest, k, 1, plain.data(), parallel);
  transpose(h + begin * k + end, depth, rest, k, -1, negative.data(), parallel);
  for (int64_t c0 = 0; c0 < rest; c0 += kColumns) {
    const int64_t c1 = std::min(rest, c0 + kColumns);
    add_product({plain.data(), c1, depth}, {negative.data() + c0 * depth, c1 - c0, depth}, depth, h + end * k + end + c0, k,
                parallel);
  }
}

// Element (i, j) to (k - 1 - i, k - 1 - j).
void turn(float* h, int64_t k) { std::reverse(h, h + k * k); }

void mirror_upper(float* h, int64_t k, const omni_parallel* parallel) {
  constexpr int64_t kTile = 32;
  parallel_for(parallel, (k + kTile - 1) / kTile, [&](int64_t tile) {
    for (int64_t i0 = 0; i0 <= tile * kTile; i0 += kTile) {
      for (int64_t j = tile * kTile; j < std::min(k, (tile + 1) * kTile); ++j) {
        for (int64_t i = i0; i < std::min(j, i0 + kTile); ++i) h[j * k + i] = h[i * k + j];
      }
    }
  });
}

}  // namespace

void factorise_from_below(float* h, int64_t k, const omni_parallel* parallel) {
  mirror_upper(h, k, parallel);
  turn(h, k);
  for (int64_t begin = 0; begin < k; begin += kPanel) {
    const int64_t end = std::min(k, begin + kPanel);
    factorise_diagonal(h, k, begin, end);
    if (end == k) break;
    solve_panel(h, k, begin, end, parallel);
    update_rest(h, k, begin, end, parallel);
  }
  for (int64_t r = 1; r < k; ++r) std::fill(h + r * k, h + r * k + r, 0.0F);
  turn(h, k);
}

}  // namespace ref
