// SPDX-License-Identifier: Apache-2.0
// Emitters that transpose 32 rows of 32 bytes. Interleaving two registers byte by byte rotates the address (row, column) of every
// byte left by one bit; as many rounds as a row number has bits exchange row and column inside each 128-bit lane.
#pragma once

#include <xbyak/xbyak.h>

namespace okl::jit {

// row(i) is the address of row i; store(j, zmm) stores columns j and j + 1, 32 bytes each. Uses all 32 registers.
template <typename Row, typename Store>
void emit_byte_transpose_avx512(Xbyak::CodeGenerator& code, const Row& row, const Store& store) {
  using Xbyak::Ymm;
  using Xbyak::Zmm;
  constexpr int kBank = 16;
  // Lanes of register i: row i, columns 0..15 and 16..31; row i + 16 likewise.
  for (int i = 0; i < kBank; ++i) {
    code.vmovdqu(Ymm(i), row(i));
    code.vinserti64x4(Zmm(i), Zmm(i), row(i + 16), 1);
  }
  for (int round = 0; round < 4; ++round) {
    const int from = round % 2 * kBank, to = kBank - from;
    for (int i = 0; i < 8; ++i) {
      code.vpunpcklbw(Zmm(to + 2 * i), Zmm(from + i), Zmm(from + i + 8));
      code.vpunpckhbw(Zmm(to + 2 * i + 1), Zmm(from + i), Zmm(from + i + 8));
    }
  }
  // Lanes of register j: column j of rows 0..15, column 16 + j of those, and both of rows 16..31.
  for (int j = 0; j < kBank; j += 2) {
    code.vshufi64x2(Zmm(kBank + j), Zmm(j), Zmm(j + 1), 0x88);
    code.vshufi64x2(Zmm(kBank + j + 1), Zmm(j), Zmm(j + 1), 0xDD);
    store(j, Zmm(kBank + j));
    store(j + 16, Zmm(kBank + j + 1));
  }
}

// row(i) is the address of row i, column(j) that of column j, scratch(i) that of the i-th of 32 blocks of 32 bytes, aligned. Uses
// all 16 registers.
inline constexpr int kByteTransposeScratch = 32 * 32;
template <typename Row, typename Column, typename Scratch>
void emit_byte_transpose_avx2(Xbyak::CodeGenerator& code, const Row& row, const Column& column, const Scratch& scratch) {
  using Xbyak::Ymm;
  constexpr int kBank = 8;
  for (int rows = 0; rows < 4; ++rows) {
    for (int i = 0; i < kBank; ++i) code.vmovdqu(Ymm(i), row(8 * rows + i));
    for (int round = 0; round < 3; ++round) {
      const int from = round % 2 * kBank, to = kBank - from;
      for (int i = 0; i < 4; ++i) {
        code.vpunpcklbw(Ymm(to + 2 * i), Ymm(from + i), Ymm(from + i + 4));
        code.vpunpckhbw(Ymm(to + 2 * i + 1), Ymm(from + i), Ymm(from + i + 4));
      }
    }
    // Quadwords of register j: columns 2j, 2j + 1, 16 + 2j and 16 + 2j + 1 of these 8 rows.
    for (int j = 0; j < kBank; ++j) code.vmovdqa(scratch(8 * rows + j), Ymm(kBank + j));
  }
  for (int j = 0; j < kBank; ++j) {
    const int base = j % 2 * kBank;  // alternating banks: more columns in flight
    const Ymm a(base), b(base + 1), even_low(base + 2), odd_low(base + 3), even_high(base + 4), odd_high(base + 5), out(base + 6);
    code.vmovdqa(a, scratch(j));
    code.vmovdqa(b, scratch(16 + j));
    code.vpunpcklqdq(even_low, a, scratch(8 + j));
    code.vpunpckhqdq(odd_low, a, scratch(8 + j));
    code.vpunpcklqdq(even_high, b, scratch(24 + j));
    code.vpunpckhqdq(odd_high, b, scratch(24 + j));
    const auto store = [&](int at, const Ymm& low, const Ymm& high, uint8_t lanes) {
      code.vperm2i128(out, low, high, lanes);
      code.vmovdqu(column(at), out);
    };
    store(2 * j, even_low, even_high, 0x20);
    store(2 * j + 1, odd_low, odd_high, 0x20);
    store(16 + 2 * j, even_low, even_high, 0x31);
    store(16 + 2 * j + 1, odd_low, odd_high, 0x31);
  }
}

}  // namespace okl::jit
