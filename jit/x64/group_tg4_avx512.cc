// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/group_tg4_avx512.h"

namespace okl::jit {

void GroupTg4Avx512::begin_block() {
  for (int row = 0; row < config_.rows; ++row) {
    for (int i = 0; i < vectors(); ++i) {
      const Xbyak::Zmm zero = c_in_registers(config_) ? c(row, i) : w(0);
      vpxord(zero, zero, zero);
      if (!c_in_registers(config_)) vmovaps(c_slot(row, i), zero);
    }
  }
}

void GroupTg4Avx512::begin_group(int) {
  prefetch_scales(1, 1);
  for (int row = 0; row < config_.rows; ++row) {
    for (int i = 0; i < vectors(); ++i) vpxord(d(row, i), d(row, i), d(row, i));
  }
}

void GroupTg4Avx512::end_group(int) {
  const Xbyak::Zmm scale = w(0), zero = w(1);
  for (int i = 0; i < vectors(); ++i) {
    load_scales(i, scale, zero, w(2), w(3));
    for (int row = 0; row < config_.rows; ++row) {
      const Xbyak::Zmm sum = c_in_registers(config_) ? c(row, i) : zmm_x;
      if (!c_in_registers(config_)) vmovaps(sum, c_slot(row, i));
      vfmadd231ps(sum, scale, d(row, i));
      vfmadd231ps(sum, zero, ptr_b[reg_sums + 4 * row]);
      if (!c_in_registers(config_)) vmovaps(c_slot(row, i), sum);
    }
  }
}

void GroupTg4Avx512::finish_block() {
  for (int row = 0; row < config_.rows; ++row) {
    begin_store_row(row);
    for (int i = 0; i < vectors(); ++i) {
      const Xbyak::Zmm sum = c_in_registers(config_) ? c(row, i) : zmm_x;
      if (!c_in_registers(config_)) vmovaps(sum, c_slot(row, i));
      store_vector(sum, i, w(0));
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------- BF16

namespace {

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

GroupTg4Avx512Bf16::GroupTg4Avx512Bf16(const LinearConfig& config) : GroupTg4Avx512(config, config.rows <= 2 ? 16 : 4) {
  set_x_form(XForm::kPairs);
}

void GroupTg4Avx512Bf16::load_constants() {
  load_channel_masks();
  vmovdqa32(zmm_table, ptr[pool(bf16_codes_minus_8())]);
  if (split_block()) {
    vmovdqa32(zmm_low_channels, ptr[pool(pair_index(0, row_bytes(), 1))]);
    vmovdqa32(zmm_high_channels, ptr[pool(pair_index(16, row_bytes(), 1))]);
  } else {
    mov(reg_tmp, (uint64_t{1} << (2 * row_bytes())) - 1);
    kmovq(k_tmp2, reg_tmp);
  }
}

void GroupTg4Avx512Bf16::emit_pair(int, int pair) {
  prefetch_codes(pair);
  if (split_block()) {
    unpack_split(pair);
  } else {
    unpack_tail(pair);
  }
  for (int row = 0; row < config_.rows; ++row) {
    vpbroadcastd(zmm_x, ptr[reg_x + (pair * config_.rows + row) * 4]);
    for (int i = 0; i < vectors(); ++i) vdpbf16ps(d(row, i), w(i), zmm_x);
  }
}

void GroupTg4Avx512Bf16::unpack_split(int pair) {
  const int offset = pair * 2 * row_bytes();
  vpermb(w(0), zmm_low_channels, ptr[reg_codes + offset]);
  vpermb(w(1), zmm_high_channels, ptr[reg_codes + offset]);
  vpsrlw(w(2), w(0), 4);
  vpsrlw(w(3), w(1), 4);
  for (int i = 0; i < vectors(); ++i) vpermw(w(i), w(i), zmm_table);
}

void GroupTg4Avx512Bf16::unpack_tail(int pair) {
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

// ----------------------------------------------------------------------------------------------------------------- FMA

GroupTg4Avx512Fma::GroupTg4Avx512Fma(const LinearConfig& config) : GroupTg4Avx512(config, config.rows <= 2 ? 8 : 4) {
  set_x_form(XForm::kFloats);
}

void GroupTg4Avx512Fma::load_constants() {
  load_channel_masks();
  load_fp32_table();
}

void GroupTg4Avx512Fma::emit_pair(int, int pair) {
  prefetch_codes(pair);
  for (int input : {2 * pair + 1, 2 * pair}) {
    unpack_to_fp32(input);
    for (int row = 0; row < config_.rows; ++row) {
      const Xbyak::Zmm x(row % 2 == 0 ? zmm_x.getIdx() : 30);
      vbroadcastss(x, ptr[reg_x + (input * config_.rows + row) * 4]);
      for (int i = 0; i < vectors(); ++i) vfmadd231ps(d(row, i), w(i), x);
    }
  }
}

}  // namespace okl::jit
