// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/unpack_dense.h"

#include <cstddef>

namespace okl::jit {

void UnpackDense::generate() {
  Xbyak::Label next, rest, next_one, last, done;
  const int step = step_inputs(), shift = step == 2 ? 1 : 2;
  prologue();
  load_weight_constants();
  mov(reg_weights, ptr[reg_args + offsetof(DenseUnpack, weights)]);
  mov(reg_panel, ptr[reg_args + offsetof(DenseUnpack, panel)]);
  mov(reg_inputs, ptr[reg_args + offsetof(DenseUnpack, inputs)]);
  if (step == 4) add(reg_inputs, 3);  // w8s beyond K is finite, and x is +0 there
  mov(reg_steps, reg_inputs);
  shr(reg_steps, shift + 1);
  jz(rest, T_NEAR);
  L(next);
  for (int s = 0; s < kUnrolledSteps; ++s) emit_step(s);
  add(reg_weights, kUnrolledSteps * config_.block_width * 4);
  add(reg_panel, kUnrolledSteps * step_panel_bytes());
  dec(reg_steps);
  jnz(next, T_NEAR);
  L(rest);
  test(reg_inputs.cvt8(), step);
  jz(last, T_NEAR);
  emit_step(0);
  add(reg_weights, config_.block_width * 4);
  add(reg_panel, step_panel_bytes());
  L(last);
  if (step == 2) {
    test(reg_inputs.cvt8(), 1);
    jz(done, T_NEAR);
    emit_last_input();
    L(done);
  }
  epilogue();
}

void UnpackDense::emit_step(int step) {
  constexpr int kRegisters = 8;
  for (int i = 0; i < vectors(); ++i) {
    if (element_ == DenseElement::kBf16Pair) {
      emit_pairs(step, i);
      continue;
    }
    for (int s = 0; s < step_inputs(); ++s) {
      const Xbyak::Xmm value = v((i * step_inputs() + s) % kRegisters);
      load_weight(value, ptr[reg_weights + step * config_.block_width * 4 + i * vector_bytes()], s);
      vmovups(panel_at(step * step_inputs() + s, i), value);
    }
  }
}

// fp32 of an int8 ends in 16 zero bits: the odd input over the even one shifted down is the pair. Order kOddFirst: slot 2j is odd.
void UnpackDense::emit_pairs(int step, int i) {
  for (int pair = 0; pair < 2; ++pair) {
    const Xbyak::Zmm odd(4 * pair), even(4 * pair + 1);
    const Xbyak::Address at = ptr[reg_weights + step * config_.block_width * 4 + i * vector_bytes()];
    load_weight(odd, at, 2 * pair);
    load_weight(even, at, 2 * pair + 1);
    vpsrld(even, even, 16);
    vpord(odd, odd, even);
    vmovups(panel_at(2 * step + pair, i), odd);
  }
}

// A missing odd input is +0, whatever the padding holds.
void UnpackDense::emit_last_input() {
  const Xbyak::Xmm value = v(0), zero = v(1);
  const bool odd_first = config_.order == DenseOrder::kOddFirst;
  vxorps(zero, zero, zero);
  for (int i = 0; i < vectors(); ++i) {
    load_last_weight(value, ptr[reg_weights + i * vector_bytes()]);
    if (odd_first) vmovups(panel_at(0, i), zero);
    vmovups(panel_at(odd_first ? 1 : 0, i), value);
  }
}

Xbyak::Address UnpackDense::panel_at(int slot, int i) {
  const int in_pass = panel_width() / lanes(), pass = i / in_pass;
  return ptr[reg_panel + (pass * config_.panel_inputs + slot) * panel_width() * 4 + i % in_pass * vector_bytes()];
}

}  // namespace okl::jit
