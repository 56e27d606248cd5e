// SPDX-License-Identifier: Apache-2.0
// Dequantising a tg4 block, by input (KN) or by channel (NK). Both feed 32 bytes of codes at a time to the same step: 64 weights
// from the low and the high nibbles, stored as two runs of 32. By input, the bytes are an input of the block and each lane has its
// own channel's scale and zero; by channel, the codes were transposed, the bytes are 32 inputs of channels d and d + 32, and scale
// and zero are broadcast.
//
// NaN can only come out of a scale or zero that is not finite: such portions take a second copy of the loop, which makes every NaN
// the canonical one.
#pragma once

#include "jit/x64/generator.h"
#include "kernels/dequant/dequant_kernel.h"

namespace okl::jit {

class DequantTg4 : public Generator {
 public:
  static constexpr int kStep = 32;  // inputs

 protected:
  DequantTg4(const DequantConfig& config, VectorWidth width) : Generator(width), config_(config) {}

  void generate() final;

  virtual void load_constants() = 0;
  // By input: the channel whose scale stands at `position` of 64, in the order in which emit_step() makes weights.
  virtual int channel_at(int position) const = 0;
  virtual void load_lane_scales() = 0;  // by input, once: from lane_scale() and lane_zero()
  // By channel: 32 inputs at reg_codes_ to column reg_tile_ of the 32 rows there.
  virtual void transpose_codes() = 0;
  virtual void broadcast_scales() = 0;  // by channel: those of reg_pair_ and 32 channels on
  // 64 weights of the 32 bytes at [codes]: low nibbles to [reg_low_], high ones to [reg_high_].
  virtual void emit_step(const Xbyak::Reg64& codes, bool careful) = 0;

  bool by_input() const { return config_.order == OMNI_ORDER_KN; }
  bool wide_scales() const { return config_.scale_type == OMNI_DTYPE_F32; }
  bool wide_out() const { return config_.out_type == OMNI_DTYPE_F32; }
  int pair_bytes() const { return wide_scales() ? 8 : 4; }
  bool streaming() const { return config_.streaming != 0; }
  int out_bytes() const { return wide_out() ? 4 : 2; }

  void store(const Xbyak::Address& out, const Xbyak::Xmm& values) { streaming() ? vmovntps(out, values) : vmovups(out, values); }

  // The stack: by input, scales and zeros of 64 lanes; by channel, 32 rows of transposed codes and scratch of the transpose.
  static constexpr int kTilePitch = kDequantInputs;
  static constexpr int kTileBytes = 32 * kTilePitch;
  Xbyak::Address lane_scale(int position) { return ptr[rsp + 4 * position]; }
  Xbyak::Address lane_zero(int position) { return ptr[rsp + 256 + 4 * position]; }
  Xbyak::Address tile_row(int row) { return ptr[reg_tile_ + kTilePitch * row]; }
  Xbyak::Address scratch(int block) { return ptr[rsp + kTileBytes + 32 * block]; }

  const DequantConfig config_;

  const Xbyak::Reg64 reg_args_ = rdi;
  const Xbyak::Reg64 reg_codes_ = rsi;
  const Xbyak::Reg64 reg_pair_ = rdx;  // (scale, zero) of the current channel; of channel 0 by input
  const Xbyak::Reg64 reg_out_ = rcx;   // row of channel d; by input, the current row
  const Xbyak::Reg64 reg_ld_ = r8;
  const Xbyak::Reg64 reg_inputs_ = r9;
  const Xbyak::Reg64 reg_low_ = r10;
  const Xbyak::Reg64 reg_high_ = r11;
  const Xbyak::Reg64 reg_tile_ = rbx;
  const Xbyak::Reg64 reg_count_ = r12;
  const Xbyak::Reg64 reg_channels_ = r13;
  const Xbyak::Reg64 reg_half_rows_ = r14;  // 32 * ld
  const Xbyak::Reg64 reg_row_codes_ = r15;

 private:
  void load_arguments();
  void spread_scales();
  void transpose_all();
  void jump_unless_finite(Xbyak::Label& careful);
  void emit_inputs(bool careful);
  void emit_channels(bool careful);
};

class DequantTg4Avx512 final : public DequantTg4 {
 public:
  explicit DequantTg4Avx512(const DequantConfig& config) : DequantTg4(config, VectorWidth::kZmm) {}

 private:
  void load_constants() override;
  int channel_at(int position) const override;
  void load_lane_scales() override;
  void transpose_codes() override;
  void broadcast_scales() override;
  void emit_step(const Xbyak::Reg64& codes, bool careful) override;

  void emit_levels(const Xbyak::Reg64& codes);
  void round_to_bf16(const Xbyak::Zmm& even, const Xbyak::Zmm& odd);
  // Registers 0..3 of a step: 0 and 1 hold the low nibbles' weights.
  Xbyak::Zmm weight(int i) const { return Xbyak::Zmm(i); }
  Xbyak::Zmm scale(int i) const { return Xbyak::Zmm(16 + (by_input() ? i : i / 2)); }
  Xbyak::Zmm zero(int i) const { return Xbyak::Zmm(20 + (by_input() ? i : i / 2)); }

  const Xbyak::Zmm zmm_tmp_ = zmm4;
  const Xbyak::Zmm zmm_tmp2_ = zmm5;
  const Xbyak::Zmm zmm_levels_ = zmm24;  // -8.0 .. 7.0
  const Xbyak::Zmm zmm_half_ = zmm25;    // 0x7FFF
  const Xbyak::Zmm zmm_one_ = zmm26;
  const Xbyak::Zmm zmm_nan_ = zmm27;
  const Xbyak::Opmask k_odd_ = k1;  // odd words
};

class DequantTg4Avx2 final : public DequantTg4 {
 public:
  explicit DequantTg4Avx2(const DequantConfig& config) : DequantTg4(config, VectorWidth::kYmm) {}

 private:
  void load_constants() override;
  int channel_at(int position) const override;
  void load_lane_scales() override {}  // operands of the multiply-adds
  void transpose_codes() override;
  void broadcast_scales() override;
  void emit_step(const Xbyak::Reg64& codes, bool careful) override;

  void emit_levels(int half);
  void multiply_add(int half, int i, bool careful);
  void round_to_bf16(const Xbyak::Ymm& even, const Xbyak::Ymm& odd);
  Xbyak::Address pool_ymm(uint32_t word);

  Xbyak::Ymm weight(int i) const { return Xbyak::Ymm(i); }
  Xbyak::Ymm scale(int half) const { return Xbyak::Ymm(8 + half); }
  Xbyak::Ymm zero(int half) const { return Xbyak::Ymm(10 + half); }

  const Xbyak::Ymm ymm_tmp_ = ymm4;
  const Xbyak::Ymm ymm_tmp2_ = ymm5;
  const Xbyak::Ymm ymm_codes_ = ymm6;
  const Xbyak::Ymm ymm_low_bytes_ = ymm12;  // of bf16 -8.0 .. 7.0
  const Xbyak::Ymm ymm_high_bytes_ = ymm13;
  const Xbyak::Ymm ymm_half_ = ymm14;  // 0x7FFF
  const Xbyak::Ymm ymm_one_ = ymm15;
};

}  // namespace okl::jit
