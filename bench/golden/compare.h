// SPDX-License-Identifier: Apache-2.0
// Bitwise comparison of arrays, and the words for the first element that differs.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include "bench/golden/record.h"

namespace omnibench {

/// Rows of elements of 1, 2 or 4 bytes as they are stored; row i is compared with row i % rows of the golden data.
struct GoldenRows {
  const std::byte* data = nullptr;
  int64_t rows = 0, width = 0;
  int element = 1;

  template <typename T>
  static GoldenRows of(std::span<const T> values, int64_t rows, int64_t width) {
    return {std::as_bytes(values).data(), rows, width, static_cast<int>(sizeof(T))};
  }
  [[nodiscard]] size_t row_bytes() const { return static_cast<size_t>(width * element); }
};

inline uint32_t bits_at(const std::byte* data, int element, int64_t index) {
  uint32_t bits = 0;  // little-endian, as is all golden data
  std::memcpy(&bits, data + index * element, static_cast<size_t>(element));
  return bits;
}

/// Throws Differs with the first element of `found`, [count][width], that is not the golden one. `when` says how it was computed.
inline void expect_rows(const GoldenRows& golden, const std::byte* found, int64_t count, const std::string& when) {
  int64_t differing = 0, first = -1;
  for (int64_t row = 0; row < count; ++row) {
    const std::byte* expected = golden.data + static_cast<size_t>(row % golden.rows) * golden.row_bytes();
    const std::byte* actual = found + static_cast<size_t>(row) * golden.row_bytes();
    if (golden.row_bytes() == 0 || std::memcmp(expected, actual, golden.row_bytes()) == 0) continue;
    for (int64_t i = 0; i < golden.width; ++i) {
      if (bits_at(expected, golden.element, i) == bits_at(actual, golden.element, i)) continue;
      if (differing++ == 0) first = row * golden.width + i;
    }
  }
  if (differing == 0) return;
  const int64_t row = first / golden.width % golden.rows, column = first % golden.width;
  const int digits = 2 * golden.element;
  throw Differs(fmt::format("[{}][{}] expected 0x{:0{}x}, found 0x{:0{}x}; {} of {} differ ({})", row, column,
                            bits_at(golden.data, golden.element, row * golden.width + column), digits,
                            bits_at(found, golden.element, first), digits, differing, count * golden.width, when));
}

}  // namespace omnibench
