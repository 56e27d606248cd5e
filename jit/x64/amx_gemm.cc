// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/amx_gemm.h"

#include <cstddef>

namespace okl::jit {
namespace {

using Xbyak::Tmm;

constexpr int kRowBytesAt = 16, kRowsAt = 48;  // in what LDTILECFG reads
constexpr int kUnrolledSteps = 8;
constexpr int kUnpackedRows = 4;  // of the panel, in one iteration

}  // namespace

void AmxGemm::generate() {
  Xbyak::Label next_channel_block;
  prologue(kStackBytes);
  load_arguments();
  load_constants();
  configure_tiles();
  L(next_channel_block);
  clear_accumulators();
  mov(reg_x, ptr[reg_args + args_.x]);
  if (shape_.scale_bytes != 0) mov(reg_scales, ptr[rsp + kScales]);
  begin_channel_block();
  emit_groups();
  finish_rows();
  advance_channel_block();
  dec(qword[rsp + kChannelBlocksLeft]);
  jnz(next_channel_block, T_NEAR);
  tilerelease();
  epilogue();
}

void AmxGemm::load_arguments() {
  mov(reg_codes, ptr[reg_args + args_.codes]);
  mov(reg_x_stride, ptr[reg_args + args_.x_stride]);
  mov(reg_scratch, ptr[reg_args + args_.scratch]);
  mov(reg_stride, stride());
  const auto copy = [this](size_t field, int slot) {
    mov(reg_tmp, ptr[reg_args + field]);
    mov(qword[rsp + slot], reg_tmp);
  };
  copy(args_.blocks, kChannelBlocksLeft);
  copy(args_.y, kY);
  if (starts_at_bias()) copy(args_.bias, kBias);
  if (has_residual()) copy(args_.residual, kResidual);
  if (shape_.scale_bytes != 0) {
    copy(args_.scales, kScales);
    mov(reg_scale_stride, ptr[reg_args + args_.scale_stride]);
  }
  load_channel_masks(ptr[reg_args + args_.channels], vectors());
}

// The row counts of C and A are those of the call: a call of fewer rows than a tile touches no others.
void AmxGemm::configure_tiles() {
  std::array<uint8_t, 64> configuration{};
  configuration[0] = 1;  // palette
  const auto set = [&](int tile, int rows, int row_bytes) {
    configuration[static_cast<size_t>(kRowsAt + tile)] = static_cast<uint8_t>(rows);
    configuration[static_cast<size_t>(kRowBytesAt + 2 * tile)] = static_cast<uint8_t>(row_bytes);
  };
  const int other_bytes = half_steps() ? kStepBytes / 2 : kStepBytes;
  for (int v = 0; v < vectors(); ++v) set(v, kTileRows, 64);
  set(kA, kTileRows, kStepBytes);
  set(kB, kStepBytes / 4, 64);
  set(kOtherA, kTileRows, other_bytes);
  set(kOtherB, other_bytes / 4, 64);
  vmovups(temporary(0), ptr[pool(configuration)]);
  vmovups(ptr[rsp + kConfiguration], temporary(0));
  mov(reg_tmp, ptr[reg_args + args_.rows]);
  mov(r12d, kTileRows);
  cmp(reg_tmp, r12);
  cmovg(reg_tmp, r12);
  mov(qword[rsp + kTileRowsSlot], reg_tmp);
  for (int v = 0; v < vectors(); ++v) mov(ptr[rsp + kConfiguration + kRowsAt + v], al);
  mov(ptr[rsp + kConfiguration + kRowsAt + kA], al);
  mov(ptr[rsp + kConfiguration + kRowsAt + kOtherA], al);
  ldtilecfg(ptr[rsp + kConfiguration]);
}

void AmxGemm::clear_accumulators() {
  Xbyak::Label next_row;
  if (starts_at_bias()) mov(reg_tmp, ptr[rsp + kBias]);
  for (int v = 0; v < vectors(); ++v) {
    if (starts_at_bias()) {
      vmovups(temporary(v) | k_channels(v) | T_z, ptr[reg_tmp + 64 * v]);
    } else {
      vpxord(temporary(v), temporary(v), temporary(v));
    }
  }
  lea(reg_accumulators, ptr[reg_scratch + panel_bytes(shape_) + kTileRows * stride()]);
  mov(reg_rows_left, ptr[reg_args + args_.rows]);
  L(next_row);
  for (int v = 0; v < vectors(); ++v) vmovaps(ptr[reg_accumulators + 64 * v], temporary(v));
  add(reg_accumulators, reg_stride);
  dec(reg_rows_left);
  jnz(next_row);
}

void AmxGemm::emit_groups() {
  const int64_t groups = (shape_.padded_k + shape_.group - 1) / shape_.group;
  const int64_t last = shape_.padded_k - (groups - 1) * shape_.group;
  const int64_t looped = last == shape_.group ? groups : groups - 1;
  if (looped > 0) {
    Xbyak::Label next_group;
    mov(qword[rsp + kGroupsLeft], static_cast<uint32_t>(looped));
    L(next_group);
    emit_group(shape_.group);
    dec(qword[rsp + kGroupsLeft]);
    jnz(next_group, T_NEAR);
  }
  if (last != shape_.group) emit_group(last);
}

void AmxGemm::emit_group(int64_t inputs) {
  load_group();
  const int64_t whole = inputs / shape_.block, left = inputs % shape_.block;
  if (whole > 0) {
    Xbyak::Label next_block;
    mov(qword[rsp + kBlocksLeft], static_cast<uint32_t>(whole));
    L(next_block);
    emit_block(shape_.block);
    dec(qword[rsp + kBlocksLeft]);
    jnz(next_block, T_NEAR);
  }
  if (left > 0) emit_block(left);
  if (shape_.scale_bytes != 0) add(reg_scales, reg_scale_stride);
  end_group();
}

void AmxGemm::emit_block(int64_t inputs) {
  if (shape_.panel) unpack_panel(inputs);
  emit_row_tiles(inputs);
  add(reg_x, static_cast<uint32_t>(inputs * shape_.x_bytes));
  if (!shape_.panel) add(reg_codes, static_cast<uint32_t>(inputs * shape_.x_bytes / 4 * stride()));
  end_block();
}

// Blocks are multiples of 32 inputs: of 8 rows of int8 B tiles and of 16 of bf16.
void AmxGemm::unpack_panel(int64_t inputs) {
  Xbyak::Label next_rows;
  mov(reg_unpack, reg_scratch);
  mov(reg_steps, static_cast<uint32_t>(inputs * shape_.x_bytes / 4 / kUnpackedRows));
  L(next_rows);
  // The stream of packed weights is read once; the hardware prefetcher stops at the ends of pages.
  constexpr int kAhead = 2048;
  for (int at = 0; at < kUnpackedRows * packed_row_bytes(); at += 64) prefetcht0(ptr[reg_codes + kAhead + at]);
  for (int row = 0; row < kUnpackedRows; ++row) unpack_row(row);
  add(reg_codes, kUnpackedRows * packed_row_bytes());
  add(reg_unpack, kUnpackedRows * stride());
  dec(reg_steps);
  jnz(next_rows, T_NEAR);
}

// Tiles of rows from 0 on. The last one reaches back to be whole: the rows that it shares with the one before are computed again
// and folded once, so that one configuration serves all.
void AmxGemm::emit_row_tiles(int64_t inputs) {
  Xbyak::Label next_tile;
  xor_(reg_row.cvt32(), reg_row.cvt32());
  L(next_tile);
  mov(reg_tmp, ptr[reg_args + args_.rows]);
  sub(reg_tmp, ptr[rsp + kTileRowsSlot]);
  cmp(reg_tmp, reg_row);
  cmovg(reg_tmp, reg_row);  // the first row of the tile
  mov(reg_a, reg_tmp);
  imul(reg_a, reg_x_stride);
  add(reg_a, reg_x);
  mov(reg_b, shape_.panel ? reg_scratch : reg_codes);
  emit_tile_products(inputs);
  fold_rows();
  cmp(reg_row, ptr[reg_args + args_.rows]);
  jl(next_tile, T_NEAR);
}

// One run of tile instructions with nothing between them but, in long blocks, the loop; the tile's first row stays in reg_tmp.
void AmxGemm::emit_tile_products(int64_t inputs) {
  const int64_t bytes = inputs * shape_.x_bytes, steps = bytes / kStepBytes;
  int64_t left = steps;
  for (int v = 0; v < vectors(); ++v) tilezero(Tmm(v));
  if (steps > kUnrolledSteps) {
    Xbyak::Label next_steps;
    mov(reg_steps, static_cast<uint32_t>(steps / kUnrolledSteps));
    L(next_steps);
    emit_steps(0, kUnrolledSteps);
    add(reg_a, kUnrolledSteps * kStepBytes);
    add(reg_b, kUnrolledSteps * (kStepBytes / 4) * stride());
    dec(reg_steps);
    jnz(next_steps, T_NEAR);
    left = steps % kUnrolledSteps;
  }
  emit_steps(0, static_cast<int>(left));
  if (bytes % kStepBytes != 0) emit_half_step(static_cast<int>(left));
  for (int v = 0; v < vectors(); ++v)
    tilestored(ptr[reg_scratch + reg_stride + static_cast<int>(panel_bytes(shape_)) + 64 * v], Tmm(v));
}

void AmxGemm::emit_steps(int first_step, int count) {
  const bool alternate = !half_steps();
  for (int step = first_step; step < first_step + count; ++step) {
    const Tmm a(alternate && step % 2 != 0 ? kOtherA : kA);
    tileloadd(a, ptr[reg_a + reg_x_stride + step * kStepBytes]);
    for (int v = 0; v < vectors(); ++v) {
      const Tmm b(alternate && v % 2 != 0 ? kOtherB : kB);
      tileloadd(b, ptr[reg_b + reg_stride + step * (kStepBytes / 4) * stride() + 64 * v]);
      dot(Tmm(v), a, b);
    }
  }
}

void AmxGemm::emit_half_step(int at_step) {
  tileloadd(Tmm(kOtherA), ptr[reg_a + reg_x_stride + at_step * kStepBytes]);
  for (int v = 0; v < vectors(); ++v) {
    tileloadd(Tmm(kOtherB), ptr[reg_b + reg_stride + at_step * (kStepBytes / 4) * stride() + 64 * v]);
    dot(Tmm(v), Tmm(kOtherA), Tmm(kOtherB));
  }
}

// Rows [reg_row, first + tile rows), where first is in reg_tmp; reg_row moves on to the end.
void AmxGemm::fold_rows() {
  Xbyak::Label next_row;
  mov(reg_rows_left, reg_tmp);
  add(reg_rows_left, ptr[rsp + kTileRowsSlot]);
  mov(reg_steps, reg_rows_left);  // where the tile ends
  sub(reg_rows_left, reg_row);
  imul(reg_accumulators, reg_row, stride());
  lea(reg_accumulators, ptr[reg_scratch + reg_accumulators + panel_bytes(shape_) + kTileRows * stride()]);
  point_at_row_values(reg_row_values);
  sub(reg_row, reg_tmp);  // rows of the tile that were folded before
  imul(reg_row, reg_row, stride());
  lea(reg_tmp, ptr[reg_scratch + reg_row + panel_bytes(shape_)]);
  mov(reg_row, reg_steps);
  L(next_row);
  fold_row(reg_tmp, reg_accumulators, reg_row_values);
  add(reg_tmp, reg_stride);
  add(reg_accumulators, reg_stride);
  if (row_values_stride() != 0) add(reg_row_values, row_values_stride());
  dec(reg_rows_left);
  jnz(next_row, T_NEAR);
}

void AmxGemm::finish_rows() {
  Xbyak::Label next_row;
  lea(reg_accumulators, ptr[reg_scratch + panel_bytes(shape_) + kTileRows * stride()]);
  mov(reg_tmp, ptr[rsp + kY]);
  if (has_residual()) mov(reg_tmp2, ptr[rsp + kResidual]);
  mov(reg_rows_left, ptr[reg_args + args_.rows]);
  L(next_row);
  for (int v = 0; v < vectors(); ++v) {
    vmovaps(temporary(v), ptr[reg_accumulators + 64 * v]);
    store_vector(temporary(v), v, temporary(4 + v));
  }
  add(reg_accumulators, reg_stride);
  add(reg_tmp, ptr[reg_args + args_.ldy]);
  if (has_residual()) add(reg_tmp2, ptr[reg_args + args_.ld_residual]);
  dec(reg_rows_left);
  jnz(next_row, T_NEAR);
}

void AmxGemm::advance_channel_block() {
  constexpr int kChannels = 64;
  const auto bytes_of = [](uint16_t type) { return type == OMNI_DTYPE_F32 ? 4 : 2; };
  add(qword[rsp + kY], kChannels * bytes_of(shape_.y_type));
  if (starts_at_bias()) add(qword[rsp + kBias], kChannels * 4);
  if (has_residual()) add(qword[rsp + kResidual], kChannels * bytes_of(shape_.residual_type));
  if (shape_.scale_bytes != 0) add(qword[rsp + kScales], kChannels * shape_.scale_bytes);
  advance_own_pointers();
}

}  // namespace okl::jit
