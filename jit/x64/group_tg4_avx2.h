// SPDX-License-Identifier: Apache-2.0
// Class group on AVX2 + FMA: d in ymm0..7 through a group, c on the stack in accumulator order.
#pragma once

#include "jit/x64/linear_tg4_avx2.h"

namespace okl::jit {

// One row takes both halves of a block in one pass (8 d). Two rows take a half at a time (2 x 4 d): the group's codes, at most 8
// KiB for g = 256, then come from L1 the second time.
class GroupTg4Avx2 final : public LinearTg4Avx2 {
 public:
  static constexpr int kMaxRows = 2;
  explicit GroupTg4Avx2(const LinearConfig& config);

 private:
  static int c_bytes(const LinearConfig& config) { return config.rows * kBlockChannels * 4; }

  void begin_block() override;
  void begin_group(int pass) override;
  void emit_pair(int pass, int pair) override;
  void end_group(int pass) override;
  void finish_block() override;

  int passes() const override { return half_at_a_time() ? halves() : 1; }

  void fold_half(int half);
  bool half_at_a_time() const { return config_.rows > 1; }
  Xbyak::Ymm d(int row, int half, int v) const { return Xbyak::Ymm(half_at_a_time() ? row * kVectors + v : half * kVectors + v); }
  Xbyak::Address c_slot(int row, int half, int v) { return ptr[rsp + kStackBase + ((row * 2 + half) * kVectors + v) * 32]; }
};

}  // namespace okl::jit
