// SPDX-License-Identifier: Apache-2.0
// Compiled with -mavx512f.
#include <immintrin.h>

#include "bench/arms/read_loops.h"

namespace omnibench {
namespace {

// One chain of ORs for each of four loads keeps the loop bound by loads (two a cycle), not by the folding.
template <int kStreams, bool kPrefetch>
__m512i read_streams(const char* at, size_t stride, size_t lines, int prefetch) {
  __m512i sum[4] = {_mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512(), _mm512_setzero_si512()};
  for (size_t line = 0; line + 8 <= lines; line += 8, at += 512) {
    for (int s = 0; s < kStreams; ++s) {
      const char* from = at + s * stride;
      if (kPrefetch) {
        for (int i = 0; i < 8; ++i) _mm_prefetch(from + prefetch + 64 * i, _MM_HINT_T0);
      }
      for (int i = 0; i < 8; ++i) sum[i & 3] = _mm512_or_si512(sum[i & 3], _mm512_load_si512(from + 64 * i));
    }
  }
  for (size_t line = lines / 8 * 8; line < lines; ++line, at += 64) {
    for (int s = 0; s < kStreams; ++s) sum[0] = _mm512_or_si512(sum[0], _mm512_load_si512(at + s * stride));
  }
  return _mm512_or_si512(_mm512_or_si512(sum[0], sum[1]), _mm512_or_si512(sum[2], sum[3]));
}

template <int kStreams>
__m512i pick(const char* at, size_t stride, size_t lines, int prefetch) {
  return prefetch > 0 ? read_streams<kStreams, true>(at, stride, lines, prefetch)
                      : read_streams<kStreams, false>(at, stride, lines, prefetch);
}

}  // namespace

uint64_t read_avx512(const uint8_t* data, size_t bytes, int streams, int prefetch) {
  const auto start = reinterpret_cast<uintptr_t>(data) & ~uintptr_t{63};
  const size_t lines = (reinterpret_cast<uintptr_t>(data) + bytes - start) / 64;
  const char* at = reinterpret_cast<const char*>(start);
  const size_t part = lines / static_cast<size_t>(streams);
  __m512i sum;
  if (streams == 4) {
    sum = pick<4>(at, part * 64, part, prefetch);
  } else if (streams == 2) {
    sum = pick<2>(at, part * 64, part, prefetch);
  } else {
    sum = pick<1>(at, 0, part, prefetch);
  }
  const size_t done = part * static_cast<size_t>(streams);
  sum = _mm512_or_si512(sum, pick<1>(at + done * 64, 0, lines - done, 0));
  uint64_t words[8];
  _mm512_storeu_si512(words, sum);
  return words[0] | words[1] | words[2] | words[3] | words[4] | words[5] | words[6] | words[7];
}

}  // namespace omnibench
