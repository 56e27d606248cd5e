// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/amx_fast.h"

#include <algorithm>
#include <cstddef>

namespace okl::jit {
namespace {

using Xbyak::Zmm;

// Dword lane c of the result: (byte of the even input, twice), (byte of the odd input, twice), for channel first + c. VPERMW reads
// five index bits, so the upper copy of the byte never matters and the table repeats after 16 entries.
std::array<uint8_t, 64> pair_index(int first_byte, int row_bytes, int channels_per_byte) {
  std::array<uint8_t, 64> index{};
  for (int lane = 0; lane < 16; ++lane) {
    const int byte = first_byte + lane / channels_per_byte;
    index[static_cast<size_t>(4 * lane)] = index[static_cast<size_t>(4 * lane + 1)] = static_cast<uint8_t>(byte);
    index[static_cast<size_t>(4 * lane + 2)] = index[static_cast<size_t>(4 * lane + 3)] = static_cast<uint8_t>(row_bytes + byte);
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

std::array<uint32_t, 16> every_second_from(uint32_t first) {
  std::array<uint32_t, 16> index{};
  for (uint32_t i = 0; i < 16; ++i) index[i] = 2 * i + first;
  return index;
}

constexpr int64_t pad32(int64_t inputs) { return (inputs + 31) / 32 * 32; }

}  // namespace

AmxGemm::Shape AmxFast::shape_of(const FastConfig& config) {
  Shape shape{};
  shape.padded_k = config.padded_k();
  shape.group = config.groups() == 1 ? shape.padded_k : config.group;
  shape.block = std::min(pad32(config.block), shape.group);
  shape.width = config.block_width;
  shape.x_bytes = 2;
  shape.panel = config.is_w4();
  shape.scale_bytes = config.is_w4() ? (config.scale_type == OMNI_DTYPE_F32 ? 8 : 4) : 0;
  shape.y_type = config.y_type;
  shape.residual_type = config.residual_type;
  shape.epilogue = config.epilogue;
  shape.rows = config.rows;
  return shape;
}

void AmxFast::load_constants() {
  if (!config_.is_w4()) return;
  const int row_bytes = config_.block_width / 2;
  vmovdqa32(zmm_table, ptr[pool(bf16_codes_minus_8())]);
  if (split_block()) {
    vmovdqa32(zmm_low_channels, ptr[pool(pair_index(0, row_bytes, 1))]);
    vmovdqa32(zmm_high_channels, ptr[pool(pair_index(16, row_bytes, 1))]);
  } else {
    mov(reg_tmp, (uint64_t{1} << (2 * row_bytes)) - 1);
    kmovq(k_pair, reg_tmp);
  }
}

void AmxFast::begin_channel_block() {
  if (!config_.is_w4()) return;
  mov(reg_tmp, ptr[reg_args + offsetof(FastTile, sums)]);
  mov(own_slot(0), reg_tmp);
}

void AmxFast::load_group() {
  if (!config_.is_w4()) return;
  for (int v = 0; v < vectors(); ++v) {
    const int offset = v * 16 * shape_.scale_bytes;
    if (config_.scale_type == OMNI_DTYPE_BF16) {
      // One dword is (scale, zero): a shift and a mask widen both.
      vmovdqu32(zero(v) | k_channels(v) | T_z, ptr[reg_scales + offset]);
      vpslld(scale(v), zero(v), 16);
      vpandd(zero(v), zero(v), ptr_b[pool_word(0xFFFF0000)]);
    } else {
      kshiftrw(k6, k_channels(v), 8);
      // Sixteen (scale, zero) pairs are two registers of eight; a mask of pairs goes by quadwords.
      vmovdqu64(temporary(0) | k_channels(v) | T_z, ptr[reg_scales + offset]);
      vmovdqu64(temporary(1) | k6 | T_z, ptr[reg_scales + offset + 64]);
      vmovdqa32(scale(v), ptr[pool(every_second_from(0))]);
      vmovdqa32(zero(v), ptr[pool(every_second_from(1))]);
      vpermi2ps(scale(v), temporary(0), temporary(1));
      vpermi2ps(zero(v), temporary(0), temporary(1));
    }
  }
}

void AmxFast::unpack_row(int row) {
  const int offset = row * packed_row_bytes();
  if (split_block()) {
    vpermb(temporary(0), zmm_low_channels, ptr[reg_codes + offset]);
    vpermb(temporary(1), zmm_high_channels, ptr[reg_codes + offset]);
    vpsrlw(temporary(2), temporary(0), 4);
    vpsrlw(temporary(3), temporary(1), 4);
  } else {
    constexpr std::array<uint16_t, 32> nibble_shift = {0, 0, 4, 4, 0, 0, 4, 4, 0, 0, 4, 4, 0, 0, 4, 4,
                                                       0, 0, 4, 4, 0, 0, 4, 4, 0, 0, 4, 4, 0, 0, 4, 4};
    vmovdqu8(temporary(4) | k_pair | T_z, ptr[reg_codes + offset]);
    for (int v = 0; v < vectors(); ++v) {
      vmovdqa32(temporary(v), ptr[pool(pair_index(8 * v, config_.block_width / 2, 2))]);
      vpermb(temporary(v), temporary(v), temporary(4));
      vpsrlvw(temporary(v), temporary(v), ptr[pool(nibble_shift)]);
    }
  }
  for (int v = 0; v < vectors(); ++v) {
    vpermw(temporary(v), temporary(v), zmm_table);
    vmovdqa32(ptr[reg_unpack + row * stride() + 64 * v], temporary(v));
  }
}

void AmxFast::point_at_row_values(const Xbyak::Reg64& values) {
  if (!config_.is_w4()) return;
  imul(values, reg_row, static_cast<int>(4 * config_.blocks()));
  add(values, own_slot(0));
}

void AmxFast::fold_row(const Xbyak::Reg64& sums, const Xbyak::Reg64& accumulators, const Xbyak::Reg64& row_values) {
  for (int v = 0; v < vectors(); ++v) {
    vmovaps(temporary(v), ptr[accumulators + 64 * v]);
    if (config_.is_w4()) {
      vfmadd231ps(temporary(v), scale(v), ptr[sums + 64 * v]);
      vfmadd231ps(temporary(v), zero(v), ptr_b[row_values]);
    } else {
      vaddps(temporary(v), temporary(v), ptr[sums + 64 * v]);
    }
    vmovaps(ptr[accumulators + 64 * v], temporary(v));
  }
}

void AmxFast::end_block() {
  if (config_.is_w4()) add(own_slot(0), 4);
}

}  // namespace okl::jit
