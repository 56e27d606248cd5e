// SPDX-License-Identifier: Apache-2.0
// 16 x 16 bytes transposed in four rounds of byte interleaving, in GCC's vector types: 128-bit registers on every x86-64 and on
// AArch64. Internal linkage on purpose: leaf files compile their own copy for their ISA.

#include <cstdint>

namespace okl {
namespace {

typedef uint8_t Bytes16 __attribute__((vector_size(16)));

inline Bytes16 load16(const uint8_t* from) {
  Bytes16 value;
  __builtin_memcpy(&value, from, sizeof value);
  return value;
}
inline void store16(uint8_t* to, Bytes16 value) { __builtin_memcpy(to, &value, sizeof value); }

// One round rotates the 8-bit address (row, column) of every byte left by one bit; four rounds exchange row and column.
inline void interleave_round(const Bytes16* from, Bytes16* to) {
  for (int i = 0; i < 8; ++i) {
    to[2 * i] = __builtin_shufflevector(from[i], from[i + 8], 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
    to[2 * i + 1] = __builtin_shufflevector(from[i], from[i + 8], 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
  }
}
inline void transpose_16x16(Bytes16 rows[16]) {
  Bytes16 other[16];
  interleave_round(rows, other);
  interleave_round(other, rows);
  interleave_round(rows, other);
  interleave_round(other, rows);
}

}  // namespace
}  // namespace okl
