// SPDX-License-Identifier: Apache-2.0
// Class exact on AMX: TDPBSSD on w4s codes with their zero points taken off in the panel, or on w8s weights, which are B tiles as
// packed. Sums are integers, so the bits are those of every other tier.
#pragma once

#include "jit/x64/amx_gemm.h"
#include "kernels/gemm/exact_kernel.h"

namespace okl::jit {

class AmxExact final : public AmxGemm {
 public:
  explicit AmxExact(const ExactConfig& config) : AmxGemm(shape_of(config), arguments_of<ExactTile>()), config_(config) {}

  static size_t scratch(const ExactConfig& config) { return scratch_bytes(shape_of(config)); }

 private:
  static Shape shape_of(const ExactConfig& config);

  void load_constants() override;
  void begin_channel_block() override;
  void load_group() override;
  void unpack_row(int row) override;
  int packed_row_bytes() const override { return static_cast<int>(config_.step_bytes()); }  // four inputs
  void dot(const Xbyak::Tmm& c, const Xbyak::Tmm& a, const Xbyak::Tmm& b) override { tdpbssd(c, a, b); }
  void point_at_row_values(const Xbyak::Reg64& values) override;
  int row_values_stride() const override { return 4; }
  void fold_row(const Xbyak::Reg64& sums, const Xbyak::Reg64& accumulators, const Xbyak::Reg64& row_values) override;
  void end_group() override;
  void advance_own_pointers() override;

  // Slots of the zero points: of the current group, and of group 0 of the channel block.
  Xbyak::Address zeros_slot() { return own_slot(0); }
  Xbyak::Address block_zeros_slot() { return own_slot(1); }

  const ExactConfig config_;
  const Xbyak::Zmm zmm_low_nibbles = constant(0);
  const Xbyak::Zmm zmm_four_times = constant(1);  // VPSHUFB index: byte 0 of each dword, four times
};

}  // namespace okl::jit
