// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/group_tg4_avx2.h"

namespace okl::jit {

GroupTg4Avx2::GroupTg4Avx2(const LinearConfig& config) : LinearTg4Avx2(config, 4, c_bytes(config)) { set_x_form(XForm::kFloats); }

void GroupTg4Avx2::begin_block() {
  for (int row = 0; row < config_.rows; ++row) {
    for (int half = 0; half < halves(); ++half) {
      for (int v = 0; v < kVectors; ++v) vmovaps(c_slot(row, half, v), ymm_zero);
    }
  }
}

void GroupTg4Avx2::begin_group(int) {
  for (int i = 0; i < 8; ++i) vxorps(Xbyak::Ymm(i), Xbyak::Ymm(i), Xbyak::Ymm(i));
}

void GroupTg4Avx2::emit_pair(int pass, int pair) {
  if (pass == 0) prefetch_codes(pair);
  for (int input : {2 * pair + 1, 2 * pair}) {
    for (int half = pass; half < (half_at_a_time() ? pass + 1 : halves()); ++half) {
      unpack_half(half, input);
      for (int v = 0; v < kVectors; ++v) {
        widen(v);
        for (int row = 0; row < config_.rows; ++row) {
          vbroadcastss(ymm_x, ptr[reg_x + x_offset(row, input)]);
          vfmadd231ps(d(row, half, v), ymm_w, ymm_x);
        }
      }
    }
  }
}

void GroupTg4Avx2::end_group(int pass) {
  for (int half = pass; half < (half_at_a_time() ? pass + 1 : halves()); ++half) fold_half(half);
  vpxor(ymm_zero, ymm_zero, ymm_zero);
}

void GroupTg4Avx2::fold_half(int half) {
  // Registers are short here: ymm_zero serves as the fourth scale register, end_group() clears it again.
  const Xbyak::Ymm scale[2] = {ymm_w, ymm_tmp}, zero[2] = {ymm_x, ymm_zero};
  const Xbyak::Ymm c = ymm_words_low, sum = ymm_words_high;
  for (int p = 0; p < kVectors / 2; ++p) {
    load_scales(half, p, scale[0], zero[0], scale[1], zero[1]);
    for (int row = 0; row < config_.rows; ++row) {
      vbroadcastss(sum, ptr[reg_sums + 4 * row]);
      for (int odd = 0; odd < 2; ++odd) {
        const int v = 2 * p + odd;
        vmovaps(c, c_slot(row, half, v));
        vfmadd231ps(c, scale[odd], d(row, half, v));
        vfmadd231ps(c, zero[odd], sum);
        vmovaps(c_slot(row, half, v), c);
      }
    }
  }
}

void GroupTg4Avx2::finish_block() {
  for (int row = 0; row < config_.rows; ++row) {
    begin_store_row(row);
    for (int half = 0; half < halves(); ++half) {
      for (int p = 0; p < kVectors / 2; ++p) {
        const Xbyak::Ymm c0(0), c1(1);
        vmovaps(c0, c_slot(row, half, 2 * p));
        vmovaps(c1, c_slot(row, half, 2 * p + 1));
        store_pair(half, p, c0, c1);
      }
    }
  }
}

}  // namespace okl::jit
