// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/torch_tg4_avx2.h"

namespace okl::jit {

TorchTg4Avx2::TorchTg4Avx2(const LinearConfig& config) : LinearTg4Avx2(config, 4, 2 * kBlockChannels * 4) {
  set_x_form(XForm::kFloats);
}

void TorchTg4Avx2::begin_block() {
  for (int i = 0; i < 8; ++i) vxorps(Xbyak::Ymm(i), Xbyak::Ymm(i), Xbyak::Ymm(i));
}

void TorchTg4Avx2::begin_group(int) {
  for (int half = 0; half < halves(); ++half) {
    for (int p = 0; p < kVectors / 2; ++p) {
      load_scales(half, p, ymm_w, ymm_x, ymm_tmp, ymm_zero);
      vmovaps(scale_slot(half, 2 * p), ymm_w);
      vmovaps(zero_slot(half, 2 * p), ymm_x);
      vmovaps(scale_slot(half, 2 * p + 1), ymm_tmp);
      vmovaps(zero_slot(half, 2 * p + 1), ymm_zero);
    }
  }
  vpxor(ymm_zero, ymm_zero, ymm_zero);
}

void TorchTg4Avx2::emit_pair(int, int pair) {
  prefetch_codes(pair);
  emit_input(2 * pair);
  emit_input(2 * pair + 1);
}

void TorchTg4Avx2::emit_input(int input) {
  vbroadcastss(ymm_x, ptr[reg_x + input * 4]);
  for (int half = 0; half < halves(); ++half) {
    unpack_half(half, input);
    for (int v = 0; v < kVectors; ++v) {
      widen(v);
      vmovaps(ymm_tmp, zero_slot(half, v));
      vfmadd231ps(ymm_tmp, ymm_w, scale_slot(half, v));
      vfmadd231ps(c(half, v), ymm_tmp, ymm_x);
    }
  }
}

void TorchTg4Avx2::finish_block() {
  begin_store_row(0);
  for (int half = 0; half < halves(); ++half) {
    for (int p = 0; p < kVectors / 2; ++p) store_pair(half, p, c(half, 2 * p), c(half, 2 * p + 1));
  }
}

}  // namespace okl::jit
