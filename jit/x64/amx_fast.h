// SPDX-License-Identifier: Apache-2.0
// Class fast on AMX: TDPBF16PS on tg4 codes looked up into bf16 tiles, or on w16 weights, which are B tiles as packed.
#pragma once

#include "jit/x64/amx_gemm.h"
#include "kernels/fast/fast_kernel.h"

namespace okl::jit {

class AmxFast final : public AmxGemm {
 public:
  explicit AmxFast(const FastConfig& config) : AmxGemm(shape_of(config), arguments_of<FastTile>()), config_(config) {}

  static size_t scratch(const FastConfig& config) { return scratch_bytes(shape_of(config)); }

 private:
  static Shape shape_of(const FastConfig& config);

  void load_constants() override;
  void begin_channel_block() override;
  void load_group() override;
  void unpack_row(int row) override;
  int packed_row_bytes() const override { return config_.is_w4() ? config_.block_width : stride(); }  // two inputs
  void dot(const Xbyak::Tmm& c, const Xbyak::Tmm& a, const Xbyak::Tmm& b) override { tdpbf16ps(c, a, b); }
  void point_at_row_values(const Xbyak::Reg64& values) override;
  int row_values_stride() const override { return config_.is_w4() ? static_cast<int>(4 * config_.blocks()) : 0; }
  void fold_row(const Xbyak::Reg64& sums, const Xbyak::Reg64& accumulators, const Xbyak::Reg64& row_values) override;
  void end_block() override;

  bool split_block() const { return config_.block_width == kFastBlockChannels; }

  const FastConfig config_;
  const Xbyak::Zmm zmm_table = constant(0);          // q -> bf16 (q - 8), twice
  const Xbyak::Zmm zmm_low_channels = constant(1);   // VPERMB index: channels 0..15 (and 32..47) of an input pair
  const Xbyak::Zmm zmm_high_channels = constant(2);  // channels 16..31 (and 48..63)
  const Xbyak::Opmask k_pair = k7;                   // the bytes of an input pair of a tail
};

}  // namespace okl::jit
