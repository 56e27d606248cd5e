// SPDX-License-Identifier: Apache-2.0
// Class group on AVX-512: d in registers through a group, c in registers for up to three rows and on the stack beyond.
#pragma once

#include "jit/x64/linear_tg4_avx512.h"

namespace okl::jit {

class GroupTg4Avx512 : public LinearTg4Avx512 {
 protected:
  GroupTg4Avx512(const LinearConfig& config, int pairs_per_iteration)
      : LinearTg4Avx512(config, pairs_per_iteration, c_in_registers(config) ? 0 : c_bytes(config)) {}

  Xbyak::Zmm d(int row, int i) const { return Xbyak::Zmm(row * vectors() + i); }

  void begin_block() final;
  void begin_group(int) final;
  void end_group(int) final;
  void finish_block() final;

 private:
  static int c_bytes(const LinearConfig& config) { return config.rows * config.block_width * 4; }
  static bool c_in_registers(const LinearConfig& config) { return 2 * config.rows * (config.block_width / kLanes) <= 24; }

  Xbyak::Zmm c(int row, int i) const { return Xbyak::Zmm((config_.rows + row) * vectors() + i); }
  Xbyak::Address c_slot(int row, int i) { return ptr[rsp + (row * vectors() + i) * 64]; }
};

// AVX-512 BF16 with VBMI: VPERMB pairs up two inputs, VPERMW looks both codes up as bf16, VDPBF16PS does the pair.
class GroupTg4Avx512Bf16 final : public GroupTg4Avx512 {
 public:
  static constexpr int kMaxRows = 6;  // 24 d, 4 w, x, table and two indices: all 32 registers
  explicit GroupTg4Avx512Bf16(const LinearConfig& config);

 private:
  void load_constants() override;
  void emit_pair(int, int pair) override;
  bool has_bf16_convert() const override { return true; }
};

// AVX-512 F/BW/DQ/VL: the same chain as two FMAs, the odd input first.
class GroupTg4Avx512Fma final : public GroupTg4Avx512 {
 public:
  static constexpr int kMaxRows = 6;
  explicit GroupTg4Avx512Fma(const LinearConfig& config);

 private:
  void load_constants() override;
  void emit_pair(int, int pair) override;
};

}  // namespace okl::jit
