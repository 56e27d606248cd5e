// SPDX-License-Identifier: Apache-2.0
// Epilogue and store of 16 channels of a row on AVX-512, for every generator of linear kernels.
//
// `Base` says what to do (has_bias, has_residual, residual_is_f32, y_is_f32, torch_store) and where: reg_bias at the first channel
// of the block, reg_tmp at y[row] and reg_tmp2 at residual[row], likewise.
#pragma once

#include <xbyak/xbyak.h>

namespace okl::jit {

template <typename Base>
class StoreAvx512 : public Base {
 protected:
  using Base::Base;
  static constexpr int kLanes = 16;

  Xbyak::Opmask k_channels(int i) const { return Xbyak::Opmask(1 + i % 4); }
  const Xbyak::Opmask k_tmp = Xbyak::util::k5;
  const Xbyak::Opmask k_tmp2 = Xbyak::util::k6;

  // Masks of the vectors of a block from its channel bits at `channels`; clobbers reg_tmp.
  void load_channel_masks(const Xbyak::Address& channels, int vectors) {
    this->mov(this->reg_tmp, channels);
    for (int i = 0; i < vectors; ++i) {
      this->kmovw(k_channels(i), this->reg_tmp.cvt32());
      if (i + 1 < vectors) this->shr(this->reg_tmp, kLanes);
    }
  }

  // y[row] = store(epilogue(c)) for vector i, counted on through the block that follows; c is clobbered.
  void store_vector(const Xbyak::Zmm& c, int i, const Xbyak::Zmm& tmp) {
    // Masked lanes of memory operands are never read, so bias and residual may end at the last channel.
    if (this->has_bias()) this->vaddps(c | k_channels(i), c, this->ptr[this->reg_bias + i * kLanes * 4]);
    if (this->has_residual()) {
      if (this->residual_is_f32()) {
        this->vaddps(c | k_channels(i), c, this->ptr[this->reg_tmp2 + i * kLanes * 4]);
      } else {
        this->vpmovzxwd(tmp | k_channels(i) | Xbyak::util::T_z, this->ptr[this->reg_tmp2 + i * kLanes * 2]);
        this->vpslld(tmp, tmp, 16);
        this->vaddps(c, c, tmp);
      }
    }
    this->vcmpunordps(k_tmp, c, c);
    if (this->y_is_f32()) {
      this->vbroadcastss(c | k_tmp, this->ptr[this->pool_word(0x7FC00000)]);
      this->vmovups(this->ptr[this->reg_tmp + i * kLanes * 4] | k_channels(i), c);
    } else {
      store_bf16(c, i, tmp);
    }
  }

  virtual bool has_bf16_convert() const { return false; }

 private:
  void store_bf16(const Xbyak::Zmm& c, int i, const Xbyak::Zmm& tmp) {
    const Xbyak::Address destination = this->ptr[this->reg_tmp + i * kLanes * 2];
    const Xbyak::Ymm half(c.getIdx());
    const bool torch = this->torch_store();
    if (!torch && has_bf16_convert()) {
      this->vbroadcastss(c | k_tmp, this->ptr[this->pool_word(0x7FC00000)]);
      this->vcvtneps2bf16(half, c);
      this->vmovdqu16(destination | k_channels(i), half);
      return;
    }
    if (!torch) {
      // VCVTNEPS2BF16 turns fp32 subnormals into signed zeros: so do classes group and dense everywhere.
      this->vptestnmd(k_tmp2, c, this->ptr_b[this->pool_word(0x7F800000)]);
      this->vpandd(c | k_tmp2, c, this->ptr_b[this->pool_word(0x80000000)]);
    }
    // Round to nearest even on the integer: u + 0x7FFF + (bit 16 of u).
    this->vpsrld(tmp, c, 16);
    this->vpandd(tmp, tmp, this->ptr_b[this->pool_word(1)]);
    this->vpaddd(tmp, tmp, this->ptr_b[this->pool_word(0x7FFF)]);
    this->vpaddd(c, c, tmp);
    this->vpsrld(c, c, 16);
    this->vpbroadcastd(c | k_tmp, this->ptr[this->pool_word(torch ? 0xFFFF : 0x7FC0)]);
    this->vpmovdw(destination | k_channels(i), c);
  }
};

}  // namespace okl::jit
