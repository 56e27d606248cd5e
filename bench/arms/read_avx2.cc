// SPDX-License-Identifier: Apache-2.0
// Compiled with -mavx2.
#include <immintrin.h>

#include "bench/arms/read_loops.h"

namespace omnibench {
namespace {

template <int kStreams, bool kPrefetch>
__m256i read_streams(const char* at, size_t stride, size_t lines, int prefetch) {
  __m256i sum[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
  for (size_t line = 0; line + 4 <= lines; line += 4, at += 256) {
    for (int s = 0; s < kStreams; ++s) {
      const char* from = at + s * stride;
      if (kPrefetch) {
        for (int i = 0; i < 4; ++i) _mm_prefetch(from + prefetch + 64 * i, _MM_HINT_T0);
      }
      for (int i = 0; i < 8; ++i) {
        sum[i & 3] = _mm256_or_si256(sum[i & 3], _mm256_load_si256(reinterpret_cast<const __m256i*>(from + 32 * i)));
      }
    }
  }
  for (size_t line = lines / 4 * 4; line < lines; ++line, at += 64) {
    for (int s = 0; s < kStreams; ++s) {
      const auto* from = reinterpret_cast<const __m256i*>(at + s * stride);
      sum[0] = _mm256_or_si256(sum[0], _mm256_load_si256(from));
      sum[1] = _mm256_or_si256(sum[1], _mm256_load_si256(from + 1));
    }
  }
  return _mm256_or_si256(_mm256_or_si256(sum[0], sum[1]), _mm256_or_si256(sum[2], sum[3]));
}

template <int kStreams>
__m256i pick(const char* at, size_t stride, size_t lines, int prefetch) {
  return prefetch > 0 ? read_streams<kStreams, true>(at, stride, lines, prefetch)
                      : read_streams<kStreams, false>(at, stride, lines, prefetch);
}

}  // namespace

uint64_t read_avx2(const uint8_t* data, size_t bytes, int streams, int prefetch) {
  const auto start = reinterpret_cast<uintptr_t>(data) & ~uintptr_t{63};
  const size_t lines = (reinterpret_cast<uintptr_t>(data) + bytes - start) / 64;
  const char* at = reinterpret_cast<const char*>(start);
  const size_t part = lines / static_cast<size_t>(streams);
  __m256i sum;
  if (streams == 4) {
    sum = pick<4>(at, part * 64, part, prefetch);
  } else if (streams == 2) {
    sum = pick<2>(at, part * 64, part, prefetch);
  } else {
    sum = pick<1>(at, 0, part, prefetch);
  }
  const size_t done = part * static_cast<size_t>(streams);
  sum = _mm256_or_si256(sum, pick<1>(at + done * 64, 0, lines - done, 0));
  uint64_t words[4];
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(words), sum);
  return words[0] | words[1] | words[2] | words[3];
}

}  // namespace omnibench
