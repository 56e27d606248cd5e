// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/linear_dense_avx512.h"

#include <cstddef>

namespace okl::jit {

void LinearDenseAvx512::load_masks() { load_channel_masks(ptr[reg_args + offsetof(DenseTile, channels)], vectors()); }

void LinearDenseAvx512::load_scale(int vector) {
  const Xbyak::Zmm scale(w(0).getIdx());
  if (config_.scale_type == OMNI_DTYPE_F32) {
    vmovups(scale | k_channels(vector) | T_z, ptr[reg_tmp + vector * kLanes * 4]);
  } else {
    vpmovzxwd(scale | k_channels(vector) | T_z, ptr[reg_tmp + vector * kLanes * 2]);
    vpslld(scale, scale, 16);
  }
}

void LinearDenseAvx512::store_rows(int) {
  for (int row = 0; row < config_.rows; ++row) {
    begin_store_row(row);
    for (int i = 0; i < vectors(); ++i) store_vector(Xbyak::Zmm(acc(row, i).getIdx()), i, Xbyak::Zmm(w(0).getIdx()));
  }
}

}  // namespace okl::jit
