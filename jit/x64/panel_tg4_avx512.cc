// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/panel_tg4_avx512.h"

namespace okl::jit {

void PanelTg4Avx512::unpack_chunk() {
  Xbyak::Label next_segment, next;
  mov(reg_codes, ptr[reg_args + offsetof(LinearTile, codes)]);
  mov(reg_scales, ptr[reg_args + offsetof(LinearTile, scales)]);
  mov(reg_scale_stride, ptr[reg_args + offsetof(LinearTile, scale_stride)]);
  mov(reg_write, ptr[reg_args + offsetof(PanelCall, panel)]);
  mov(reg_write_scales, ptr[reg_args + offsetof(PanelCall, group_scales)]);
  mov(reg_segments, ptr[reg_args + offsetof(PanelCall, segments)]);
  L(next_segment);
  prefetch_scales(1, 1);
  for (int i = 0; i < vectors(); ++i) {
    load_scales(i, scale(i), zero(i), w(0), w(1));
    if (!torch()) {
      vmovaps(ptr[reg_write_scales + i * 64], scale(i));
      vmovaps(ptr[reg_write_scales + c_stride() + i * 64], zero(i));
    }
  }
  mov(reg_steps, ptr[reg_args + offsetof(PanelCall, segment_inputs)]);
  cmp(reg_segments, 1);
  cmove(reg_steps, ptr[reg_args + offsetof(PanelCall, last_segment_inputs)]);
  shr(reg_steps, 3);
  L(next);
  unpack_inputs();
  add(reg_codes, kUnrolledInputs * row_bytes());
  dec(reg_steps);
  jnz(next, T_NEAR);
  add(reg_scales, reg_scale_stride);
  add(reg_write_scales, 2 * c_stride());
  dec(reg_segments);
  jnz(next_segment, T_NEAR);
}

void PanelTg4Avx512::zero_accumulators(int rows) {
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < vectors(); ++i) vpxord(d(row, i), d(row, i), d(row, i));
  }
}

void PanelTg4Avx512::load_accumulators(int rows, const Xbyak::Reg64& from) {
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < vectors(); ++i) vmovaps(d(row, i), ptr[from + row * c_stride() + i * 64]);
  }
}

void PanelTg4Avx512::store_accumulators(int rows, const Xbyak::Reg64& to) {
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < vectors(); ++i) vmovaps(ptr[to + row * c_stride() + i * 64], d(row, i));
  }
}

void PanelTg4Avx512::clear_c(int rows) {
  vpxord(w(0), w(0), w(0));
  for (int offset = 0; offset < rows * c_stride(); offset += 64) vmovaps(ptr[reg_c + offset], w(0));
}

void PanelTg4Avx512::emit_step(int rows, int step) {
  for (int i = 0; i < vectors(); ++i) vmovaps(w(i), ptr[reg_panel + step * step_bytes() + i * 64]);
  for (int row = 0; row < rows; ++row) {
    const Xbyak::Zmm x(row % 2 == 0 ? zmm_x.getIdx() : 30);
    // x of the next tile: all rows together exceed L2, and the hardware prefetcher comes late (163 against 157 GFLOP/s at 512 rows
    // of 2048x2048 on one core of Emerald Rapids).
    if (step == row) prefetcht0(ptr[reg_step_x + (rows + row) * x_stride()]);
    vbroadcastss(x, ptr[reg_step_x + row * x_stride() + step * 4]);
    for (int i = 0; i < vectors(); ++i) multiply(d(row, i), w(i), x);
  }
}

void PanelTg4Avx512::fold(int rows) {
  for (int i = 0; i < vectors(); ++i) {
    vmovaps(w(0), ptr[reg_fold_scales + i * 64]);
    vmovaps(w(1), ptr[reg_fold_scales + c_stride() + i * 64]);
    for (int row = 0; row < rows; ++row) {
      const Xbyak::Address c = ptr[reg_c + row * c_stride() + i * 64];
      vfmadd213ps(d(row, i), w(0), c);
      vfmadd231ps(d(row, i), w(1), ptr_b[reg_fold_sums + 4 * row]);
      vmovaps(c, d(row, i));
    }
  }
}

void PanelTg4Avx512::store_row() {
  for (int i = 0; i < vectors(); ++i) {
    vmovaps(d(0, i), ptr[reg_c + i * 64]);
    store_vector(d(0, i), i, w(0));
  }
}

// ----------------------------------------------------------------------------------------------------------------- FMA

void PanelTg4Avx512Fma::load_constants() {
  load_channel_masks();
  load_fp32_table();
}

void PanelTg4Avx512Fma::unpack_inputs() {
  for (int input = 0; input < kUnrolledInputs; ++input) {
    if (input % 2 == 0) prefetch_codes(input / 2);
    unpack_to_fp32(input);
    for (int i = 0; i < vectors(); ++i) {
      if (torch()) vfmadd213ps(w(i), scale(i), zero(i));
      vmovaps(ptr[reg_write + input * step_bytes() + i * 64], w(i));
    }
  }
  add(reg_write, kUnrolledInputs * step_bytes());
}

// ---------------------------------------------------------------------------------------------------------------- BF16

void PanelTg4Avx512Bf16::load_constants() {
  load_channel_masks();
  load_pair_tables();
}

void PanelTg4Avx512Bf16::unpack_inputs() {
  for (int pair = 0; pair < kUnrolledInputs / 2; ++pair) {
    prefetch_codes(pair);
    unpack_to_pairs(pair);
    for (int i = 0; i < vectors(); ++i) vmovaps(ptr[reg_write + pair * step_bytes() + i * 64], w(i));
  }
  add(reg_write, kUnrolledInputs / 2 * step_bytes());
}

}  // namespace okl::jit
