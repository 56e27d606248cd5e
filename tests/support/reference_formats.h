// SPDX-License-Identifier: Apache-2.0
// Every code format, whole matrix at once, written as its definition says and without any code of the library.
#pragma once

#include <cstdint>
#include <cstring>
#include <vector>

#include "omni/layout.h"
#include "tests/support/synthetic.h"

namespace okl::test {

struct Codes {
  int64_t n, k;
  std::vector<uint8_t> values;  // [n][k]

  uint8_t at(int64_t channel, int64_t input) const { return values[static_cast<size_t>(channel * k + input)]; }
  // Code 8 beyond the matrix.
  uint8_t padded(int64_t channel, int64_t input) const { return channel < n && input < k ? at(channel, input) : 8; }

  static Codes synthetic(int64_t n, int64_t k, uint64_t seed) {
    Codes codes{n, k, std::vector<uint8_t>(static_cast<size_t>(n * k))};
    for (int64_t i = 0; i < n * k; ++i) codes.values[static_cast<size_t>(i)] = synthetic_code(seed, 1, i, 0);
    return codes;
  }
  Codes permuted(const std::vector<int32_t>& inputs) const {
    Codes result = *this;
    for (int64_t c = 0; c < n; ++c) {
      for (int64_t i = 0; i < k; ++i) result.values[static_cast<size_t>(c * k + i)] = at(c, inputs[static_cast<size_t>(i)]);
    }
    return result;
  }
};

inline std::vector<uint8_t> pack_blocks(const Codes& codes, int64_t block, bool split, int64_t stored_k) {
  std::vector<uint8_t> bytes;
  const int64_t padded_n = (codes.n + 15) / 16 * 16;
  bytes.reserve(static_cast<size_t>(padded_n * stored_k / 2));
  for (int64_t first = 0; first < padded_n; first += block) {
    const int64_t width = padded_n - first < block ? padded_n - first : block;
    for (int64_t k = 0; k < stored_k; ++k) {
      for (int64_t j = 0; j < width / 2; ++j) {
        const bool halves = split && width == block;
        const int64_t low = first + (halves ? j : 2 * j), high = first + (halves ? j + width / 2 : 2 * j + 1);
        bytes.push_back(static_cast<uint8_t>(codes.padded(low, k) | codes.padded(high, k) << 4));
      }
    }
  }
  return bytes;
}

// Words [rows][columns] of 8 nibbles; `nibble(row, column, i)` says which.
template <typename Nibble>
std::vector<uint8_t> pack_words(int64_t rows, int64_t columns, const Nibble& nibble) {
  std::vector<uint8_t> bytes;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < columns; ++c) {
      uint32_t word = 0;
      for (int i = 0; i < 8; ++i) word |= static_cast<uint32_t>(nibble(r, c, i)) << 4 * i;
      for (int b = 0; b < 4; ++b) bytes.push_back(static_cast<uint8_t>(word >> 8 * b));
    }
  }
  return bytes;
}

// [N/64][K/4][2][64]; a tail of up to 32 channels has one register.
inline std::vector<uint8_t> pack_w4s(const Codes& codes) {
  const int64_t padded_n = (codes.n + 31) / 32 * 32, padded_k = (codes.k + 31) / 32 * 32;
  std::vector<uint8_t> bytes;
  for (int64_t block = 0; block < padded_n; block += 64) {
    for (int64_t k = 0; k < padded_k; k += 4) {
      for (int64_t h = block; h < block + 64 && h < padded_n; h += 32) {
        for (int64_t c = 0; c < 16; ++c) {
          for (int64_t i = 0; i < 4; ++i) {
            bytes.push_back(static_cast<uint8_t>(codes.padded(h + c, k + i) | codes.padded(h + 16 + c, k + i) << 4));
          }
        }
      }
    }
  }
  return bytes;
}

