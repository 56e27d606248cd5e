// SPDX-License-Identifier: Apache-2.0
// Rows of a linear layer, from whatever form the checkpoint has them in.
#include <algorithm>

#include "reference/io/int4_words.h"
#include "reference/io/linear_source.h"

namespace ref {
namespace {

// int32 [ceil(K/8)][N], nibble i of word r: input 8r + i.
void codes_of_gptq(const LinearSource& source, int64_t n0, int64_t n1, uint8_t* codes) {
  for (int64_t k = 0; k < source.k; k += 8) {
    const int64_t inputs = std::min<int64_t>(8, source.k - k);
    for (int64_t n = n0; n < n1; ++n) {
      const auto word = load<uint32_t>(*source.codes, k / 8 * source.n + n);
      uint8_t* out = codes + (n - n0) * source.k + k;
      for (int64_t i = 0; i < inputs; ++i) out[i] = static_cast<uint8_t>(nibble(word, i));
    }
  }
}

// int32 [K][ceil(N/8)], channels of a word in AWQ's order.
void codes_of_awq(const LinearSource& source, int64_t n0, int64_t n1, uint8_t* codes) {
  const int64_t words = (source.n + 7) / 8;
  for (int64_t k = 0; k < source.k; ++k) {
    for (int64_t n = n0; n < n1; ++n) {
      const auto word = load<uint32_t>(*source.codes, k * words + n / 8);
      codes[(n - n0) * source.k + k] = static_cast<uint8_t>(nibble(word, kAwqNibble[n % 8]));
    }
  }
}

// int32 [N][ceil(K/8)], nibble i of word c: input 8c + i. A row ends on a word, so pad nibbles may follow it.
void codes_of_compressed_tensors(const LinearSource& source, int64_t n0, int64_t n1, uint8_t* codes) {
  const int64_t words = (source.k + 7) / 8;
  for (int64_t n = n0; n < n1; ++n) {
    for (int64_t k = 0; k < source.k; ++k) {
      const auto word = load<uint32_t>(*source.codes, n * words + k / 8);
      *codes++ = static_cast<uint8_t>(nibble(word, k % 8));
    }
  }
}

void rows_of_dense(const LinearSource& source, int64_t n0, int64_t n1, float* out) {
  const int64_t first = n0 * source.k, count = (n1 - n0) * source.k;
  if (source.dense->dtype() == "F32") {
    for (int64_t i = 0; i < count; ++i) out[i] = load<float>(*source.dense, first + i);
  } else if (source.dense->dtype() == "BF16") {
    for (int64_t i = 0; i < count; ++i) out[i] = widen_bf16(load<uint16_t>(*source.dense, first + i));
  } else {
    for (int64_t i = 0; i < count; ++i) out[i] = widen_f16(load<uint16_t>(*source.dense, first + i));
  }
}

void dequantise_row(const LinearSource& source, int64_t n, const uint8_t* codes, float* out) {
  std::vector<float> scales(static_cast<size_t>(source.groups()));
  std::vector<int> zeros(scales.size());
  for (int64_t g = 0; g < source.groups(); ++g) {
    scales[static_cast<size_t>(g)] = scale_of(source, g, n);
    zeros[static_cast<size_t>(g)] = zero_point(source, g, n);
  }
  for (int64_t k = 0; k < source.k; ++k) {
    const auto g = static_cast<size_t>(source.g_idx.empty() ? k / source.group : source.g_idx[static_cast<size_t>(k)]);
    out[k] = static_cast<float>(codes[k] - zeros[g]) * scales[g];
  }
}

}  // namespace

void read_codes(const LinearSource& source, int64_t n0, int64_t n1, uint8_t* codes) {
  switch (source.codes_format) {
    case OMNI_FORMAT_GPTQ:
      return codes_of_gptq(source, n0, n1, codes);
    case OMNI_FORMAT_AWQ:
      return codes_of_awq(source, n0, n1, codes);
    default:
      return codes_of_compressed_tensors(source, n0, n1, codes);
  }
}

void read_scales(const LinearSource& source, std::vector<float>* scales, std::vector<uint8_t>* zeros) {
  scales->clear();
  zeros->clear();
  for (int64_t n = 0; n < source.n; ++n) {
    for (int64_t g = 0; g < source.groups(); ++g) {
      scales->push_back(scale_of(source, g, n));
      zeros->push_back(static_cast<uint8_t>(zero_point(source, g, n)));
    }
  }
}

void read_rows(const LinearSource& source, int64_t n0, int64_t n1, float* out) {
  if (source.order == RowOrder::kConvolution) return read_convolution_rows(source, n0, n1, out);
  if (source.order == RowOrder::kTransposed) return read_transposed_rows(source, n0, n1, out);
  if (source.dense != nullptr) return rows_of_dense(source, n0, n1, out);
  // A few rows at a time, so that the codes stay in the cache. GPTQ and AWQ interleave rows: eight make whole words.
  constexpr int64_t kRows = 16;
  std::vector<uint8_t> codes(static_cast<size_t>(std::min(kRows, n1 - n0) * source.k));
  for (int64_t n = n0; n < n1; n += kRows) {
    const int64_t end = std::min(n + kRows, n1);
    read_codes(source, n, end, codes.data());
    for (int64_t row = n; row < end; ++row) {
      dequantise_row(source, row, codes.data() + (row - n) * source.k, out + (row - n0) * source.k);
    }
  }
}

}  // namespace ref
