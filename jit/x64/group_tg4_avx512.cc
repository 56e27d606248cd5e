// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/group_tg4_avx512.h"

namespace okl::jit {

void GroupTg4Avx512::begin_block() {
  for (int row = 0; row < config_.rows; ++row) {
    for (int i = 0; i < vectors(); ++i) {
      const Xbyak::Zmm zero = c_in_registers(config_) ? c(row, i) : w(0);
      vpxord(zero, zero, zero);
      if (!c_in_registers(config_)) vmovaps(c_slot(row, i), zero);
    }
  }
}

void GroupTg4Avx512::begin_group(int) {
  prefetch_scales(1, 1);
  for (int row = 0; row < config_.rows; ++row) {
    for (int i = 0; i < vectors(); ++i) vpxord(d(row, i), d(row, i), d(row, i));
  }
}

void GroupTg4Avx512::end_group(int) {
  const Xbyak::Zmm scale = w(0), zero = w(1);
  for (int i = 0; i < vectors(); ++i) {
    load_scales(i, scale, zero, w(2), w(3));
    for (int row = 0; row < config_.rows; ++row) {
      const Xbyak::Zmm sum = c_in_registers(config_) ? c(row, i) : zmm_x;
      if (!c_in_registers(config_)) vmovaps(sum, c_slot(row, i));
      vfmadd231ps(sum, scale, d(row, i));
      vfmadd231ps(sum, zero, ptr_b[reg_sums + 4 * row]);
      if (!c_in_registers(config_)) vmovaps(c_slot(row, i), sum);
    }
  }
}

void GroupTg4Avx512::finish_block() {
  for (int row = 0; row < config_.rows; ++row) {
    begin_store_row(row);
    for (int i = 0; i < vectors(); ++i) {
      const Xbyak::Zmm sum = c_in_registers(config_) ? c(row, i) : zmm_x;
      if (!c_in_registers(config_)) vmovaps(sum, c_slot(row, i));
      store_vector(sum, i, w(0));
    }
  }
}

// ---------------------------------------------------------------------------------------------------------------- BF16

GroupTg4Avx512Bf16::GroupTg4Avx512Bf16(const LinearConfig& config) : GroupTg4Avx512(config, config.rows <= 2 ? 16 : 4) {
  set_x_form(XForm::kPairs);
}

void GroupTg4Avx512Bf16::load_constants() {
  load_channel_masks();
  load_pair_tables();
}

void GroupTg4Avx512Bf16::emit_pair(int, int pair) {
  prefetch_codes(pair);
  unpack_to_pairs(pair);
  for (int row = 0; row < config_.rows; ++row) {
    vpbroadcastd(zmm_x, ptr[reg_x + x_offset(row, pair)]);
    for (int i = 0; i < vectors(); ++i) vdpbf16ps(d(row, i), w(i), zmm_x);
  }
}

// ----------------------------------------------------------------------------------------------------------------- FMA

GroupTg4Avx512Fma::GroupTg4Avx512Fma(const LinearConfig& config) : GroupTg4Avx512(config, config.rows <= 2 ? 8 : 4) {
  set_x_form(XForm::kFloats);
}

void GroupTg4Avx512Fma::load_constants() {
  load_channel_masks();
  load_fp32_table();
}

void GroupTg4Avx512Fma::emit_pair(int, int pair) {
  prefetch_codes(pair);
  for (int input : {2 * pair + 1, 2 * pair}) {
    unpack_to_fp32(input);
    for (int row = 0; row < config_.rows; ++row) {
      const Xbyak::Zmm x(row % 2 == 0 ? zmm_x.getIdx() : 30);
      vbroadcastss(x, ptr[reg_x + x_offset(row, input)]);
      for (int i = 0; i < vectors(); ++i) vfmadd231ps(d(row, i), w(i), x);
    }
  }
}

}  // namespace okl::jit