// [N/64][K/4][4][64] from int8 [n][k]; a tail has the registers that it needs, and padding is 0.
inline std::vector<uint8_t> pack_w8s(const Codes& weights) {
  const int64_t padded_n = (weights.n + 15) / 16 * 16, padded_k = (weights.k + 31) / 32 * 32;
  std::vector<uint8_t> bytes;
  for (int64_t block = 0; block < padded_n; block += 64) {
    for (int64_t k = 0; k < padded_k; k += 4) {
      for (int64_t c = block; c < block + 64 && c < padded_n; ++c) {
        for (int64_t i = k; i < k + 4; ++i) bytes.push_back(c < weights.n && i < weights.k ? weights.at(c, i) : 0);
      }
    }
  }
  return bytes;
}

inline std::vector<uint8_t> reference_pack(omni_format format, const Codes& codes) {
  const int64_t n = codes.n, k = codes.k, half = (k + 1) / 2;
  std::vector<uint8_t> bytes;
  switch (format) {
    case OMNI_FORMAT_TG4:
      return pack_blocks(codes, 64, true, (k + 31) / 32 * 32);
    case OMNI_FORMAT_W4S:
      return pack_w4s(codes);
    case OMNI_FORMAT_W8S:
      return pack_w8s(codes);
    case OMNI_FORMAT_CODES_S8:
      return codes.values;
    case OMNI_FORMAT_TORCH_AVX2:
      return pack_blocks(codes, 32, true, k);
    case OMNI_FORMAT_TORCH_DEFAULT:
      return pack_blocks(codes, 32, false, k);
    case OMNI_FORMAT_CODES_U8:
      return codes.values;
    case OMNI_FORMAT_CODES_I32:
      for (const uint8_t code : codes.values) bytes.insert(bytes.end(), {code, 0, 0, 0});
      return bytes;
    case OMNI_FORMAT_ROW_PAIRS:
    case OMNI_FORMAT_ROW_HALVES:
      for (int64_t c = 0; c < n; ++c) {
        for (int64_t j = 0; j < half; ++j) {
          const bool pairs = format == OMNI_FORMAT_ROW_PAIRS;
          bytes.push_back(
              static_cast<uint8_t>(codes.padded(c, pairs ? 2 * j : j) | codes.padded(c, pairs ? 2 * j + 1 : j + half) << 4));
        }
      }
      return bytes;
    case OMNI_FORMAT_GPTQ:
      return pack_words((k + 7) / 8, n, [&](int64_t r, int64_t c, int i) { return codes.padded(c, 8 * r + i); });
    case OMNI_FORMAT_AWQ: {
      static constexpr int kOrder[8] = {0, 2, 4, 6, 1, 3, 5, 7};
      return pack_words(k, (n + 7) / 8, [&](int64_t r, int64_t c, int i) { return codes.padded(8 * c + kOrder[i], r); });
    }
    case OMNI_FORMAT_CT_PACKED:
      return pack_words(n, (k + 7) / 8, [&](int64_t r, int64_t c, int i) { return codes.padded(r, 8 * c + i); });
    default:
      return bytes;
  }
}

inline constexpr omni_format kSources[] = {OMNI_FORMAT_TG4,           OMNI_FORMAT_W4S,        OMNI_FORMAT_TORCH_AVX2,
                                           OMNI_FORMAT_TORCH_DEFAULT, OMNI_FORMAT_CODES_U8,   OMNI_FORMAT_CODES_I32,
                                           OMNI_FORMAT_ROW_PAIRS,     OMNI_FORMAT_ROW_HALVES, OMNI_FORMAT_GPTQ,
                                           OMNI_FORMAT_AWQ,           OMNI_FORMAT_CT_PACKED};
inline constexpr omni_format kDestinations[] = {OMNI_FORMAT_TG4,           OMNI_FORMAT_W4S,       OMNI_FORMAT_TORCH_AVX2,
                                                OMNI_FORMAT_TORCH_DEFAULT, OMNI_FORMAT_CODES_U8,  OMNI_FORMAT_CODES_I32,
                                                OMNI_FORMAT_ROW_PAIRS,     OMNI_FORMAT_ROW_HALVES};

}  // namespace okl::test
