// SPDX-License-Identifier: Apache-2.0
// The loop nest of the panel kernels (kernels/gemv/panel_kernel.h): unpack a chunk, run all row tiles over it, store after the last
// chunk of K. `Isa` is LinearTg4Avx512 or LinearTg4Avx2, which know how to unpack, scale and store.
#pragma once

#include <cstddef>
#include <string>

#include "jit/x64/linear_tg4.h"
#include "kernels/gemv/panel_kernel.h"

namespace okl::jit {

template <typename Isa>
class PanelTg4 : public Isa {
 protected:
  PanelTg4(const PanelConfig& config, XForm form, int stack_bytes)
      : Isa(linear_config(config), 1, stack_bytes), form_(form), long_groups_(config.long_groups != 0) {
    this->set_x_form(form);
  }

  void generate() final {
    this->prologue(this->stack_bytes());
    this->load_constants();
    unpack_chunk();
    emit_tiles(config_.rows, offsetof(PanelCall, large_tiles));
    if (config_.rows > 1) emit_tiles(config_.rows - 1, offsetof(PanelCall, small_tiles));
    emit_stores();
    this->epilogue();
  }

  // --- hooks. Rows are those of the tile at reg_x; a column is what fits the registers of a tile ---
  virtual void unpack_chunk() = 0;       // and group_scales in class group
  virtual int columns() const = 0;       // of the block
  virtual int column_bytes() const = 0;  // of the panel, from one column to the next
  virtual int step_bytes() const = 0;    // of the panel, from one step to the next
  virtual void zero_accumulators(int rows) = 0;
  virtual void load_accumulators(int rows, const Xbyak::Reg64& from) = 0;
  virtual void store_accumulators(int rows, const Xbyak::Reg64& to) = 0;
  virtual void clear_c(int rows) = 0;              // may use any register that is not an accumulator
  virtual void emit_step(int rows, int step) = 0;  // one input (kFloats) or pair (kPairs) after reg_panel and reg_step_x
  virtual void fold(int rows) = 0;                 // c = fma(z, X, fma(s, d, c)) with reg_scales, reg_fold_sums, reg_c
  virtual void store_row() = 0;                    // c at reg_c to the row at reg_tmp (and the residual at reg_tmp2)

  bool torch() const { return config_.numerics == Numerics::kTorch; }
  int x_stride() const { return static_cast<int>(kPanelInputs) * (form_ == XForm::kPairs ? 2 : 4); }
  int c_stride() const { return config_.block_width * 4; }

  using Isa::add;
  using Isa::cmove;
  using Isa::cmp;
  using Isa::config_;
  using Isa::dec;
  using Isa::imul;
  using Isa::je;
  using Isa::jmp;
  using Isa::jnz;
  using Isa::jz;
  using Isa::L;
  using Isa::mov;
  using Isa::ptr;
  using Isa::reg_args;
  using Isa::reg_scales;
  using Isa::reg_sums;
  using Isa::reg_x;
  using Isa::shl;
  using Isa::shr;
  using Isa::sub;
  using Isa::T_NEAR;
  using Isa::test;

  // In the tile loops; reg_x and reg_sums are those of the tile.
  const Xbyak::Reg64 reg_panel = Xbyak::util::rsi;
  const Xbyak::Reg64 reg_step_x = Xbyak::util::rax;
  const Xbyak::Reg64 reg_fold_sums = Xbyak::util::r9;
  const Xbyak::Reg64 reg_fold_scales = Xbyak::util::r8;
  const Xbyak::Reg64 reg_c = Xbyak::util::r10;
  const Xbyak::Reg64 reg_d = Xbyak::util::r11;
  const Xbyak::Reg64 reg_tiles = Xbyak::util::rbx;
  const Xbyak::Reg64 reg_column_panel = Xbyak::util::r12;
  const Xbyak::Reg64 reg_columns = Xbyak::util::r13;
  const Xbyak::Reg64 reg_segments = Xbyak::util::r14;
  const Xbyak::Reg64 reg_steps = Xbyak::util::r15;

