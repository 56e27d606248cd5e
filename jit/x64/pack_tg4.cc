// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/pack_tg4.h"

#include <cstddef>

#include "jit/x64/byte_transpose.h"

namespace okl::jit {

void PackTg4::generate() {
  Xbyak::Label step, done;
  prologue(kCombinedBytes + scratch_bytes_);
  load_arguments();
  clear_seen();
  test(reg_steps_, reg_steps_);
  jz(done, T_NEAR);
  L(step);
  combine_rows();
  for (int half = 0; half < 2; ++half) transpose_half(half);
  add(reg_codes_, kStep);
  add(reg_out_, kStep * 32);
  dec(reg_steps_);
  jnz(step, T_NEAR);
  L(done);
  report_seen();
  epilogue();
}

void PackTg4::load_arguments() {
  mov(reg_codes_, ptr[reg_tile_ + offsetof(PackTile, codes)]);
  mov(reg_ld_, ptr[reg_tile_ + offsetof(PackTile, ld)]);
  mov(reg_out_, ptr[reg_tile_ + offsetof(PackTile, out)]);
  mov(reg_steps_, ptr[reg_tile_ + offsetof(PackTile, inputs)]);
  shr(reg_steps_, 6);
  mov(reg_half_rows_, reg_ld_);
  shl(reg_half_rows_, 5);
}

void PackTg4::combine_rows() {
  mov(reg_low_row_, reg_codes_);
  lea(reg_high_row_, ptr[reg_codes_ + reg_half_rows_]);
  begin_combine();
  for (int row = 0; row < kRows; ++row) {
    combine_row(row);
    add(reg_low_row_, reg_ld_);
    add(reg_high_row_, reg_ld_);
  }
  end_combine();
}

// --- AVX-512 ---

void PackTg4Avx512::clear_seen() {
  vpxord(zmm_seen_, zmm_seen_, zmm_seen_);
  end_combine();
}

void PackTg4Avx512::begin_combine() { vmovdqa64(zmm_seen_, ptr[rsp + kScratch]); }

void PackTg4Avx512::combine_row(int row) {
  const Xbyak::Zmm low(row % 8 * 2), high(row % 8 * 2 + 1);
  vmovdqu64(low, ptr[reg_low_row_]);
  vmovdqu64(high, ptr[reg_high_row_]);
  vpternlogd(zmm_seen_, low, high, 0xFE);  // a | b | c
  vpsllw(high, high, 4);                   // codes of four bits do not cross into the next byte
  vpord(low, low, high);
  vmovdqa64(combined(row, 0), low);
}

void PackTg4Avx512::end_combine() { vmovdqa64(ptr[rsp + kScratch], zmm_seen_); }

void PackTg4Avx512::transpose_half(int half) {
  emit_byte_transpose_avx512(
      *this, [&](int i) { return combined(i, 32 * half); },
      [&](int column, const Xbyak::Zmm& pair) { vmovdqu64(ptr[reg_out_ + 32 * (32 * half + column)], pair); });
}

void PackTg4Avx512::report_seen() {
  vmovdqa64(zmm_seen_, ptr[rsp + kScratch]);
  vptestmd(k1, zmm_seen_, ptr_b[pool_word(0xF0F0F0F0)]);
  kmovw(eax, k1);
}

// --- AVX2 ---

void PackTg4Avx2::clear_seen() {
  vpxor(ymm_seen_, ymm_seen_, ymm_seen_);
  end_combine();
}

void PackTg4Avx2::begin_combine() { vmovdqa(ymm_seen_, ptr[rsp + kScratch + 32 * 32]); }

void PackTg4Avx2::combine_row(int row) {
  for (int part = 0; part < kStep; part += 32) {
    const Xbyak::Ymm low(row % 3 * 4 + part / 16), high(row % 3 * 4 + part / 16 + 1);
    vmovdqu(low, ptr[reg_low_row_ + part]);
    vmovdqu(high, ptr[reg_high_row_ + part]);
    vpor(ymm_seen_, ymm_seen_, low);
    vpor(ymm_seen_, ymm_seen_, high);
    vpsllw(high, high, 4);
    vpor(low, low, high);
    vmovdqa(combined(row, part), low);
  }
}

void PackTg4Avx2::end_combine() { vmovdqa(ptr[rsp + kScratch + 32 * 32], ymm_seen_); }

void PackTg4Avx2::transpose_half(int half) {
  emit_byte_transpose_avx2(
      *this, [&](int i) { return combined(i, 32 * half); }, [&](int column) { return ptr[reg_out_ + 32 * (32 * half + column)]; },
      [&](int i) { return ptr[rsp + kScratch + 32 * i]; });
}

void PackTg4Avx2::report_seen() {
  vmovdqa(ymm_seen_, ptr[rsp + kScratch + 32 * 32]);
  vpbroadcastd(ymm0, ptr[pool_word(0xF0F0F0F0)]);
  xor_(eax, eax);
  vptest(ymm_seen_, ymm0);
  setnz(al);
}

}  // namespace okl::jit
