// SPDX-License-Identifier: Apache-2.0
// Sizes and offsets in 64 bits. A 256k vocabulary times a width of 12k is 3.2e9 elements: no int anywhere on these paths.
#pragma once

#include <cstdint>
#include <initializer_list>

namespace okl {

// Stores the product of non-negative factors in `out` and returns true, or returns false when it does not fit 63 bits.
[[nodiscard]] constexpr bool checked_product(std::initializer_list<int64_t> factors, int64_t* out) {
  int64_t product = 1;
  for (const int64_t factor : factors) {
    // A zero anywhere makes the product zero, however large the others are.
    if (factor == 0) {
      *out = 0;
      return true;
    }
  }
  for (const int64_t factor : factors) {
    if (__builtin_mul_overflow(product, factor, &product)) return false;
  }
  *out = product;
  return true;
}

[[nodiscard]] constexpr bool checked_sum(int64_t a, int64_t b, int64_t* out) { return !__builtin_add_overflow(a, b, out); }

// n >= 0, d > 0; exact for every n (no n + d - 1, which could overflow).
constexpr int64_t ceil_div(int64_t n, int64_t d) { return n / d + (n % d != 0 ? 1 : 0); }

// Element offset of (row, column) in a row-major array with `ld` elements a row.
constexpr int64_t dense_offset(int64_t row, int64_t ld, int64_t column) { return row * ld + column; }

}  // namespace okl