 private:
  static constexpr int kUnrolled = 8;      // steps of an iteration
  static constexpr int kColumnBytes = 64;  // of a row of c: 16 channels, where a block has several columns

  static LinearConfig linear_config(const PanelConfig& config) {
    LinearConfig linear{};
    linear.k = linear.group = kPanelInputs;
    linear.scale_type = config.scale_type;
    linear.y_type = config.y_type;
    linear.residual_type = config.residual_type;
    linear.epilogue = config.epilogue;
    linear.numerics = config.numerics;
    linear.rows = config.rows;
    linear.block_width = config.block_width;
    return linear;
  }

  Xbyak::Address argument(size_t offset) { return Isa::qword[reg_args + static_cast<int>(offset)]; }
  Xbyak::Address flag(size_t offset) { return Isa::byte[reg_args + static_cast<int>(offset)]; }

  // All tiles of one size. The second call goes on where the first ended: small tiles follow the large ones.
  void emit_tiles(int rows, size_t count) {
    Xbyak::Label next_tile, next_column, done;
    if (rows == config_.rows) {
      mov(reg_x, argument(offsetof(PanelCall, tile.x)));
      mov(reg_c, argument(offsetof(PanelCall, c)));
      if (long_groups_) mov(reg_d, argument(offsetof(PanelCall, d)));
    }
    if (!torch()) {
      mov(reg_sums, argument(rows == config_.rows ? offsetof(PanelCall, tile.sums) : offsetof(PanelCall, small_sums)));
    }
    mov(reg_tiles, argument(count));
    test(reg_tiles, reg_tiles);
    jz(done, T_NEAR);
    L(next_tile);
    mov(reg_column_panel, argument(offsetof(PanelCall, panel)));
    if (columns() > 1) mov(reg_columns, columns());
    L(next_column);
    emit_column(rows);
    if (columns() > 1) {
      add(reg_column_panel, column_bytes());
      add(reg_c, kColumnBytes);
      if (long_groups_) add(reg_d, kColumnBytes);
      dec(reg_columns);
      jnz(next_column, T_NEAR);
    }
    const int ahead = rows * c_stride() - (columns() > 1 ? columns() * kColumnBytes : 0);
    if (ahead != 0) add(reg_c, ahead);
    if (long_groups_ && ahead != 0) add(reg_d, ahead);
    add(reg_x, rows * x_stride());
    if (!torch()) {
      imul(reg_steps, argument(offsetof(PanelCall, sums_row_bytes)), rows);
      add(reg_sums, reg_steps);
    }
    dec(reg_tiles);
    jnz(next_tile, T_NEAR);
    L(done);
  }

  void emit_column(int rows) {
    mov(reg_panel, reg_column_panel);
    mov(reg_step_x, reg_x);
    begin_c(rows);
    if (torch()) {
      emit_torch_chain(rows);
    } else {
      emit_groups(rows);
    }
  }

  void begin_c(int rows) {
    Xbyak::Label goes_on;
    cmp(flag(offsetof(PanelCall, first)), 0);
    je(goes_on, T_NEAR);
    clear_c(rows);
    L(goes_on);
  }

  // One ascending chain through all of K: it waits in c between chunks.
  void emit_torch_chain(int rows) {
    Xbyak::Label no_iterations, next_step, done;
    load_accumulators(rows, reg_c);
    mov(reg_steps, argument(offsetof(PanelCall, inputs)));
    shr(reg_steps, 3);
    jz(no_iterations, T_NEAR);
    emit_iterations(rows);
    L(no_iterations);
    mov(reg_steps, argument(offsetof(PanelCall, inputs)));
    Isa::and_(reg_steps, kUnrolled - 1);
    jz(done, T_NEAR);
    L(next_step);
    emit_step(rows, 0);
    add(reg_panel, step_bytes());
    add(reg_step_x, 4);
    dec(reg_steps);
    jnz(next_step, T_NEAR);
    L(done);
    store_accumulators(rows, reg_c);
  }

