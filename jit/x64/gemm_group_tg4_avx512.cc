// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/gemm_group_tg4_avx512.h"

#include <cstddef>

namespace okl::jit {

GemmGroupTg4Avx512::GemmGroupTg4Avx512(const LinearConfig& config) : LinearTg4Avx512(config, kChunkInputs / 2, 0) {
  set_x_form(XForm::kFloats);
}

void GemmGroupTg4Avx512::generate() {
  Xbyak::Label next_block;
  prologue(panel_offset() + panel_bytes() + 64);
  load_arguments();
  load_channel_masks();
  load_fp32_table();
  L(next_block);
  begin_block();
  emit_all_groups();
  finish_block();
  advance_block();
  dec(reg_blocks);
  jnz(next_block, T_NEAR);
  epilogue();
}

void GemmGroupTg4Avx512::begin_block() {
  vpxord(w(0), w(0), w(0));
  for (int row = 0; row < config_.rows; ++row) {
    for (int i = 0; i < vectors(); ++i) vmovaps(c_slot(row, i), w(0));
  }
  mov(reg_x, ptr[reg_args + offsetof(LinearTile, x)]);
  mov(reg_sums, ptr[reg_args + offsetof(LinearTile, sums)]);
  mov(reg_scales, reg_block_scales);
}

void GemmGroupTg4Avx512::emit_all_groups() {
  const int64_t groups = config_.groups();
  const int64_t first = config_.padded_inputs_in_group(0) / kChunkInputs;
  const int64_t last = config_.padded_inputs_in_group(groups - 1) / kChunkInputs;
  const int64_t looped = first == last ? groups : groups - 1;
  if (looped > 0) {
    Xbyak::Label next_group;
    mov(reg_groups, looped);
    L(next_group);
    emit_group(first);
    dec(reg_groups);
    jnz(next_group, T_NEAR);
  }
  if (first != last) emit_group(last);
}

void GemmGroupTg4Avx512::emit_group(int64_t chunks) {
  prefetch_scales(1, 1);
  vpxord(w(0), w(0), w(0));
  for (int row = 0; row < config_.rows; ++row) {
    for (int i = 0; i < vectors(); ++i) vmovaps(d_slot(row, i), w(0));
  }
  Xbyak::Label next_chunk;
  mov(reg_tmp, chunks);
  mov(chunks_left(), reg_tmp);
  L(next_chunk);
  unpack_chunk();
  const RowTiles tiles(config_.rows, kTileRows);
  for (uint32_t tile = 0; tile < tiles.tiles; ++tile) {
    run_tile(static_cast<int>(tiles.first(tile)), static_cast<int>(tiles.rows(tile)));
  }
  add(reg_x, kChunkInputs * config_.rows * 4);
  dec(chunks_left());
  jnz(next_chunk, T_NEAR);
  fold_group();
}

void GemmGroupTg4Avx512::unpack_chunk() {
  Xbyak::Label next;
  lea(reg_panel, ptr[rsp + panel_offset()]);
  mov(reg_iterations, kChunkInputs / kUnrolledInputs);
  L(next);
  for (int input = 0; input < kUnrolledInputs; ++input) {
    if (input % 2 == 0) prefetch_codes(input / 2);
    unpack_to_fp32(input);
    for (int i = 0; i < vectors(); ++i) vmovaps(ptr[reg_panel + input * row_vector_bytes() + i * 64], w(i));
  }
  add(reg_panel, kUnrolledInputs * row_vector_bytes());
  add(reg_codes, kUnrolledInputs * row_bytes());
  dec(reg_iterations);
  jnz(next, T_NEAR);
}

void GemmGroupTg4Avx512::run_tile(int first_row, int rows) {
  Xbyak::Label next;
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < vectors(); ++i) vmovaps(d(row, i), d_slot(first_row + row, i));
  }
  lea(reg_panel, ptr[rsp + panel_offset()]);
  mov(reg_iterations, kChunkInputs / kUnrolledInputs);
  L(next);
  for (int pair = 0; pair < kUnrolledInputs; pair += 2) {
    emit_input(pair + 1, first_row, rows);  // the odd input of a pair first
    emit_input(pair, first_row, rows);
  }
  add(reg_panel, kUnrolledInputs * row_vector_bytes());
  add(reg_x, kUnrolledInputs * config_.rows * 4);
  dec(reg_iterations);
  jnz(next, T_NEAR);
  sub(reg_x, kChunkInputs * config_.rows * 4);
  for (int row = 0; row < rows; ++row) {
    for (int i = 0; i < vectors(); ++i) vmovaps(d_slot(first_row + row, i), d(row, i));
  }
}

void GemmGroupTg4Avx512::emit_input(int input, int first_row, int rows) {
  for (int i = 0; i < vectors(); ++i) vmovaps(w(i), ptr[reg_panel + input * row_vector_bytes() + i * 64]);
  for (int row = 0; row < rows; ++row) {
    const Xbyak::Zmm x(row % 2 == 0 ? zmm_x.getIdx() : 30);
    vbroadcastss(x, ptr[reg_x + (input * config_.rows + first_row + row) * 4]);
    for (int i = 0; i < vectors(); ++i) vfmadd231ps(d(row, i), w(i), x);
  }
}

void GemmGroupTg4Avx512::fold_group() {
  const Xbyak::Zmm scale = w(0), zero = w(1);
  for (int i = 0; i < vectors(); ++i) {
    load_scales(i, scale, zero, w(2), w(3));
    for (int row = 0; row < config_.rows; ++row) {
      const Xbyak::Zmm sum(row % 16);  // no d is live here: independent registers keep the rows apart
      vmovaps(sum, c_slot(row, i));
      vfmadd231ps(sum, scale, d_slot(row, i));
      vfmadd231ps(sum, zero, ptr_b[reg_sums + 4 * row]);
      vmovaps(c_slot(row, i), sum);
    }
  }
  add(reg_scales, reg_scale_stride);
  add(reg_sums, 4 * config_.rows);
}

void GemmGroupTg4Avx512::finish_block() {
  for (int row = 0; row < config_.rows; ++row) {
    begin_store_row(row);
    for (int i = 0; i < vectors(); ++i) {
      vmovaps(zmm_x, c_slot(row, i));
      store_vector(zmm_x, i, w(0));
    }
  }
}

}  // namespace okl::jit
