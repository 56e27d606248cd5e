// SPDX-License-Identifier: Apache-2.0
// Class torch on AVX-512: c = fma(x, fma(q - 8, s, z), c), one ascending chain over K for each output, as PyTorch's kernel.
#pragma once

#include "jit/x64/linear_tg4_avx512.h"

namespace okl::jit {

class TorchTg4Avx512 final : public LinearTg4Avx512 {
 public:
  static constexpr int kMaxRows = 4;  // 16 c, 4 scales, 4 zeros, 4 w, x, table
  explicit TorchTg4Avx512(const LinearConfig& config);

 private:
  void load_constants() override;
  void begin_block() override;
  void begin_group(int) override;
  void emit_pair(int, int pair) override;
  void emit_last_input(int input) override { emit_input(input); }
  void end_group(int) override {}
  void finish_block() override;
  void emit_input(int input);

  Xbyak::Zmm c(int row, int i) const { return Xbyak::Zmm(row * vectors() + i); }
  Xbyak::Zmm scale(int i) const { return Xbyak::Zmm(16 + i); }
  Xbyak::Zmm zero(int i) const { return Xbyak::Zmm(20 + i); }
};

}  // namespace okl::jit
