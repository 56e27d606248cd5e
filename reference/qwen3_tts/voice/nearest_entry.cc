// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/voice/nearest_entry.h"

#include <algorithm>

#include "reference/core/parallel.h"

namespace ref::tts {
namespace {

// Rows that share one pass over a codebook: their distances stay in the first-level cache.
constexpr int64_t kRows = 4;
constexpr int64_t kEntries = 512;

// [dim][size], so that entries lie side by side for vectors.
std::vector<float> transposed(const float* book, int64_t size, int64_t dim) {
  std::vector<float> out(static_cast<size_t>(size * dim));
  for (int64_t entry = 0; entry < size; ++entry) {
    for (int64_t c = 0; c < dim; ++c) out[static_cast<size_t>(c * size + entry)] = book[entry * dim + c];
  }
  return out;
}

struct Best {
  float distance;
  int64_t entry;
};

// The nearest of `count` entries from `first` on, for one row.
void search(const float* columns, int64_t size, int64_t dim, int64_t first, int64_t count, const float* row, Best* best) {
  float distance[kEntries] = {};
  for (int64_t c = 0; c < dim; ++c) {
    const float* entries = columns + c * size + first;
    const float x = row[c];
    for (int64_t i = 0; i < count; ++i) {
      const float difference = x - entries[i];
      distance[i] += difference * difference;
    }
  }
  for (int64_t i = 0; i < count; ++i) {
    if (best->entry < 0 || distance[i] < best->distance) *best = {distance[i], first + i};
  }
}

}  // namespace

void quantise_rows(const Plain& codebooks, float* x, int64_t rows, int32_t* codes, int64_t ld, const omni_parallel* parallel) {
  const int64_t levels = codebooks.shape[0], size = codebooks.shape[1], dim = codebooks.shape[2];
  for (int64_t level = 0; level < levels; ++level) {
    const float* book = reinterpret_cast<const float*>(codebooks.bytes.data()) + level * size * dim;
    const std::vector<float> columns = transposed(book, size, dim);
    parallel_for(parallel, (rows + kRows - 1) / kRows, [&](int64_t block) {
      const int64_t begin = block * kRows, end = std::min(rows, begin + kRows);
      Best best[kRows];
      std::fill(best, best + kRows, Best{0, -1});
      for (int64_t first = 0; first < size; first += kEntries) {
        const int64_t count = std::min(kEntries, size - first);
        for (int64_t t = begin; t < end; ++t) search(columns.data(), size, dim, first, count, x + t * dim, &best[t - begin]);
      }
      for (int64_t t = begin; t < end; ++t) {
        const int64_t entry = best[t - begin].entry;
        codes[t * ld + level] = static_cast<int32_t>(entry);
        for (int64_t c = 0; c < dim; ++c) x[t * dim + c] -= book[entry * dim + c];
      }
    });
  }
}

}  // namespace ref::tts
