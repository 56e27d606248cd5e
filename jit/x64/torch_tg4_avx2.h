// SPDX-License-Identifier: Apache-2.0
// Class torch on AVX2 + FMA: c in ymm0..7, the group's scales and zeros widened on the stack in accumulator order.
#pragma once

#include "jit/x64/linear_tg4_avx2.h"

namespace okl::jit {

class TorchTg4Avx2 final : public LinearTg4Avx2 {
 public:
  static constexpr int kMaxRows = 1;
  explicit TorchTg4Avx2(const LinearConfig& config);

 private:
  void begin_block() override;
  void begin_group(int pass) override;
  void emit_pair(int pass, int pair) override;
  void emit_last_input(int input) override { emit_input(input); }
  void end_group(int) override {}
  void finish_block() override;
  void emit_input(int input);

  Xbyak::Ymm c(int half, int v) const { return Xbyak::Ymm(half * kVectors + v); }
  Xbyak::Address scale_slot(int half, int v) { return ptr[rsp + kStackBase + (half * kVectors + v) * 32]; }
  Xbyak::Address zero_slot(int half, int v) { return ptr[rsp + kStackBase + (8 + half * kVectors + v) * 32]; }
};

}  // namespace okl::jit
