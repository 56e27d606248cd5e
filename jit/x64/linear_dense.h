// SPDX-License-Identifier: Apache-2.0
// The loop nest of the dense tile kernels (kernels/gemm/dense_kernel.h): row tiles, passes over the channels of the block, groups,
// inputs. How many channels a pass takes, how scales are read and how a row is stored is the business of the class for one ISA.
#pragma once

#include "jit/x64/dense_weights.h"

namespace okl::jit {

class LinearDense : public DenseWeights {
 public:
  static constexpr int kMaxRows = 6;

 protected:
  LinearDense(const DenseConfig& config, VectorWidth width, DenseElement element, int stack_bytes)
      : DenseWeights(config, width, storage_of(config, element)), stack_bytes_(stack_bytes) {}

  void generate() final;

  // --- what a class for one ISA provides ---
  virtual int vectors_in_pass() const = 0;
  virtual void load_masks() = 0;            // once a call
  virtual void load_scale(int vector) = 0;  // w(0) = scales at reg_tmp of a vector of the block, unwanted ones +0
  virtual void store_rows(int pass) = 0;    // epilogue and store of every acc; may clobber every register v(i)

  // Accumulators, then w, x and the constants of the weights: 24 + 4 + 2 + 2 or 12 + 2 + 1 + 1.
  Xbyak::Xmm acc(int row, int i) const { return v(row * vectors_in_pass() + i); }
  int w_registers() const { return zmm_ ? 4 : 2; }
  Xbyak::Xmm w(int i) const { return v((zmm_ ? 24 : 12) + i); }
  Xbyak::Xmm x(int row) const { return v(zmm_ ? 28 + row % 2 : 14); }

  bool has_bias() const { return config_.epilogue & OMNI_EPILOGUE_BIAS; }
  bool has_residual() const { return config_.epilogue & OMNI_EPILOGUE_RESIDUAL; }
  bool residual_is_f32() const { return config_.residual_type == OMNI_DTYPE_F32; }
  bool y_is_f32() const { return config_.y_type == OMNI_DTYPE_F32; }
  bool torch_store() const { return false; }
  int scale_bytes() const { return config_.scale_type == OMNI_DTYPE_F32 ? 4 : 2; }

  // Points reg_tmp at y[row] and reg_tmp2 at residual[row].
  void begin_store_row(int row);

  const Xbyak::Reg64 reg_args = rdi;
  const Xbyak::Reg64 reg_weights = rsi;
  const Xbyak::Reg64 reg_x = rdx;  // rows 0, 1, 2 at distances of reg_x_stride
  const Xbyak::Reg64 reg_x3 = r8;  // rows 3, 4, 5
  const Xbyak::Reg64 reg_ahead = r9;
  const Xbyak::Reg64 reg_panel = rcx;  // kFill: where the converted weights go
  const Xbyak::Reg64 reg_x_stride = r10;
  const Xbyak::Reg64 reg_y = r11;  // of the tile
  const Xbyak::Reg64 reg_tiles = rbx;
  const Xbyak::Reg64 reg_bias = r12;
  const Xbyak::Reg64 reg_sums = r13;  // of the tile
  const Xbyak::Reg64 reg_steps = r14;
  const Xbyak::Reg64 reg_tmp = rax;
  const Xbyak::Reg64 reg_tmp2 = r15;  // also the rows of the next tile, which are only asked for

 private:
  static constexpr int kUnrolledInputs = 8;
  static constexpr int kSumRowBytes = kBlockWidth * 4;

  enum Slot : int { kX, kResidual, kInputsLeft, kScales, kSlots };
  static constexpr int kSlotBytes = 64;
  static_assert(kSlots * 8 <= kSlotBytes);
  Xbyak::Address slot(int index) { return qword[rsp + stack_bytes_ + index * 8]; }

  void load_arguments();
  void next_tile();
  void emit_pass(int pass);
  void emit_whole(int pass);
  void emit_groups(int pass);
  void emit_inputs(int pass);
  void emit_steps(int pass, int steps, bool prefetch);
  void emit_last_input(int pass);
  template <typename Load>
  void multiply_rows(const Load& load, int slot, int pass);
  void prefetch(int slot, int slots);
  void prefetch_next_rows();

  void clear_accumulators();
  void load_accumulators(int pass);
  void save_accumulators(int pass);
  void clear_sums(int pass);
  void scale_accumulators(int pass);
  void fold_group(int pass);

  Xbyak::Address weights_at(int pass, int i, int step);
  Xbyak::Address panel_at(int pass, int i, int slot);
  Xbyak::Address x_at(int row, int offset);
  Xbyak::Address sum_at(int pass, int row, int i);
  int passes() const { return vectors() / vectors_in_pass(); }
  int pass_width() const { return vectors_in_pass() * lanes(); }
  bool fills() const { return config_.panel == DensePanel::kFill; }
  bool reads() const { return config_.panel == DensePanel::kRead; }
  int slot_bytes() const { return pass_width() * 4; }  // of a panel
  int step_bytes() const { return reads() ? slot_bytes() : config_.block_width * 4; }

  const int stack_bytes_;
};

}  // namespace okl::jit
