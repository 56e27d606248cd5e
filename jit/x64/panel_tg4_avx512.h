// SPDX-License-Identifier: Apache-2.0
// Large batches on AVX-512: tiles of six rows by a block of 64 channels, d (class torch: c) in 24 registers.
//
// One input of a tile takes 24 FMAs on two ports, 12 cycles, and 10 loads, so that the FMAs decide; unpacking an input costs 6
// cycles once for all rows of a span. Codes, panel, x of a tile and scales are what L1 sees; c of a span is in L2 and met once a
// group.
#pragma once

#include "jit/x64/linear_tg4_avx512.h"
#include "jit/x64/panel_tg4.h"

namespace okl::jit {

class PanelTg4Avx512 : public PanelTg4<LinearTg4Avx512> {
 public:
  static constexpr int kMaxRows = 6;

 protected:
  PanelTg4Avx512(const PanelConfig& config, XForm form) : PanelTg4(config, form, 0) {}

  static constexpr int kUnrolledInputs = 8;  // of the unpacking loop
  virtual void unpack_inputs() = 0;          // kUnrolledInputs after reg_codes to reg_write
  virtual void multiply(const Xbyak::Zmm& d, const Xbyak::Zmm& weights, const Xbyak::Zmm& x) = 0;

  void unpack_chunk() final;
  int columns() const final { return 1; }
  int column_bytes() const final { return 0; }
  int step_bytes() const final { return c_stride(); }
  void zero_accumulators(int rows) final;
  void load_accumulators(int rows, const Xbyak::Reg64& from) final;
  void store_accumulators(int rows, const Xbyak::Reg64& to) final;
  void clear_c(int rows) final;
  void emit_step(int rows, int step) final;
  void fold(int rows) final;
  void store_row() final;

  Xbyak::Zmm d(int row, int i) const { return Xbyak::Zmm(row * vectors() + i); }
  // Of class torch while it unpacks: no accumulator is live.
  Xbyak::Zmm scale(int i) const { return Xbyak::Zmm(i); }
  Xbyak::Zmm zero(int i) const { return Xbyak::Zmm(4 + i); }
  const Xbyak::Reg64 reg_write = rax;
  const Xbyak::Reg64 reg_write_scales = r10;
};

// fp32 panel, both classes.
class PanelTg4Avx512Fma final : public PanelTg4Avx512 {
 public:
  explicit PanelTg4Avx512Fma(const PanelConfig& config) : PanelTg4Avx512(config, XForm::kFloats) {}

 private:
  void load_constants() override;
  void unpack_inputs() override;
  void multiply(const Xbyak::Zmm& d, const Xbyak::Zmm& weights, const Xbyak::Zmm& x) override { vfmadd231ps(d, weights, x); }
};

// Panel of bf16 pairs, VDPBF16PS: class group where that instruction runs at its full rate.
class PanelTg4Avx512Bf16 final : public PanelTg4Avx512 {
 public:
  explicit PanelTg4Avx512Bf16(const PanelConfig& config) : PanelTg4Avx512(config, XForm::kPairs) {}

 private:
  void load_constants() override;
  void unpack_inputs() override;
  void multiply(const Xbyak::Zmm& d, const Xbyak::Zmm& weights, const Xbyak::Zmm& x) override { vdpbf16ps(d, weights, x); }
  bool has_bf16_convert() const override { return true; }
};

}  // namespace okl::jit
