// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/panel_tg4_avx2.h"

namespace okl::jit {

void PanelTg4Avx2::unpack_chunk() {
  Xbyak::Label next_segment, next;
  mov(reg_codes, ptr[reg_args + offsetof(LinearTile, codes)]);
  mov(reg_scales, ptr[reg_args + offsetof(LinearTile, scales)]);
  mov(reg_scale_stride, ptr[reg_args + offsetof(LinearTile, scale_stride)]);
  mov(reg_write, ptr[reg_args + offsetof(PanelCall, panel)]);
  mov(reg_write_scales, ptr[reg_args + offsetof(PanelCall, group_scales)]);
  mov(reg_segments, ptr[reg_args + offsetof(PanelCall, segments)]);
  vpbroadcastd(ymm_nibbles, ptr[pool_word(15)]);
  vpbroadcastd(ymm_eight, ptr[pool_word(8)]);
  L(next_segment);
  write_scales();
  mov(reg_steps, ptr[reg_args + offsetof(PanelCall, segment_inputs)]);
  cmp(reg_segments, 1);
  cmove(reg_steps, ptr[reg_args + offsetof(PanelCall, last_segment_inputs)]);
  shr(reg_steps, 2);
  L(next);
  for (int input = 0; input < kUnrolledInputs; ++input) {
    if (input % 2 == 0) prefetch_codes(input / 2);
    unpack_input(input);
  }
  add(reg_codes, kUnrolledInputs * row_bytes());
  add(reg_write, kUnrolledInputs * step_bytes());
  dec(reg_steps);
  jnz(next, T_NEAR);
  add(reg_scales, reg_scale_stride);
  add(reg_write_scales, 2 * c_stride());
  dec(reg_segments);
  jnz(next_segment, T_NEAR);
}

void PanelTg4Avx2::write_scales() {
  for (int channel = 0; channel < config_.block_width; channel += kLanes) {
    load_natural_scales(channel, Xbyak::Ymm(0), Xbyak::Ymm(1));
    vmovaps(ptr[reg_write_scales + channel * 4], Xbyak::Ymm(0));
    vmovaps(ptr[reg_write_scales + c_stride() + channel * 4], Xbyak::Ymm(1));
  }
}

void PanelTg4Avx2::unpack_input(int input) {
  const Xbyak::Ymm low(0), high(1), first(2), second(3);
  for (int bytes = 0; bytes < row_bytes(); bytes += kLanes) {
    vpmovzxbd(high, ptr[reg_codes + input * row_bytes() + bytes]);
    vpand(low, high, ymm_nibbles);
    vpsrld(high, high, 4);
    if (split_block()) {
      unpack_eight(low, bytes, input);
      unpack_eight(high, bytes + kBlockChannels / 2, input);
    } else {
      // Adjacent pairs: interleaving leaves channels 0..3 and 8..11, 4..7 and 12..15 of the 16.
      vpunpckldq(first, low, high);
      vpunpckhdq(second, low, high);
      vperm2i128(low, first, second, 0x20);
      vperm2i128(high, first, second, 0x31);
      unpack_eight(low, 2 * bytes, input);
      unpack_eight(high, 2 * bytes + kLanes, input);
    }
  }
}

// Codes of eight channels, one a dword, become weights of the panel.
void PanelTg4Avx2::unpack_eight(const Xbyak::Ymm& codes, int first_channel, int input) {
  vpsubd(codes, codes, ymm_eight);
  vcvtdq2ps(codes, codes);
  if (torch()) {
    vmovaps(ymm_scale, ptr[reg_write_scales + first_channel * 4]);
    vfmadd213ps(codes, ymm_scale, ptr[reg_write_scales + c_stride() + first_channel * 4]);
  }
  const int column = first_channel / kColumnChannels;
  vmovaps(ptr[reg_write + column * column_bytes() + input * step_bytes() + first_channel % kColumnChannels * 4], codes);
}

void PanelTg4Avx2::zero_accumulators(int rows) {
  for (int i = 0; i < 2 * rows; ++i) vxorps(Xbyak::Ymm(i), Xbyak::Ymm(i), Xbyak::Ymm(i));
}

void PanelTg4Avx2::load_accumulators(int rows, const Xbyak::Reg64& from) {
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < 2; ++i) vmovaps(d(row, i), ptr[from + row * c_stride() + i * 32]);
  }
}

void PanelTg4Avx2::store_accumulators(int rows, const Xbyak::Reg64& to) {
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < 2; ++i) vmovaps(ptr[to + row * c_stride() + i * 32], d(row, i));
  }
}

void PanelTg4Avx2::clear_c(int rows) {
  vxorps(x(0), x(0), x(0));
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < 2; ++i) vmovaps(ptr[reg_c + row * c_stride() + i * 32], x(0));
  }
}

void PanelTg4Avx2::emit_step(int rows, int step) {
  for (int i = 0; i < 2; ++i) vmovaps(weights(i), ptr[reg_panel + step * step_bytes() + i * 32]);
  for (int row = 0; row < rows; ++row) {
    if (step == row) prefetcht0(ptr[reg_step_x + (rows + row) * x_stride()]);
    vbroadcastss(x(row), ptr[reg_step_x + row * x_stride() + step * 4]);
    for (int i = 0; i < 2; ++i) vfmadd231ps(d(row, i), weights(i), x(row));
  }
}

void PanelTg4Avx2::fold(int rows) {
  for (int i = 0; i < 2; ++i) {
    vmovaps(weights(0), ptr[reg_fold_scales + i * 32]);
    vmovaps(weights(1), ptr[reg_fold_scales + c_stride() + i * 32]);
    for (int row = 0; row < rows; ++row) {
      const Xbyak::Address c = ptr[reg_c + row * c_stride() + i * 32];
      vbroadcastss(x(row), ptr[reg_fold_sums + 4 * row]);
      vfmadd213ps(d(row, i), weights(0), c);
      vfmadd231ps(d(row, i), weights(1), x(row));
      vmovaps(c, d(row, i));
    }
  }
}

void PanelTg4Avx2::store_row() {
  vpxor(ymm_zero, ymm_zero, ymm_zero);
  for (int channel = 0; channel < config_.block_width; channel += kLanes) {
    vmovaps(Xbyak::Ymm(0), ptr[reg_c + channel * 4]);
    store_natural(Xbyak::Ymm(0), channel);
  }
}

}  // namespace okl::jit
