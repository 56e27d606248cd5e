// SPDX-License-Identifier: Apache-2.0
// Batches on AVX2, both classes: tiles of six rows by a column of 16 channels, d (class torch: c) in twelve registers. One input of
// a tile takes 12 FMAs and 8 loads; a column of the panel is 8 KiB and stays in any L1.
#pragma once

#include "jit/x64/linear_tg4_avx2.h"
#include "jit/x64/panel_tg4.h"

namespace okl::jit {

class PanelTg4Avx2 final : public PanelTg4<LinearTg4Avx2> {
 public:
  static constexpr int kMaxRows = 6;
  explicit PanelTg4Avx2(const PanelConfig& config) : PanelTg4(config, XForm::kFloats, 0) {}

 private:
  static constexpr int kColumnChannels = 16;
  static constexpr int kUnrolledInputs = 4;  // of the unpacking loop

  void unpack_chunk() override;
  int columns() const override { return config_.block_width / kColumnChannels; }
  int column_bytes() const override { return static_cast<int>(kPanelInputs) * step_bytes(); }
  int step_bytes() const override { return kColumnChannels * 4; }
  void zero_accumulators(int rows) override;
  void load_accumulators(int rows, const Xbyak::Reg64& from) override;
  void store_accumulators(int rows, const Xbyak::Reg64& to) override;
  void clear_c(int rows) override;
  void emit_step(int rows, int step) override;
  void fold(int rows) override;
  void store_row() override;

  void write_scales();
  void unpack_input(int input);
  void unpack_eight(const Xbyak::Ymm& codes, int first_channel, int input);

  Xbyak::Ymm d(int row, int i) const { return Xbyak::Ymm(2 * row + i); }
  Xbyak::Ymm weights(int i) const { return Xbyak::Ymm(12 + i); }  // also scale and zero of a fold
  Xbyak::Ymm x(int row) const { return Xbyak::Ymm(14 + row % 2); }

  // While a chunk is unpacked: no accumulator is live.
  const Xbyak::Ymm ymm_nibbles = Xbyak::Ymm(4), ymm_eight = Xbyak::Ymm(5), ymm_scale = Xbyak::Ymm(6);
  const Xbyak::Reg64 reg_write = rax;
  const Xbyak::Reg64 reg_write_scales = r10;
};

}  // namespace okl::jit
