// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/torch_tg4_avx512.h"

namespace okl::jit {

TorchTg4Avx512::TorchTg4Avx512(const LinearConfig& config) : LinearTg4Avx512(config, config.rows <= 2 ? 8 : 4, 0) {
  set_x_form(XForm::kFloats);
}

void TorchTg4Avx512::load_constants() {
  load_channel_masks();
  load_fp32_table();
}

void TorchTg4Avx512::begin_block() {
  for (int row = 0; row < config_.rows; ++row) {
    for (int i = 0; i < vectors(); ++i) vpxord(c(row, i), c(row, i), c(row, i));
  }
}

void TorchTg4Avx512::begin_group(int) {
  prefetch_scales(1, 1);
  for (int i = 0; i < vectors(); ++i) load_scales(i, scale(i), zero(i), w(0), w(1));
}

void TorchTg4Avx512::emit_pair(int, int pair) {
  prefetch_codes(pair);
  emit_input(2 * pair);
  emit_input(2 * pair + 1);
}

void TorchTg4Avx512::emit_input(int input) {
  unpack_to_fp32(input);
  for (int i = 0; i < vectors(); ++i) vfmadd213ps(w(i), scale(i), zero(i));
  for (int row = 0; row < config_.rows; ++row) {
    const Xbyak::Zmm x(row % 2 == 0 ? zmm_x.getIdx() : 30);
    vbroadcastss(x, ptr[reg_x + x_offset(row, input)]);
    for (int i = 0; i < vectors(); ++i) vfmadd231ps(c(row, i), w(i), x);
  }
}

void TorchTg4Avx512::finish_block() {
  for (int row = 0; row < config_.rows; ++row) {
    begin_store_row(row);
    for (int i = 0; i < vectors(); ++i) store_vector(c(row, i), i, w(0));
  }
}

}  // namespace okl::jit
