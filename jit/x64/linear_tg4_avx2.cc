// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/linear_tg4_avx2.h"

#include <algorithm>
#include <cstddef>

namespace okl::jit {
namespace {

// Byte `byte` of bf16 (q - 8) for each code, repeated for both lanes of VPSHUFB.
std::array<uint8_t, 32> bf16_bytes(int byte) {
  constexpr std::array<uint16_t, 16> words = {0xC100, 0xC0E0, 0xC0C0, 0xC0A0, 0xC080, 0xC040, 0xC000, 0xBF80,
                                              0x0000, 0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0, 0x40C0, 0x40E0};
  std::array<uint8_t, 32> table{};
  for (size_t i = 0; i < table.size(); ++i) table[i] = static_cast<uint8_t>(words[i % 16] >> (8 * byte));
  return table;
}

template <typename T>
std::array<T, 32 / sizeof(T)> everywhere(T value) {
  std::array<T, 32 / sizeof(T)> values;
  values.fill(value);
  return values;
}

}  // namespace

void LinearTg4Avx2::load_constants() {
  load_channel_masks(reg_args + offsetof(LinearTile, channels));
  vmovdqa(ymm_table_low, ptr[pool(bf16_bytes(0))]);
  vmovdqa(ymm_table_high, ptr[pool(bf16_bytes(1))]);
  vpxor(ymm_zero, ymm_zero, ymm_zero);
}

// ymm_words_low = the half's codes, one a byte, in channel order.
void LinearTg4Avx2::load_bytes(int half, int input) {
  const int offset = input * row_bytes();
  const Xbyak::Ymm codes = ymm_words_low;
  if (split_block()) {
    vmovdqu(codes, ptr[reg_codes + offset]);
    if (half == 1) vpsrlw(codes, codes, 4);
    vpand(codes, codes, ptr[pool(everywhere<uint8_t>(0x0F))]);
    return;
  }
  // Adjacent pairs: low and high nibbles interleave back into channel order, 16 channels a lane.
  const Xbyak::Xmm low(ymm_words_low.getIdx()), high(ymm_words_high.getIdx()), upper(ymm_w.getIdx());
  const int bytes = std::min(16, row_bytes() - 16 * half);
  if (bytes == 16) {
    vmovdqu(low, ptr[reg_codes + offset + 16 * half]);
  } else {
    vmovq(low, ptr[reg_codes + offset + 16 * half]);
  }
  vpsrlw(high, low, 4);
  vpand(low, low, ptr[pool(everywhere<uint8_t>(0x0F))]);
  vpand(high, high, ptr[pool(everywhere<uint8_t>(0x0F))]);
  vpunpckhbw(upper, low, high);
  vpunpcklbw(low, low, high);
  vinserti128(codes, codes, upper, 1);
}

void LinearTg4Avx2::unpack_half(int half, int input) {
  load_bytes(half, input);
  // bf16 (q - 8) in two byte look-ups; interleaved they are words, and a word above sixteen zero bits is the fp32 value.
  vpshufb(ymm_tmp, ymm_table_low, ymm_words_low);
  vpshufb(ymm_w, ymm_table_high, ymm_words_low);
  vpunpcklbw(ymm_words_low, ymm_tmp, ymm_w);
  vpunpckhbw(ymm_words_high, ymm_tmp, ymm_w);
}

void LinearTg4Avx2::widen(int v) {
  const Xbyak::Ymm words = v < 2 ? ymm_words_low : ymm_words_high;
  if (v % 2 == 0) {
    vpunpcklwd(ymm_w, ymm_zero, words);
  } else {
    vpunpckhwd(ymm_w, ymm_zero, words);
  }
}

void LinearTg4Avx2::load_scales(int half, int p, const Xbyak::Ymm& scale0, const Xbyak::Ymm& zero0, const Xbyak::Ymm& scale1,
                                const Xbyak::Ymm& zero1) {
  // Accumulator vectors 2p and 2p + 1 hold channels 8p..8p+7 and 16+8p..16+8p+7 of the half, their lanes exchanged.
  const int first = 32 * half + 8 * p, second = first + 16;
  const auto to_accumulator_order = [&](const Xbyak::Ymm& even, const Xbyak::Ymm& odd, const Xbyak::Ymm& a, const Xbyak::Ymm& b) {
    vperm2i128(even, a, b, 0x20);
    vperm2i128(odd, a, b, 0x31);
  };
  if (config_.scale_type == OMNI_DTYPE_BF16) {
    vmovdqa(zero0, channel_mask(first));
    vpmaskmovd(ymm_words_low, zero0, ptr[reg_scales + first * 4]);
    vmovdqa(zero0, channel_mask(second));
    vpmaskmovd(ymm_words_high, zero0, ptr[reg_scales + second * 4]);
    to_accumulator_order(zero0, zero1, ymm_words_low, ymm_words_high);
    vpslld(scale0, zero0, 16);
    vpslld(scale1, zero1, 16);
    vpand(zero0, zero0, ptr[pool(everywhere<uint32_t>(0xFFFF0000))]);
    vpand(zero1, zero1, ptr[pool(everywhere<uint32_t>(0xFFFF0000))]);
    return;
  }
  load_natural_scales(first, scale0, zero0);
  load_natural_scales(second, scale1, zero1);
  vmovaps(ymm_words_low, scale0);
  to_accumulator_order(scale0, scale1, ymm_words_low, scale1);
  vmovaps(ymm_words_low, zero0);
  to_accumulator_order(zero0, zero1, ymm_words_low, zero1);
}

void LinearTg4Avx2::load_natural_scales(int first_channel, const Xbyak::Ymm& scale, const Xbyak::Ymm& zero) {
  if (config_.scale_type == OMNI_DTYPE_BF16) {
    vmovdqa(zero, channel_mask(first_channel));
    vpmaskmovd(ymm_words_low, zero, ptr[reg_scales + first_channel * 4]);
    vpslld(scale, ymm_words_low, 16);
    vpand(zero, ymm_words_low, ptr[pool(everywhere<uint32_t>(0xFFFF0000))]);
    return;
  }
  // fp32: eight (scale, zero) pairs are two vectors; VSHUFPS sorts them within lanes, VPERMPD puts the lanes right.
  vpmovsxdq(zero, channel_mask(first_channel));
  vpmaskmovq(ymm_words_low, zero, ptr[reg_scales + first_channel * 8]);
  vpmovsxdq(zero, channel_mask(first_channel + 4));
  vpmaskmovq(ymm_words_high, zero, ptr[reg_scales + first_channel * 8 + 32]);
  vshufps(scale, ymm_words_low, ymm_words_high, 0x88);
  vshufps(zero, ymm_words_low, ymm_words_high, 0xDD);
  vpermpd(scale, scale, 0xD8);
  vpermpd(zero, zero, 0xD8);
}

void LinearTg4Avx2::begin_store_row(int row) {
  row_pointer(reg_tmp, reg_y, offsetof(LinearTile, ldy), row);
  if (has_residual()) row_pointer(reg_tmp2, reg_residual, offsetof(LinearTile, ld_residual), row);
}

void LinearTg4Avx2::store_pair(int half, int p, const Xbyak::Ymm& c0, const Xbyak::Ymm& c1) {
  const int first = 32 * half + 8 * p, second = first + 16;
  vperm2f128(ymm_words_low, c0, c1, 0x31);
  vperm2f128(c0, c0, c1, 0x20);
  vmovaps(c1, ymm_words_low);
  if (first < config_.block_width) store_natural(c0, first);
  if (second < config_.block_width) store_natural(c1, second);
}

}  // namespace okl::jit
