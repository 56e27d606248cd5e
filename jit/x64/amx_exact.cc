// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/amx_exact.h"

#include <algorithm>
#include <cstddef>

namespace okl::jit {

AmxGemm::Shape AmxExact::shape_of(const ExactConfig& config) {
  Shape shape{};
  shape.padded_k = config.padded_k();
  shape.group = config.groups() == 1 ? shape.padded_k : config.group;
  shape.block = std::min((config.block + 31) / 32 * 32, shape.group);
  shape.width = config.block_width;
  shape.x_bytes = 1;
  shape.panel = config.is_w4();
  shape.scale_bytes = static_cast<int>(config.scale_bytes());
  shape.y_type = config.y_type;
  shape.residual_type = config.residual_type;
  shape.epilogue = config.epilogue;
  shape.rows = config.rows;
  return shape;
}

void AmxExact::load_constants() {
  if (!config_.is_w4()) return;
  vpbroadcastd(zmm_low_nibbles, ptr[pool_word(0x0F0F0F0F)]);
  if (config_.zeros) {
    constexpr std::array<uint32_t, 4> kFourTimes = {0, 0x04040404, 0x08080808, 0x0C0C0C0C};
    vbroadcasti32x4(zmm_four_times, ptr[pool(kFourTimes)]);
    mov(reg_tmp, ptr[reg_args + offsetof(ExactTile, zeros)]);
    mov(block_zeros_slot(), reg_tmp);
  } else {
    for (int v = 0; v < vectors(); ++v) vpbroadcastd(zero(v), ptr[pool_word(0x08080808)]);
  }
}

void AmxExact::begin_channel_block() {
  if (!config_.zeros) return;
  mov(reg_tmp, block_zeros_slot());
  mov(zeros_slot(), reg_tmp);
}

// Masked lanes of memory operands are never read: scales and zeros may end at the last channel.
void AmxExact::load_group() {
  if (config_.zeros) mov(reg_tmp, zeros_slot());
  for (int v = 0; v < vectors(); ++v) {
    if (config_.scale_type == OMNI_DTYPE_F32) {
      vmovups(scale(v) | k_channels(v) | T_z, ptr[reg_scales + 64 * v]);
    } else {
      vpmovzxwd(scale(v) | k_channels(v) | T_z, ptr[reg_scales + 32 * v]);
      vpslld(scale(v), scale(v), 16);
    }
    if (config_.zeros) {
      vpmovzxbd(zero(v) | k_channels(v) | T_z, ptr[reg_tmp + 16 * v]);
      vpshufb(zero(v), zero(v), zmm_four_times);
    }
  }
}

// Register h of a step holds channels 32h to 32h + 15 in its low nibbles and the next sixteen in its high ones: two rows of B
// tiles.
void AmxExact::unpack_row(int row) {
  for (int h = 0; h < vectors() / 2; ++h) {
    const Xbyak::Zmm low = temporary(2 * h), high = temporary(2 * h + 1);
    vmovdqu32(high, ptr[reg_codes + row * packed_row_bytes() + 64 * h]);
    vpandd(low, high, zmm_low_nibbles);
    vpsrlw(high, high, 4);
    vpandd(high, high, zmm_low_nibbles);
    vpsubb(low, low, zero(2 * h));
    vpsubb(high, high, zero(2 * h + 1));
    vmovdqa32(ptr[reg_unpack + row * stride() + 128 * h], low);
    vmovdqa32(ptr[reg_unpack + row * stride() + 128 * h + 64], high);
  }
}

void AmxExact::point_at_row_values(const Xbyak::Reg64& values) {
  mov(values, ptr[reg_args + offsetof(ExactTile, x_scales)]);
  lea(values, ptr[values + reg_row * 4]);
}

// C = fma(float(sum) * x_scale, w_scale, C)
void AmxExact::fold_row(const Xbyak::Reg64& sums, const Xbyak::Reg64& accumulators, const Xbyak::Reg64& row_values) {
  const Xbyak::Zmm x_scale = temporary(8);
  vbroadcastss(x_scale, ptr[row_values]);
  for (int v = 0; v < vectors(); ++v) {
    const Xbyak::Zmm sum = temporary(v), c = temporary(4 + v);
    vcvtdq2ps(sum, ptr[sums + 64 * v]);
    vmulps(sum, sum, x_scale);
    vmovaps(c, ptr[accumulators + 64 * v]);
    vfmadd231ps(c, sum, scale(v));
    vmovaps(ptr[accumulators + 64 * v], c);
  }
}

void AmxExact::end_group() {
  if (!config_.zeros) return;
  mov(reg_tmp, ptr[reg_args + offsetof(ExactTile, zero_stride)]);
  add(zeros_slot(), reg_tmp);
}

void AmxExact::advance_own_pointers() {
  if (config_.zeros) add(block_zeros_slot(), kExactBlockChannels);
}

}  // namespace okl::jit
