// SPDX-License-Identifier: Apache-2.0
#include <array>

#include "jit/x64/byte_transpose.h"
#include "jit/x64/dequant_tg4.h"

namespace okl::jit {

void DequantTg4Avx512::load_constants() {
  std::array<float, 16> levels;
  for (int code = 0; code < 16; ++code) levels[static_cast<size_t>(code)] = static_cast<float>(code - 8);
  vmovaps(zmm_levels_, ptr[pool(levels)]);
  vpbroadcastd(zmm_half_, ptr[pool_word(0x7FFF)]);
  vpbroadcastd(zmm_one_, ptr[pool_word(1)]);
  vpbroadcastd(zmm_nan_, ptr[pool_word(0x7FC00000)]);
  mov(eax, 0xAAAAAAAA);
  kmovd(k_odd_, eax);
}

// For bf16 a register holds every second channel, so that two of them merge into 32 consecutive bf16 with one blend.
int DequantTg4Avx512::channel_at(int position) const {
  const int i = position / 16, lane = position % 16;
  return wide_out() ? position : i / 2 * 32 + 2 * lane + i % 2;
}

void DequantTg4Avx512::load_lane_scales() {
  for (int i = 0; i < 4; ++i) {
    vmovaps(scale(i), lane_scale(16 * i));
    vmovaps(zero(i), lane_zero(16 * i));
  }
}

void DequantTg4Avx512::transpose_codes() {
  emit_byte_transpose_avx512(
      *this, [&](int i) { return ptr[reg_codes_ + 32 * i]; },
      [&](int column, const Xbyak::Zmm& pair) {
        vmovdqu64(tile_row(column), Xbyak::Ymm(pair.getIdx()));
        vextracti64x4(tile_row(column + 1), pair, 1);
      });
}

void DequantTg4Avx512::broadcast_scales() {
  for (int half = 0; half < 2; ++half) {
    const int offset = half * 32 * pair_bytes();
    const Xbyak::Zmm s = scale(2 * half), z = zero(2 * half);
    if (wide_scales()) {
      vbroadcastss(s, ptr[reg_pair_ + offset]);
      vbroadcastss(z, ptr[reg_pair_ + offset + 4]);
    } else {
      vpbroadcastd(z, ptr[reg_pair_ + offset]);
      vpslld(s, z, 16);
      vpandd(z, z, ptr_b[pool_word(0xFFFF0000)]);
    }
  }
}

// VPERMPS looks at the low four bits of an index only: no masks.
void DequantTg4Avx512::emit_levels(const Xbyak::Reg64& codes) {
  if (wide_out()) {
    vpmovzxbd(weight(0), ptr[codes]);
    vpmovzxbd(weight(1), ptr[codes + 16]);
    vpsrld(weight(2), weight(0), 4);
    vpsrld(weight(3), weight(1), 4);
  } else {
    vpmovzxbw(weight(0), ptr[codes]);  // as dwords: byte 2i | byte 2i + 1 << 16
    vpsrld(weight(1), weight(0), 16);
    vpsrld(weight(2), weight(0), 4);
    vpsrld(weight(3), weight(0), 20);
  }
  for (int i = 0; i < 4; ++i) vpermps(weight(i), weight(i), zmm_levels_);
}

void DequantTg4Avx512::emit_step(const Xbyak::Reg64& codes, bool careful) {
  emit_levels(codes);
  for (int i = 0; i < 4; ++i) vfmadd213ps(weight(i), scale(i), zero(i));
  if (careful) {
    for (int i = 0; i < 4; ++i) {
      vcmpunordps(k2, weight(i), weight(i));
      vmovaps(weight(i) | k2, zmm_nan_);
    }
  }
  for (int i = 0; i < 4; i += 2) {
    const Xbyak::Reg64& out = i == 0 ? reg_low_ : reg_high_;
    if (wide_out()) {
      store(ptr[out], weight(i));
      store(ptr[out + 64], weight(i + 1));
    } else {
      round_to_bf16(weight(i), weight(i + 1));
      store(ptr[out], weight(i));
    }
  }
}

// In integers: VCVTNEPS2BF16 would flush subnormals. The result is in `even`.
void DequantTg4Avx512::round_to_bf16(const Xbyak::Zmm& even, const Xbyak::Zmm& odd) {
  vpsrld(zmm_tmp_, even, 16);
  vpsrld(zmm_tmp2_, odd, 16);
  vpandd(zmm_tmp_, zmm_tmp_, zmm_one_);
  vpandd(zmm_tmp2_, zmm_tmp2_, zmm_one_);
  vpaddd(even, even, zmm_half_);
  vpaddd(odd, odd, zmm_half_);
  vpaddd(even, even, zmm_tmp_);
  vpaddd(odd, odd, zmm_tmp2_);
  vpsrld(even, even, 16);
  vpblendmw(even | k_odd_, even, odd);
}

}  // namespace okl::jit
