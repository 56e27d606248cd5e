// SPDX-License-Identifier: Apache-2.0
// AVX2 parts that both tg4 linear generators share. A "half" is 32 channels: the low or the high nibbles of a 64-channel block, or
// up to 32 channels of the tail, always as one byte a channel before the table look-up.
//
// Channel order inside a half: the in-lane unpacks leave vector v of a half with channels {4v..4v+3, 16+4v..16+4v+3} ("accumulator
// order"). Scales are permuted into it once a group and results out of it once a block.
#pragma once

#include "jit/x64/linear_tg4.h"
#include "jit/x64/store_avx2.h"

namespace okl::jit {

class LinearTg4Avx2 : public StoreAvx2<LinearTg4> {
 protected:
  static constexpr int kVectors = 4;  // of a half

  // `stack_bytes` of the derived class start at rsp + kStackBase, behind the channel masks and one vector of scratch.
  LinearTg4Avx2(const LinearConfig& config, int pairs_per_iteration, int stack_bytes)
      : StoreAvx2<LinearTg4>(config, VectorWidth::kYmm, pairs_per_iteration, kStackBase + stack_bytes) {}

  int halves() const { return config_.block_width > 32 ? 2 : 1; }
  bool split_block() const { return config_.block_width == kBlockChannels; }

  // Registers by role: ymm0..7 belong to the derived class.
  const Xbyak::Ymm ymm_words_low = Xbyak::Ymm(8);   // bf16 words of channels 0..7 and 16..23 of a half; scratch elsewhere
  const Xbyak::Ymm ymm_words_high = Xbyak::Ymm(9);  // 8..15 and 24..31
  const Xbyak::Ymm ymm_w = Xbyak::Ymm(10);          // fp32 (q - 8)
  const Xbyak::Ymm ymm_x = Xbyak::Ymm(11);
  const Xbyak::Ymm ymm_zero = Xbyak::Ymm(12);
  const Xbyak::Ymm ymm_table_low = Xbyak::Ymm(13);   // low bytes of bf16 (q - 8), both lanes
  const Xbyak::Ymm ymm_table_high = Xbyak::Ymm(14);  // high bytes
  const Xbyak::Ymm ymm_tmp = Xbyak::Ymm(15);

  // Pointer to the channel masks of the stack, the tables, the zero.
  void load_constants() override;
  // Nibbles of one half of input `input`, one byte a channel, looked up into the two word registers.
  void unpack_half(int half, int input);
  // ymm_w = fp32 (q - 8) of vector v of the half unpacked last.
  void widen(int v);
  // Scale and zero of two accumulator vectors (2p, 2p + 1) of a half as fp32 into four registers; clobbers ymm8, ymm9.
  void load_scales(int half, int p, const Xbyak::Ymm& scale0, const Xbyak::Ymm& zero0, const Xbyak::Ymm& scale1,
                   const Xbyak::Ymm& zero1);
  // The same of channels first_channel..+7, in their natural order.
  void load_natural_scales(int first_channel, const Xbyak::Ymm& scale, const Xbyak::Ymm& zero);
  // y[row] = store(epilogue(c0, c1)), c0 and c1 accumulator vectors (2p, 2p + 1) of a half; both are clobbered.
  void store_pair(int half, int p, const Xbyak::Ymm& c0, const Xbyak::Ymm& c1);
  void begin_store_row(int row);

 private:
  void load_bytes(int half, int input);
};

}  // namespace okl::jit
