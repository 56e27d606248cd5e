// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "jit/x64/byte_transpose.h"
#include "jit/x64/dequant_tg4.h"
#include "kernels/format/bf16.h"

namespace okl::jit {

void DequantTg4Avx2::load_constants() {
  std::array<uint8_t, 32> low_bytes, high_bytes;
  for (size_t i = 0; i < 32; ++i) {
    const uint16_t level = bf16_round_ieee(static_cast<float>(static_cast<int>(i % 16) - 8));
    low_bytes[i] = static_cast<uint8_t>(level);
    high_bytes[i] = static_cast<uint8_t>(level >> 8);
  }
  vmovdqa(ymm_low_bytes_, ptr[pool(low_bytes)]);
  vmovdqa(ymm_high_bytes_, ptr[pool(high_bytes)]);
  vpbroadcastd(ymm_half_, ptr[pool_word(0x7FFF)]);
  vpbroadcastd(ymm_one_, ptr[pool_word(1)]);
}

Xbyak::Address DequantTg4Avx2::pool_ymm(uint32_t word) {
  std::array<uint32_t, 8> words;
  words.fill(word);
  return ptr[pool(words)];
}

// bf16: every second of 16 channels. fp32: lanes of 4 channels, 8 apart, as VPUNPCKLWD leaves them.
int DequantTg4Avx2::channel_at(int position) const {
  const int half = position / 32, i = position / 8 % 4, lane = position % 8;
  const int first = half * 32 + i / 2 * 16;
  return wide_out() ? first + lane / 4 * 8 + i % 2 * 4 + lane % 4 : first + 2 * lane + i % 2;
}

void DequantTg4Avx2::transpose_codes() {
  emit_byte_transpose_avx2(
      *this, [&](int i) { return ptr[reg_codes_ + 32 * i]; }, [&](int column) { return tile_row(column); },
      [&](int block) { return scratch(block); });
}

void DequantTg4Avx2::broadcast_scales() {
  for (int half = 0; half < 2; ++half) {
    const int offset = half * 32 * pair_bytes();
    if (wide_scales()) {
      vbroadcastss(scale(half), ptr[reg_pair_ + offset]);
      vbroadcastss(zero(half), ptr[reg_pair_ + offset + 4]);
    } else {
      vpbroadcastd(zero(half), ptr[reg_pair_ + offset]);
      vpslld(scale(half), zero(half), 16);
      vpand(zero(half), zero(half), pool_ymm(0xFFFF0000));
    }
  }
}

// The levels -8.0 .. 7.0 are bf16 numbers: two byte lookups and an interleave make 32 of them from 32 nibbles.
void DequantTg4Avx2::emit_levels(int half) {
  if (half == 0) {
    vpand(ymm_tmp_, ymm_codes_, pool_ymm(0x0F0F0F0F));
  } else {
    vpsrlw(ymm_tmp_, ymm_codes_, 4);
    vpand(ymm_tmp_, ymm_tmp_, pool_ymm(0x0F0F0F0F));
  }
  vpshufb(ymm_tmp2_, ymm_high_bytes_, ymm_tmp_);
  vpshufb(ymm_tmp_, ymm_low_bytes_, ymm_tmp_);
  vpunpcklbw(weight(0), ymm_tmp_, ymm_tmp2_);
  vpunpckhbw(weight(2), ymm_tmp_, ymm_tmp2_);
  if (wide_out()) vpxor(ymm_tmp_, ymm_tmp_, ymm_tmp_);
  for (int i = 0; i < 4; i += 2) {
    if (wide_out()) {
      vpunpckhwd(weight(i + 1), ymm_tmp_, weight(i));
      vpunpcklwd(weight(i), ymm_tmp_, weight(i));
    } else {
      vpand(weight(i + 1), weight(i), pool_ymm(0xFFFF0000));
      vpslld(weight(i), weight(i), 16);
    }
  }
}

void DequantTg4Avx2::multiply_add(int half, int i, bool careful) {
  if (by_input()) {
    const int position = half * 32 + i * 8;
    vmovaps(ymm_tmp_, lane_scale(position));
    vfmadd213ps(weight(i), ymm_tmp_, lane_zero(position));
  } else {
    vfmadd213ps(weight(i), scale(half), zero(half));
  }
  if (careful) {
    vcmpunordps(ymm_tmp_, weight(i), weight(i));
    vblendvps(weight(i), weight(i), pool_ymm(0x7FC00000), ymm_tmp_);
  }
}

void DequantTg4Avx2::emit_step(const Xbyak::Reg64& codes, bool careful) {
  vpermq(ymm_codes_, ptr[codes], 0xD8);  // then interleaving inside lanes leaves bytes in order
  for (int half = 0; half < 2; ++half) {
    const Xbyak::Reg64& out = half == 0 ? reg_low_ : reg_high_;
    emit_levels(half);
    for (int i = 0; i < 4; ++i) multiply_add(half, i, careful);
    for (int i = 0; i < 4; i += 2) {
      if (wide_out()) {
        vperm2f128(ymm_tmp_, weight(i), weight(i + 1), 0x20);
        vperm2f128(ymm_tmp2_, weight(i), weight(i + 1), 0x31);
        store(ptr[out + 32 * i], ymm_tmp_);
        store(ptr[out + 32 * i + 32], ymm_tmp2_);
      } else {
        round_to_bf16(weight(i), weight(i + 1));
        store(ptr[out + 16 * i], weight(i));
      }
    }
  }
}

void DequantTg4Avx2::round_to_bf16(const Xbyak::Ymm& even, const Xbyak::Ymm& odd) {
  vpsrld(ymm_tmp_, even, 16);
  vpsrld(ymm_tmp2_, odd, 16);
  vpand(ymm_tmp_, ymm_tmp_, ymm_one_);
  vpand(ymm_tmp2_, ymm_tmp2_, ymm_one_);
  vpaddd(even, even, ymm_half_);
  vpaddd(odd, odd, ymm_half_);
  vpaddd(even, even, ymm_tmp_);
  vpaddd(odd, odd, ymm_tmp2_);
  vpsrld(even, even, 16);
  vpblendw(even, even, odd, 0xAA);
}

}  // namespace okl::jit
