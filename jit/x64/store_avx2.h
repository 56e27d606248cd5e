// SPDX-License-Identifier: Apache-2.0
// Epilogue and store of 8 channels of a row on AVX2, for every generator of linear kernels: the counterpart of store_avx512.h.
//
// `Base` says what to do and where as there. The stack from [rsp] on holds a mask of every channel of the block and a vector of
// scratch, kStackBase bytes that the derived class reserves.
#pragma once

#include <xbyak/xbyak.h>

#include <array>
#include <cstdint>

namespace okl::jit {

template <typename Base>
class StoreAvx2 : public Base {
 protected:
  using Base::Base;
  static constexpr int kLanes = 8;
  static constexpr int kChannels = 64;
  static constexpr int kMaskBytes = kChannels * 4;
  static constexpr int kStackBase = kMaskBytes + 64;

  // All ones where the channel is wanted, for channels first..+7.
  Xbyak::Address channel_mask(int first_channel) { return this->ptr[this->rsp + first_channel * 4]; }

  // Bit c of the word at `channels` becomes dword c of the masks. Clobbers reg_tmp and ymm15.
  void load_channel_masks(const Xbyak::RegExp& channels) {
    constexpr std::array<uint32_t, 8> bits = {1, 2, 4, 8, 16, 32, 64, 128};
    const Xbyak::Ymm mask(15);
    for (int first = 0; first < kChannels; first += kLanes) {
      this->movzx(this->reg_tmp.cvt32(), this->byte[channels + first / 8]);
      this->vmovd(Xbyak::Xmm(mask.getIdx()), this->reg_tmp.cvt32());
      this->vpbroadcastd(mask, Xbyak::Xmm(mask.getIdx()));
      this->vpand(mask, mask, this->ptr[this->pool(bits)]);
      this->vpcmpeqd(mask, mask, this->ptr[this->pool(bits)]);
      this->vmovdqa(channel_mask(first), mask);
    }
  }

  // y = store(epilogue(c)) of channels first_channel..+7 of the row at reg_tmp and reg_tmp2. c, ymm8..10, ymm15 and ecx are
  // clobbered, ymm12 must be zero.
  void store_natural(const Xbyak::Ymm& c, int first_channel) {
    this->vmovdqa(mask_, channel_mask(first_channel));
    if (this->has_bias()) {
      this->vmaskmovps(operand_, mask_, this->ptr[this->reg_bias + first_channel * 4]);
      this->vaddps(c, c, operand_);
    }
    if (this->has_residual() && this->residual_is_f32()) {
      this->vmaskmovps(operand_, mask_, this->ptr[this->reg_tmp2 + first_channel * 4]);
      this->vaddps(c, c, operand_);
    }
    if (this->has_residual() && !this->residual_is_f32()) add_bf16_residual(c, first_channel);
    this->vcmpunordps(operand_, c, c);
    if (this->y_is_f32()) {
      this->vblendvps(c, c, this->ptr[this->pool(in_every_lane(0x7FC00000))], operand_);
      this->vmaskmovps(this->ptr[this->reg_tmp + first_channel * 4], mask_, c);
    } else {
      store_bf16(c, first_channel);
    }
  }

 private:
  static std::array<uint32_t, 8> in_every_lane(uint32_t value) {
    std::array<uint32_t, 8> values;
    values.fill(value);
    return values;
  }

  // AVX2 has no masked 16-bit load: the wanted channels one by one through the scratch vector of the stack.
  void add_bf16_residual(const Xbyak::Ymm& c, int first_channel) {
    this->vmovdqa(this->ptr[this->rsp + kMaskBytes], zero_);
    for (int lane = 0; lane < kLanes; ++lane) {
      Xbyak::Label unwanted;
      this->test(this->dword[this->rsp + (first_channel + lane) * 4], 1);
      this->jz(unwanted);
      this->movzx(this->ecx, this->word[this->reg_tmp2 + (first_channel + lane) * 2]);
      this->shl(this->ecx, 16);
      this->mov(this->ptr[this->rsp + kMaskBytes + lane * 4], this->ecx);
      this->L(unwanted);
    }
    this->vaddps(c, c, this->ptr[this->rsp + kMaskBytes]);
  }

  // On entry operand_ is the NaN mask and mask_ the channel mask.
  void store_bf16(const Xbyak::Ymm& c, int first_channel) {
    const bool torch = this->torch_store();
    if (!torch) {
      // VCVTNEPS2BF16 turns fp32 subnormals into signed zeros: so do classes group and dense everywhere.
      this->vpand(tmp_, c, this->ptr[this->pool(in_every_lane(0x7F800000))]);
      this->vpcmpeqd(tmp_, tmp_, zero_);
      this->vpand(tmp2_, c, this->ptr[this->pool(in_every_lane(0x80000000))]);
      this->vblendvps(c, c, tmp2_, tmp_);
    }
    this->vpsrld(tmp2_, c, 16);
    this->vpand(tmp2_, tmp2_, this->ptr[this->pool(in_every_lane(1))]);
    this->vpaddd(tmp2_, tmp2_, this->ptr[this->pool(in_every_lane(0x7FFF))]);
    this->vpaddd(c, c, tmp2_);
    this->vpsrld(c, c, 16);
    this->vblendvps(c, c, this->ptr[this->pool(in_every_lane(torch ? 0xFFFF : 0x7FC0))], operand_);
    this->vpackusdw(c, c, c);
    this->vpermq(c, c, 0x08);
    const Xbyak::Xmm words(c.getIdx());
    Xbyak::Label partial, done;
    this->vmovmskps(this->ecx, mask_);
    this->cmp(this->ecx, 0xFF);
    this->jne(partial);
    this->vmovdqu(this->ptr[this->reg_tmp + first_channel * 2], words);
    this->jmp(done, Xbyak::CodeGenerator::T_NEAR);
    this->L(partial);
    for (int lane = 0; lane < kLanes; ++lane) {
      Xbyak::Label unwanted;
      this->test(this->ecx, 1 << lane);
      this->jz(unwanted);
      this->vpextrw(this->ptr[this->reg_tmp + (first_channel + lane) * 2], words, lane);
      this->L(unwanted);
    }
    this->L(done);
  }

  const Xbyak::Ymm operand_ = Xbyak::Ymm(8), mask_ = Xbyak::Ymm(9), tmp_ = Xbyak::Ymm(10), zero_ = Xbyak::Ymm(12),
                   tmp2_ = Xbyak::Ymm(15);
};

}  // namespace okl::jit
