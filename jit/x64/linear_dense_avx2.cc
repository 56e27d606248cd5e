// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/linear_dense_avx2.h"

#include <cstddef>

namespace okl::jit {

// Tiles that share a panel agree on its passes.
int LinearDenseAvx2::vectors_in_pass() const {
  if (config_.panel != DensePanel::kNone || config_.rows > 3) return 2;
  if (config_.rows == 1) return vectors();
  return vectors() % 4 == 0 ? 4 : 2;
}

void LinearDenseAvx2::load_masks() { load_channel_masks(reg_args + offsetof(DenseTile, channels)); }

void LinearDenseAvx2::load_scale(int vector) {
  const Xbyak::Ymm scale(w(0).getIdx()), mask(w(1).getIdx());
  const int first = vector * kLanes;
  vmovdqa(mask, channel_mask(first));
  if (config_.scale_type == OMNI_DTYPE_F32) {
    vpmaskmovd(scale, mask, ptr[reg_tmp + first * 4]);
    return;
  }
  // AVX2 has no masked 16-bit load: the channels that are wanted one by one, unless all are.
  Xbyak::Label partial, done;
  const Xbyak::Reg32 word_bits = reg_tmp2.cvt32();
  vmovmskps(word_bits, mask);
  cmp(word_bits, 0xFF);
  jne(partial);
  // Not from memory at once: qemu 7.2 would read 32 bytes there, beyond the array.
  vmovdqu(Xbyak::Xmm(scale.getIdx()), ptr[reg_tmp + first * 2]);
  vpmovzxwd(scale, Xbyak::Xmm(scale.getIdx()));
  vpslld(scale, scale, 16);
  jmp(done, T_NEAR);
  L(partial);
  vxorps(scale, scale, scale);
  vmovaps(ptr[rsp + kMaskBytes], scale);
  for (int lane = 0; lane < kLanes; ++lane) {
    Xbyak::Label unwanted;
    test(dword[rsp + (first + lane) * 4], 1);
    jz(unwanted);
    movzx(word_bits, word[reg_tmp + (first + lane) * 2]);
    shl(word_bits, 16);
    mov(ptr[rsp + kMaskBytes + lane * 4], word_bits);
    L(unwanted);
  }
  vmovaps(scale, ptr[rsp + kMaskBytes]);
  L(done);
}

// The store needs registers that may hold accumulators.
void LinearDenseAvx2::store_rows(int pass) {
  const Xbyak::Ymm c(0), zero(12);
  const int count = vectors_in_pass();
  for (int i = 0; i < config_.rows * count; ++i) vmovaps(ptr[rsp + kStackBase + i * 32], Xbyak::Ymm(i));
  vxorps(zero, zero, zero);
  for (int row = 0; row < config_.rows; ++row) {
    begin_store_row(row);
    for (int i = 0; i < count; ++i) {
      vmovaps(c, ptr[rsp + kStackBase + (row * count + i) * 32]);
      store_natural(c, (pass * count + i) * kLanes);
    }
  }
}

}  // namespace okl::jit
