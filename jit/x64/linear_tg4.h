// SPDX-License-Identifier: Apache-2.0
// The loop nest that every tg4 linear generator shares: blocks, groups, pairs of inputs, epilogue. What a step, a fold and a store
// are made of is the business of the class for one (numerics, ISA).
#pragma once

#include "jit/x64/generator.h"
#include "kernels/gemv/linear_kernel.h"

namespace okl::jit {

class LinearTg4 : public Generator {
 protected:
  LinearTg4(const LinearConfig& config, VectorWidth width, int pairs_per_iteration, int stack_bytes);

  void generate() override;
  void load_arguments();
  void advance_block();

  // --- hooks of the shared loop nest, in the order in which they run; a class with its own generate() needs none ---
  virtual void load_constants() {}          // once a call
  virtual void begin_block() {}             // c = +0
  virtual void begin_group(int) {}          // d = +0 (group), or scale and zero into registers (torch)
  virtual void emit_pair(int, int) {}       // inputs 2*pair and 2*pair+1 after reg_codes and reg_x
  virtual void emit_last_input(int) {}      // a single input where class torch meets an odd K
  virtual void end_group(int) {}            // c = fma(z, X, fma(s, d, c)) (group)
  virtual void finish_block() {}            // epilogue and store
  virtual int passes() const { return 1; }  // over the codes of each group: more where d does not fit the registers at once

  bool has_bias() const { return config_.epilogue & OMNI_EPILOGUE_BIAS; }
  bool has_residual() const { return config_.epilogue & OMNI_EPILOGUE_RESIDUAL; }
  bool residual_is_f32() const { return config_.residual_type == OMNI_DTYPE_F32; }
  bool y_is_f32() const { return config_.y_type == OMNI_DTYPE_F32; }
  bool torch_store() const { return config_.numerics == Numerics::kTorch; }
  int row_bytes() const { return config_.block_width / 2; }  // of one input in the block
  int scale_bytes() const { return config_.scale_type == OMNI_DTYPE_F32 ? 4 : 2; }
  int y_bytes() const { return config_.y_type == OMNI_DTYPE_F32 ? 4 : 2; }
  int residual_bytes() const { return config_.residual_type == OMNI_DTYPE_F32 ? 4 : 2; }
  int x_bytes_per_pair() const { return x_form_bytes_per_pair_; }
  void set_x_form(XForm form) { x_form_bytes_per_pair_ = form == XForm::kPairs ? 4 : 8; }
  int stack_bytes() const { return stack_bytes_; }
  // Byte offset of a pair of inputs (kPairs) or of one input (kFloats) in row `row` of the prepared rows.
  int x_offset(int row, int element) const;
  // Asks for the codes that a forward stream will need 4 KiB later. The hardware prefetcher stops at page ends and cannot run ahead
  // of a loop that is busy: one row of 13312x2048 on two cores of Emerald Rapids takes 830 us without and 600 with (VDPBF16PS).
  void prefetch_codes(int pair);
  // destination = base + row * (the stride at `stride_offset` of the arguments). Rows are few and stores rare: no register is kept.
  void row_pointer(const Xbyak::Reg64& destination, const Xbyak::Reg64& base, size_t stride_offset, int row);

  const LinearConfig config_;

  const Xbyak::Reg64 reg_args = rdi;
  const Xbyak::Reg64 reg_codes = rsi;  // runs through the whole portion: tg4 is one forward stream
  const Xbyak::Reg64 reg_x = rdx;      // restarts with each block
  const Xbyak::Reg64 reg_sums = rcx;   // likewise
  const Xbyak::Reg64 reg_scales = r8;  // scales of the current group
  const Xbyak::Reg64 reg_scale_stride = r9;
  const Xbyak::Reg64 reg_block_scales = r10;  // scales of group 0 of the current block
  const Xbyak::Reg64 reg_y = r11;
  const Xbyak::Reg64 reg_blocks = rbx;
  const Xbyak::Reg64 reg_bias = r12;
  const Xbyak::Reg64 reg_residual = r13;
  const Xbyak::Reg64 reg_groups = r14;
  const Xbyak::Reg64 reg_iterations = r15;
  const Xbyak::Reg64 reg_tmp = rax;
  const Xbyak::Reg64 reg_tmp2 = r15;  // outside the pair loop

 private:
  void emit_groups();
  void emit_group(int64_t inputs);
  void emit_inputs(int pass, int64_t inputs);
  int64_t inputs_of_group(int64_t g) const;

  const int pairs_per_iteration_;
  const int stack_bytes_;
  int x_form_bytes_per_pair_ = 8;
};

// Assembles `Kernel` for a configuration through the cache: the `make` of a JIT row.
template <typename Kernel>
LinearCode make_linear(const LinearConfig& config, std::string_view name) {
  const GeneratedCode code = find_or_generate(name, config, [&] { return Kernel(config).assemble(); });
  return {reinterpret_cast<LinearTileFn>(const_cast<void*>(code.entry)), code.bytes};
}

}  // namespace okl::jit
