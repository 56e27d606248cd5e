// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/linear_dense.h"

#include <algorithm>
#include <cstddef>

namespace okl::jit {

void LinearDense::generate() {
  Xbyak::Label next;
  prologue(stack_bytes_ + kSlotBytes);
  load_arguments();
  load_masks();
  L(next);
  for (int pass = 0; pass < passes(); ++pass) emit_pass(pass);
  next_tile();
  dec(reg_tiles);
  jnz(next, T_NEAR);
  epilogue();
}

void LinearDense::load_arguments() {
  mov(reg_x_stride, ptr[reg_args + offsetof(DenseTile, x_row)]);
  mov(reg_y, ptr[reg_args + offsetof(DenseTile, y)]);
  mov(reg_tiles, ptr[reg_args + offsetof(DenseTile, tiles)]);
  mov(reg_sums, ptr[reg_args + offsetof(DenseTile, sums)]);
  mov(reg_ahead, ptr[reg_args + offsetof(DenseTile, ahead)]);
  if (has_bias()) mov(reg_bias, ptr[reg_args + offsetof(DenseTile, bias)]);
  mov(reg_tmp, ptr[reg_args + offsetof(DenseTile, x)]);
  mov(slot(kX), reg_tmp);
  if (has_residual()) {
    mov(reg_tmp, ptr[reg_args + offsetof(DenseTile, residual)]);
    mov(slot(kResidual), reg_tmp);
  }
}

void LinearDense::next_tile() {
  imul(reg_tmp, reg_x_stride, config_.rows);
  add(slot(kX), reg_tmp);
  imul(reg_tmp, ptr[reg_args + offsetof(DenseTile, ldy)], config_.rows);
  add(reg_y, reg_tmp);
  if (has_residual()) {
    imul(reg_tmp, ptr[reg_args + offsetof(DenseTile, ld_residual)], config_.rows);
    add(slot(kResidual), reg_tmp);
  }
  add(reg_sums, config_.rows * kSumRowBytes);
}

void LinearDense::emit_pass(int pass) {
  mov(reg_weights, ptr[reg_args + (reads() ? offsetof(DenseTile, panel) : offsetof(DenseTile, weights))]);
  if (fills()) mov(reg_panel, ptr[reg_args + offsetof(DenseTile, panel)]);
  mov(reg_x, slot(kX));
  if (config_.rows > 3) {
    lea(reg_x3, ptr[reg_x + reg_x_stride]);
    lea(reg_x3, ptr[reg_x3 + reg_x_stride * 2]);
  }
  if (pass == 0 && config_.alone == 0) {
    imul(reg_tmp2, reg_x_stride, config_.rows);
    add(reg_tmp2, reg_x);
  }
  load_weight_constants();
  if (config_.group == 0) {
    emit_whole(pass);
  } else {
    emit_groups(pass);
  }
}

// One chain through all of K, which waits in the sums between chunks; one scale, or none.
void LinearDense::emit_whole(int pass) {
  Xbyak::Label goes_on, begun, unfinished, done;
  cmp(dword[reg_args + offsetof(DenseTile, first)], 0);
  je(goes_on, T_NEAR);
  clear_accumulators();
  jmp(begun, T_NEAR);
  L(goes_on);
  load_accumulators(pass);
  L(begun);
  mov(reg_tmp, ptr[reg_args + offsetof(DenseTile, inputs)]);
  emit_inputs(pass);
  cmp(dword[reg_args + offsetof(DenseTile, last)], 0);
  je(unfinished, T_NEAR);
  if (config_.has_scales()) scale_accumulators(pass);
  store_rows(pass);
  jmp(done, T_NEAR);
  L(unfinished);
  save_accumulators(pass);
  L(done);
}

// A chain for each group, folded into the sums.
void LinearDense::emit_groups(int pass) {
  Xbyak::Label next_group, goes_on, unfinished;
  cmp(dword[reg_args + offsetof(DenseTile, first)], 0);
  je(goes_on, T_NEAR);
  clear_sums(pass);
  L(goes_on);
  mov(reg_tmp, ptr[reg_args + offsetof(DenseTile, inputs)]);
  mov(slot(kInputsLeft), reg_tmp);
  mov(reg_tmp, ptr[reg_args + offsetof(DenseTile, scales)]);
  mov(slot(kScales), reg_tmp);
  L(next_group);
  clear_accumulators();
  mov(reg_tmp, slot(kInputsLeft));
  mov(reg_steps.cvt32(), config_.group);
  cmp(reg_tmp, reg_steps);
  cmova(reg_tmp, reg_steps);
  emit_inputs(pass);
  fold_group(pass);
  mov(reg_tmp, ptr[reg_args + offsetof(DenseTile, scale_stride)]);
  add(slot(kScales), reg_tmp);
  sub(slot(kInputsLeft), static_cast<uint32_t>(config_.group));
  jg(next_group, T_NEAR);
  cmp(dword[reg_args + offsetof(DenseTile, last)], 0);
  je(unfinished, T_NEAR);
  load_accumulators(pass);
  store_rows(pass);
  L(unfinished);
}

// reg_tmp inputs from reg_weights and reg_x on.
void LinearDense::emit_inputs(int pass) {
  Xbyak::Label next_eight, rest, next_step, last, done;
  const int step = step_inputs();
  // Slots of inputs that are missing hold +0, and so does their place in a panel. Inputs of w8s beyond K are finite.
  const int whole = is_w8s() ? 4 : storage_ == Storage::kFloats && config_.order == DenseOrder::kOddFirst ? 2 : 1;
  if (whole > 1) {
    add(reg_tmp, whole - 1);
    and_(reg_tmp, -whole);
  }
  mov(reg_steps, reg_tmp);
  shr(reg_steps, 3);
  jz(rest, T_NEAR);
  L(next_eight);
  emit_steps(pass, kUnrolledInputs / step, true);
  dec(reg_steps);
  jnz(next_eight, T_NEAR);
  L(rest);
  mov(reg_steps, reg_tmp);
  and_(reg_steps, kUnrolledInputs - 1);
  if (step > 1) shr(reg_steps, step == 2 ? 1 : 2);
  jz(last, T_NEAR);
  L(next_step);
  emit_steps(pass, 1, false);
  dec(reg_steps);
  jnz(next_step, T_NEAR);
  L(last);
  if (step != 2) return;
  test(reg_tmp.cvt8(), 1);
  jz(done, T_NEAR);
  emit_last_input(pass);
  L(done);
}

void LinearDense::emit_steps(int pass, int steps, bool prefetches) {
  const int slots = steps * step_slots();
  for (int slot = 0; slot < slots; ++slot) {
    const int step = slot / step_slots();
    if (prefetches && pass == 0) prefetch(slot, slots);
    // x(1) is free until the weights of a slot are there.
    multiply_rows([&](const Xbyak::Xmm& to, int i) { load_weight(to, weights_at(pass, i, step), slot % step_slots(), x(1)); }, slot,
                  pass);
  }
  add(reg_weights, steps * step_bytes());
  add(reg_x, slots * 4);
  if (config_.rows > 3) add(reg_x3, slots * 4);
  if (fills()) add(reg_panel, slots * slot_bytes());
}

// A missing odd input is +0 in the panel, whatever the padding of packed weights holds.
void LinearDense::emit_last_input(int pass) {
  if (fills() && last_slot() == 1) {
    vxorps(x(0), x(0), x(0));
    for (int i = 0; i < vectors_in_pass(); ++i) vmovups(panel_at(pass, i, 0), x(0));
  }
  multiply_rows([&](const Xbyak::Xmm& to, int i) { load_last_weight(to, weights_at(pass, i, 0)); }, last_slot(), pass);
}

// acc(row, i) += weights(i) * x(row) for every row and vector of the pass.
template <typename Load>
void LinearDense::multiply_rows(const Load& load, int slot, int pass) {
  const int count = vectors_in_pass();
  for (int first = 0; first < count; first += w_registers()) {
    const int end = std::min(first + w_registers(), count);
    for (int i = first; i < end; ++i) {
      load(w(i - first), i);
      if (fills()) vmovups(panel_at(pass, i, slot), w(i - first));
    }
    for (int row = 0; row < config_.rows; ++row) {
      vbroadcastss(x(row), x_at(row, slot * 4));
      for (int i = first; i < end; ++i) {
        if (multiplies_pairs()) {
          vdpbf16ps(acc(row, i), w(i - first), x(row));
        } else {
          vfmadd231ps(acc(row, i), w(i - first), x(row));
        }
      }
    }
  }
}

// Asks for what eight inputs of the block take in memory, spread over the slots: into L2 at reg_ahead, and where weights are read
// from memory once more into L1 shortly before. One row of 13312x2048 w8s weights on one core of Emerald Rapids takes 1.8 ms
// so, 1.9 with the requests of a step in a bunch, 2.1 with single ones into L1 and 3.6 without. Several tiles share the requests of
// a chunk, two of them half each.
void LinearDense::prefetch(int slot, int slots) {
  constexpr int kNear = 2048;
  const int lines = std::max(1, packed_bytes_per_eight(config_.weights) * config_.block_width / 64);
  const int asked = config_.alone != 0 ? lines : std::max(1, lines / 2);
  for (int line = slot * asked / slots; line < (slot + 1) * asked / slots; ++line) prefetcht1(ptr[reg_ahead + line * 64]);
  if (!reads()) {
    for (int line = slot * lines / slots; line < (slot + 1) * lines / slots; ++line)
      prefetcht0(ptr[reg_weights + line * 64 + kNear]);
  }
  if (slot + 1 < slots) return;
  if (config_.alone == 0) prefetch_next_rows();
  add(reg_ahead, asked * 64);
  cmp(reg_ahead, ptr[reg_args + offsetof(DenseTile, ahead_end)]);
  cmovae(reg_ahead, ptr[reg_args + offsetof(DenseTile, ahead_end)]);
}

// The rows of a chunk are neighbours, so that those of the next tile follow: eight inputs of each, from L2 or further.
void LinearDense::prefetch_next_rows() {
  const int bytes = config_.rows * kUnrolledInputs * (multiplies_pairs() ? 2 : 4);
  for (int line = 0; line < bytes; line += 64) prefetcht0(ptr[reg_tmp2 + line]);
  add(reg_tmp2, bytes);
}

void LinearDense::clear_accumulators() {
  for (int row = 0; row < config_.rows; ++row) {
    for (int i = 0; i < vectors_in_pass(); ++i) vxorps(acc(row, i), acc(row, i), acc(row, i));
  }
}

void LinearDense::load_accumulators(int pass) {
  for (int row = 0; row < config_.rows; ++row) {
    for (int i = 0; i < vectors_in_pass(); ++i) vmovups(acc(row, i), sum_at(pass, row, i));
  }
}

void LinearDense::save_accumulators(int pass) {
  for (int row = 0; row < config_.rows; ++row) {
    for (int i = 0; i < vectors_in_pass(); ++i) vmovups(sum_at(pass, row, i), acc(row, i));
  }
}

void LinearDense::clear_sums(int pass) {
  vxorps(x(0), x(0), x(0));
  for (int row = 0; row < config_.rows; ++row) {
    for (int i = 0; i < vectors_in_pass(); ++i) vmovups(sum_at(pass, row, i), x(0));
  }
}

// c = fma(s, d, +0), whose zeros are positive where those of a product need not be.
void LinearDense::scale_accumulators(int pass) {
  for (int i = 0; i < vectors_in_pass(); ++i) {
    mov(reg_tmp, ptr[reg_args + offsetof(DenseTile, scales)]);
    load_scale(pass * vectors_in_pass() + i);
    for (int row = 0; row < config_.rows; ++row) {
      vxorps(x(row), x(row), x(row));
      vfmadd231ps(x(row), w(0), acc(row, i));
      vmovaps(acc(row, i), x(row));
    }
  }
}

void LinearDense::fold_group(int pass) {
  for (int i = 0; i < vectors_in_pass(); ++i) {
    mov(reg_tmp, slot(kScales));
    load_scale(pass * vectors_in_pass() + i);
    for (int row = 0; row < config_.rows; ++row) {
      vmovups(x(row), sum_at(pass, row, i));
      vfmadd231ps(x(row), w(0), acc(row, i));
      vmovups(sum_at(pass, row, i), x(row));
    }
  }
}

void LinearDense::begin_store_row(int row) {
  imul(reg_tmp, ptr[reg_args + offsetof(DenseTile, ldy)], row);
  add(reg_tmp, reg_y);
  if (!has_residual()) return;
  imul(reg_tmp2, ptr[reg_args + offsetof(DenseTile, ld_residual)], row);
  add(reg_tmp2, slot(kResidual));
}

Xbyak::Address LinearDense::weights_at(int pass, int i, int step) {
  if (reads()) return ptr[reg_weights + pass * config_.panel_inputs * slot_bytes() + step * step_bytes() + i * vector_bytes()];
  return ptr[reg_weights + step * step_bytes() + (pass * vectors_in_pass() + i) * vector_bytes()];
}

// A panel of several passes holds them one behind the other.
Xbyak::Address LinearDense::panel_at(int pass, int i, int slot) {
  return ptr[reg_panel + (pass * config_.panel_inputs + slot) * slot_bytes() + i * vector_bytes()];
}

Xbyak::Address LinearDense::x_at(int row, int offset) {
  const Xbyak::Reg64& base = row < 3 ? reg_x : reg_x3;
  switch (row % 3) {
    case 0:
      return ptr[base + offset];
    case 1:
      return ptr[base + reg_x_stride + offset];
    default:
      return ptr[base + reg_x_stride * 2 + offset];
  }
}

Xbyak::Address LinearDense::sum_at(int pass, int row, int i) {
  return ptr[reg_sums + row * kSumRowBytes + (pass * vectors_in_pass() + i) * vector_bytes()];
}

}  // namespace okl::jit
