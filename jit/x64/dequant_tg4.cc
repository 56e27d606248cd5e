// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/dequant_tg4.h"

#include <cstddef>

#include "jit/x64/byte_transpose.h"

namespace okl::jit {

void DequantTg4::generate() {
  Xbyak::Label careful, done;
  prologue(kTileBytes + kByteTransposeScratch);
  load_arguments();
  by_input() ? spread_scales() : transpose_all();
  jump_unless_finite(careful);
  for (const bool is_careful : {false, true}) {
    if (is_careful) L(careful);
    load_constants();
    by_input() ? emit_inputs(is_careful) : emit_channels(is_careful);
    if (!is_careful) jmp(done, T_NEAR);
  }
  L(done);
  epilogue();
}

void DequantTg4::load_arguments() {
  mov(reg_codes_, ptr[reg_args_ + offsetof(DequantTile, codes)]);
  mov(reg_pair_, ptr[reg_args_ + offsetof(DequantTile, scales)]);
  mov(reg_out_, ptr[reg_args_ + offsetof(DequantTile, out)]);
  mov(reg_ld_, ptr[reg_args_ + offsetof(DequantTile, ld_out)]);
  mov(reg_inputs_, ptr[reg_args_ + offsetof(DequantTile, inputs)]);
}

// One pass of scalar moves for a portion of up to 256 inputs: any order of lanes for the price of none.
void DequantTg4::spread_scales() {
  for (int position = 0; position < 64; ++position) {
    const int offset = pair_bytes() * channel_at(position);
    if (wide_scales()) {
      mov(rax, ptr[reg_pair_ + offset]);
      mov(lane_scale(position), eax);
      shr(rax, 32);
      mov(lane_zero(position), eax);
    } else {
      mov(eax, ptr[reg_pair_ + offset]);
      mov(reg_count_.cvt32(), eax);
      shl(eax, 16);
      and_(reg_count_.cvt32(), 0xFFFF0000);
      mov(lane_scale(position), eax);
      mov(lane_zero(position), reg_count_.cvt32());
    }
  }
}

void DequantTg4::transpose_all() {
  Xbyak::Label unit;
  mov(reg_tile_, rsp);
  mov(reg_count_, reg_inputs_);
  L(unit);
  transpose_codes();
  add(reg_codes_, kStep * 32);
  add(reg_tile_, kStep);
  sub(reg_count_, kStep);
  jnz(unit, T_NEAR);
}

// An exponent of all ones among the block's 64 scales and zeros.
void DequantTg4::jump_unless_finite(Xbyak::Label& careful) {
  vpbroadcastd(ymm1, ptr[pool_word(wide_scales() ? 0x7F800000 : 0x7F807F80)]);
  vpxor(ymm0, ymm0, ymm0);
  for (int offset = 0; offset < 64 * pair_bytes(); offset += 32) {
    vpand(ymm2, ymm1, ptr[reg_pair_ + offset]);
    wide_scales() ? vpcmpeqd(ymm2, ymm2, ymm1) : vpcmpeqw(ymm2, ymm2, ymm1);
    vpor(ymm0, ymm0, ymm2);
  }
  vptest(ymm0, ymm0);
  jnz(careful, T_NEAR);
}

void DequantTg4::emit_inputs(bool careful) {
  Xbyak::Label input;
  load_lane_scales();
  mov(reg_low_, reg_out_);
  lea(reg_high_, ptr[reg_out_ + 32 * out_bytes()]);
  L(input);
  emit_step(reg_codes_, careful);
  add(reg_codes_, 32);
  add(reg_low_, reg_ld_);
  add(reg_high_, reg_ld_);
  dec(reg_inputs_);
  jnz(input, T_NEAR);
}

void DequantTg4::emit_channels(bool careful) {
  Xbyak::Label channel, inputs;
  mov(reg_tile_, rsp);
  mov(reg_channels_, 32);
  mov(reg_half_rows_, reg_ld_);
  shl(reg_half_rows_, 5);
  L(channel);
  broadcast_scales();
  mov(reg_low_, reg_out_);
  lea(reg_high_, ptr[reg_out_ + reg_half_rows_]);
  mov(reg_row_codes_, reg_tile_);
  mov(reg_count_, reg_inputs_);
  L(inputs);
  emit_step(reg_row_codes_, careful);
  add(reg_row_codes_, kStep);
  add(reg_low_, kStep * out_bytes());
  add(reg_high_, kStep * out_bytes());
  sub(reg_count_, kStep);
  jnz(inputs, T_NEAR);
  add(reg_tile_, kTilePitch);
  add(reg_pair_, pair_bytes());
  add(reg_out_, reg_ld_);
  dec(reg_channels_);
  jnz(channel, T_NEAR);
}

}  // namespace okl::jit
