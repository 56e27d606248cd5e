// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/linear_tg4_avx512.h"

#include <cstddef>

namespace okl::jit {
namespace {

std::array<float, 16> codes_minus_8() {
  std::array<float, 16> table{};
  for (int q = 0; q < 16; ++q) table[q] = static_cast<float>(q - 8);
  return table;
}

// Dword lane c of the result: (byte of the even input, twice), (byte of the odd input, twice), for channel first + c. VPERMW reads
// five index bits, so the upper copy of the byte never matters and the table repeats after 16 entries.
std::array<uint8_t, 64> pair_index(int first_byte, int row_bytes, int channels_per_byte) {
  std::array<uint8_t, 64> index{};
  for (int lane = 0; lane < 16; ++lane) {
    const int byte = first_byte + lane / channels_per_byte;
    index[4 * lane] = index[4 * lane + 1] = static_cast<uint8_t>(byte);
    index[4 * lane + 2] = index[4 * lane + 3] = static_cast<uint8_t>(row_bytes + byte);
  }
  return index;
}

std::array<uint16_t, 32> bf16_codes_minus_8() {
  constexpr std::array<uint16_t, 16> half = {0xC100, 0xC0E0, 0xC0C0, 0xC0A0, 0xC080, 0xC040, 0xC000, 0xBF80,
                                             0x0000, 0x3F80, 0x4000, 0x4040, 0x4080, 0x40A0, 0x40C0, 0x40E0};
  std::array<uint16_t, 32> table{};
  for (size_t i = 0; i < table.size(); ++i) table[i] = half[i % 16];
  return table;
}

}  // namespace

std::array<uint32_t, 16> LinearTg4Avx512::every_second_from(uint32_t first) {
  std::array<uint32_t, 16> index{};
  for (uint32_t i = 0; i < 16; ++i) index[i] = 2 * i + first;
  return index;
}

void LinearTg4Avx512::load_channel_masks() {
  StoreAvx512::load_channel_masks(ptr[reg_args + offsetof(LinearTile, channels)], vectors());
}

void LinearTg4Avx512::load_fp32_table() { vmovaps(zmm_table, ptr[pool(codes_minus_8())]); }

void LinearTg4Avx512::unpack_to_fp32(int input) {
  const int offset = input * row_bytes();
  if (split_block()) {
    // VPERMPS reads the low four bits of each index, so the low nibble needs no mask.
    vpmovzxbd(w(0), ptr[reg_codes + offset]);
    vpmovzxbd(w(1), ptr[reg_codes + offset + 16]);
    vpsrld(w(2), w(0), 4);
    vpsrld(w(3), w(1), 4);
  } else {
    // Adjacent pairs: every byte twice, then the odd channels shift their nibble down.
    constexpr std::array<uint32_t, 16> nibble_shift = {0, 4, 0, 4, 0, 4, 0, 4, 0, 4, 0, 4, 0, 4, 0, 4};
    for (int i = 0; i < vectors(); ++i) {
      const Xbyak::Xmm bytes(w(i).getIdx());
      vmovq(bytes, ptr[reg_codes + offset + 8 * i]);
      vpunpcklbw(bytes, bytes, bytes);
      vpmovzxbd(w(i), bytes);
      vpsrlvd(w(i), w(i), ptr[pool(nibble_shift)]);
    }
  }
  for (int i = 0; i < vectors(); ++i) vpermps(w(i), w(i), zmm_table);
}

void LinearTg4Avx512::load_pair_tables() {
  vmovdqa32(zmm_table, ptr[pool(bf16_codes_minus_8())]);
  if (split_block()) {
    vmovdqa32(zmm_low_channels, ptr[pool(pair_index(0, row_bytes(), 1))]);
    vmovdqa32(zmm_high_channels, ptr[pool(pair_index(16, row_bytes(), 1))]);
  } else {
    mov(reg_tmp, (uint64_t{1} << (2 * row_bytes())) - 1);
    kmovq(k_tmp2, reg_tmp);
  }
}

void LinearTg4Avx512::unpack_to_pairs(int pair) {
  if (split_block()) {
    unpack_split_pairs(pair);
  } else {
    unpack_tail_pairs(pair);
  }
}

void LinearTg4Avx512::unpack_split_pairs(int pair) {
  const int offset = pair * 2 * row_bytes();
  vpermb(w(0), zmm_low_channels, ptr[reg_codes + offset]);
  vpermb(w(1), zmm_high_channels, ptr[reg_codes + offset]);
  vpsrlw(w(2), w(0), 4);
  vpsrlw(w(3), w(1), 4);
  for (int i = 0; i < vectors(); ++i) vpermw(w(i), w(i), zmm_table);
}

void LinearTg4Avx512::unpack_tail_pairs(int pair) {
  constexpr std::array<uint16_t, 32> nibble_shift = {0, 0, 4, 4, 0, 0, 4, 4, 0, 0, 4, 4, 0, 0, 4, 4,
                                                     0, 0, 4, 4, 0, 0, 4, 4, 0, 0, 4, 4, 0, 0, 4, 4};
  vmovdqu8(zmm_x | k_tmp2 | T_z, ptr[reg_codes + pair * 2 * row_bytes()]);
  for (int i = 0; i < vectors(); ++i) {
    vmovdqa32(w(i), ptr[pool(pair_index(8 * i, row_bytes(), 2))]);
    vpermb(w(i), w(i), zmm_x);
    vpsrlvw(w(i), w(i), ptr[pool(nibble_shift)]);
    vpermw(w(i), w(i), zmm_table);
  }
}

void LinearTg4Avx512::load_scales(int i, const Xbyak::Zmm& scale, const Xbyak::Zmm& zero, const Xbyak::Zmm& tmp0,
                                  const Xbyak::Zmm& tmp1) {
  const int offset = i * kLanes * 2 * scale_bytes();
  if (config_.scale_type == OMNI_DTYPE_BF16) {
    // One dword is (scale, zero): a shift and a mask widen both.
    vmovdqu32(zero | k_channels(i) | T_z, ptr[reg_scales + offset]);
    vpslld(scale, zero, 16);
    vpandd(zero, zero, ptr_b[pool_word(0xFFFF0000)]);
  } else {
    kshiftrw(k_tmp, k_channels(i), 8);
    vmovdqu64(tmp0 | k_channels(i) | T_z, ptr[reg_scales + offset]);
    vmovdqu64(tmp1 | k_tmp | T_z, ptr[reg_scales + offset + 64]);
    vmovdqa32(scale, ptr[pool(every_second_from(0))]);
    vmovdqa32(zero, ptr[pool(every_second_from(1))]);
    vpermi2ps(scale, tmp0, tmp1);
    vpermi2ps(zero, tmp0, tmp1);
  }
}

void LinearTg4Avx512::prefetch_scales(int blocks_ahead, int blocks) {
  const int block_bytes = kBlockChannels * 2 * scale_bytes();
  for (int line = 0; line < blocks * block_bytes; line += 64) prefetcht0(ptr[reg_scales + blocks_ahead * block_bytes + line]);
}

void LinearTg4Avx512::begin_store_row(int row) {
  row_pointer(reg_tmp, reg_y, offsetof(LinearTile, ldy), row);
  if (has_residual()) row_pointer(reg_tmp2, reg_residual, offsetof(LinearTile, ld_residual), row);
}

}  // namespace okl::jit
