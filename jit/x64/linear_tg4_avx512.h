// SPDX-License-Identifier: Apache-2.0
// AVX-512 parts that every tg4 linear generator shares: channel masks, nibble unpacking to fp32 and scales. Epilogue and stores:
// store_avx512.h.
#pragma once

#include "jit/x64/linear_tg4.h"
#include "jit/x64/store_avx512.h"

namespace okl::jit {

class LinearTg4Avx512 : public StoreAvx512<LinearTg4> {
 protected:
  LinearTg4Avx512(const LinearConfig& config, int pairs_per_iteration, int stack_bytes)
      : StoreAvx512<LinearTg4>(config, VectorWidth::kZmm, pairs_per_iteration, stack_bytes) {}

  int vectors() const { return config_.block_width / kLanes; }  // of 16 channels in a block
  bool split_block() const { return config_.block_width == kBlockChannels; }

  // Registers by role; d and c are laid out by the derived class in zmm0..23.
  Xbyak::Zmm w(int i) const { return Xbyak::Zmm(24 + i); }
  const Xbyak::Zmm zmm_x = Xbyak::Zmm(28);
  const Xbyak::Zmm zmm_table = Xbyak::Zmm(29);  // q -> q - 8, fp32 [16] or bf16 [32]

  // VPERMI2PS index: dwords first, first + 2, ... of two registers.
  static std::array<uint32_t, 16> every_second_from(uint32_t first);

  void load_channel_masks();
  void load_fp32_table();
  // w(i) = fp32 (q - 8) of input `input` after reg_codes, 16 channels each.
  void unpack_to_fp32(int input);
  // w(i) = bf16 (q - 8) of inputs 2 * pair and 2 * pair + 1, one pair a dword; takes zmm30, zmm31 and the table. Needs VBMI.
  void load_pair_tables();
  void unpack_to_pairs(int pair);
  // Scale and zero of 16 channels as fp32, masked channels +0. The four registers must differ.
  void load_scales(int i, const Xbyak::Zmm& scale, const Xbyak::Zmm& zero, const Xbyak::Zmm& tmp0, const Xbyak::Zmm& tmp1);
  // Asks for the scales of the current group of `blocks` blocks, `blocks_ahead` further on: they are 256 bytes every N * 4, too
  // scattered for the hardware prefetcher.
  void prefetch_scales(int blocks_ahead, int blocks);
  // Points reg_tmp at y[row] and reg_tmp2 at residual[row].
  void begin_store_row(int row);

 private:
  const Xbyak::Zmm zmm_low_channels = Xbyak::Zmm(30);   // VPERMB index: channels 0..15 (and 32..47) of an input pair
  const Xbyak::Zmm zmm_high_channels = Xbyak::Zmm(31);  // channels 16..31 (and 48..63)

  void unpack_split_pairs(int pair);
  void unpack_tail_pairs(int pair);
};

}  // namespace okl::jit