  void emit_groups(int rows) {
    Xbyak::Label next_segment;
    mov(reg_fold_sums, reg_sums);
    mov(reg_segments, argument(offsetof(PanelCall, segments)));
    if (columns() > 1) {
      mov(reg_fold_scales, columns());
      sub(reg_fold_scales, reg_columns);
      shl(reg_fold_scales, 6);
      add(reg_fold_scales, argument(offsetof(PanelCall, group_scales)));
    } else {
      mov(reg_fold_scales, argument(offsetof(PanelCall, group_scales)));
    }
    L(next_segment);
    begin_group(rows);
    mov(reg_steps, argument(offsetof(PanelCall, segment_inputs)));
    cmp(reg_segments, 1);
    cmove(reg_steps, argument(offsetof(PanelCall, last_segment_inputs)));
    shr(reg_steps, form_ == XForm::kPairs ? 4 : 3);
    emit_iterations(rows);
    end_group(rows);
    add(reg_fold_scales, 2 * c_stride());
    add(reg_fold_sums, 4 * rows);
    dec(reg_segments);
    jnz(next_segment, T_NEAR);
  }

  void emit_iterations(int rows) {
    Xbyak::Label next;
    L(next);
    for (int step = 0; step < kUnrolled; ++step) {
      // Class group takes the odd input of a pair first; a pair of kPairs is one step.
      const bool exchanged = !torch() && form_ == XForm::kFloats;
      emit_step(rows, exchanged ? step ^ 1 : step);
    }
    add(reg_panel, kUnrolled * step_bytes());
    add(reg_step_x, kUnrolled * 4);
    dec(reg_steps);
    jnz(next, T_NEAR);
  }

  void begin_group(int rows) {
    if (!long_groups_) {
      zero_accumulators(rows);
      return;
    }
    Xbyak::Label goes_on, done;
    cmp(flag(offsetof(PanelCall, begins_group)), 0);
    je(goes_on, T_NEAR);
    zero_accumulators(rows);
    jmp(done, T_NEAR);
    L(goes_on);
    load_accumulators(rows, reg_d);
    L(done);
  }

  void end_group(int rows) {
    if (!long_groups_) {
      fold(rows);
      return;
    }
    Xbyak::Label goes_on, done;
    cmp(flag(offsetof(PanelCall, ends_group)), 0);
    je(goes_on, T_NEAR);
    fold(rows);
    jmp(done, T_NEAR);
    L(goes_on);
    store_accumulators(rows, reg_d);
    L(done);
  }

  void emit_stores() {
    Xbyak::Label next_row, done;
    mov(reg_tiles, argument(offsetof(PanelCall, finish_rows)));
    test(reg_tiles, reg_tiles);
    jz(done, T_NEAR);
    mov(reg_c, argument(offsetof(PanelCall, c)));
    mov(Isa::reg_y, argument(offsetof(LinearTile, y)));
    if (Isa::has_bias()) mov(Isa::reg_bias, argument(offsetof(LinearTile, bias)));
    if (Isa::has_residual()) mov(Isa::reg_residual, argument(offsetof(LinearTile, residual)));
    L(next_row);
    mov(Isa::reg_tmp, Isa::reg_y);
    if (Isa::has_residual()) mov(Isa::reg_tmp2, Isa::reg_residual);
    store_row();
    add(reg_c, c_stride());
    add(Isa::reg_y, argument(offsetof(LinearTile, ldy)));
    if (Isa::has_residual()) add(Isa::reg_residual, argument(offsetof(LinearTile, ld_residual)));
    dec(reg_tiles);
    jnz(next_row, T_NEAR);
    L(done);
  }

  const XForm form_;
  const bool long_groups_;
};

// Assembles `Kernel` for a configuration through the cache: the `make` of a panel kernel.
template <typename Kernel>
PanelCode make_panel(const PanelConfig& config, std::string_view name) {
  const GeneratedCode code = find_or_generate(std::string(name) + ".panel", config, [&] { return Kernel(config).assemble(); });
  return {reinterpret_cast<PanelFn>(const_cast<void*>(code.entry)), code.bytes};
}

}  // namespace okl::jit
