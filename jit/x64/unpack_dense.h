// SPDX-License-Identifier: Apache-2.0
// Fills a panel: packed w16 or w8s weights of a chunk as fp32 in the order of slots, or w8s as bf16 pairs.
#pragma once

#include "jit/x64/dense_weights.h"

namespace okl::jit {

class UnpackDense : public DenseWeights {
 public:
  UnpackDense(const DenseConfig& config, VectorWidth width, DenseElement element)
      : DenseWeights(config, width, config.weights == OMNI_FORMAT_W16 ? Storage::kW16 : Storage::kW8s), element_(element) {}

 private:
  void generate() override;
  void emit_step(int step);
  void emit_pairs(int step, int i);
  void emit_last_input();
  void store(int slot, int i, const Xbyak::Xmm& value);

  // Where vector i of a slot stands: AVX-512 tiles take the block at once, AVX2 tiles 16 channels a pass.
  Xbyak::Address panel_at(int slot, int i);
  int step_panel_bytes() const { return step_panel_slots() * panel_width() * 4; }
  int step_panel_slots() const { return element_ == DenseElement::kBf16Pair ? step_inputs() / 2 : step_inputs(); }
  int panel_width() const { return zmm_ ? config_.block_width : kPassWidth; }

  static constexpr int kPassWidth = 16;
  static constexpr int kUnrolledSteps = 2;

  const DenseElement element_;
  const Xbyak::Reg64 reg_args = rdi;
  const Xbyak::Reg64 reg_weights = rsi;
  const Xbyak::Reg64 reg_panel = rdx;
  const Xbyak::Reg64 reg_steps = rcx;
  const Xbyak::Reg64 reg_inputs = r8;
};

}  // namespace okl::jit
