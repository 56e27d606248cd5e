// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/linear_tg4.h"

#include <cstddef>

namespace okl::jit {

LinearTg4::LinearTg4(const LinearConfig& config, VectorWidth width, int pairs_per_iteration, int stack_bytes)
    : Generator(width), config_(config), pairs_per_iteration_(pairs_per_iteration), stack_bytes_(stack_bytes) {}

void LinearTg4::generate() {
  Xbyak::Label next_block;
  prologue(stack_bytes_);
  load_arguments();
  load_constants();
  L(next_block);
  begin_block();
  emit_groups();
  finish_block();
  advance_block();
  dec(reg_blocks);
  jnz(next_block, T_NEAR);
  epilogue();
}

void LinearTg4::load_arguments() {
  mov(reg_codes, ptr[reg_args + offsetof(LinearTile, codes)]);
  mov(reg_block_scales, ptr[reg_args + offsetof(LinearTile, scales)]);
  mov(reg_scale_stride, ptr[reg_args + offsetof(LinearTile, scale_stride)]);
  mov(reg_y, ptr[reg_args + offsetof(LinearTile, y)]);
  mov(reg_blocks, ptr[reg_args + offsetof(LinearTile, blocks)]);
  if (has_bias()) mov(reg_bias, ptr[reg_args + offsetof(LinearTile, bias)]);
  if (has_residual()) mov(reg_residual, ptr[reg_args + offsetof(LinearTile, residual)]);
}

void LinearTg4::emit_groups() {
  mov(reg_x, ptr[reg_args + offsetof(LinearTile, x)]);
  mov(reg_sums, ptr[reg_args + offsetof(LinearTile, sums)]);
  mov(reg_scales, reg_block_scales);
  const int64_t groups = config_.groups();
  // The loop serves every group but a last one that is shorter or, in class torch, ends in padding.
  const bool last_differs = inputs_of_group(groups - 1) != inputs_of_group(0) || inputs_of_group(groups - 1) % 32 != 0;
  const int64_t looped = last_differs ? groups - 1 : groups;
  if (looped > 0) {
    Xbyak::Label next_group;
    if (looped > 1) mov(reg_groups, looped);
    L(next_group);
    emit_group(inputs_of_group(0));
    if (looped > 1) {
      dec(reg_groups);
      jnz(next_group, T_NEAR);
    }
  }
  if (last_differs) emit_group(inputs_of_group(groups - 1));
}

// Class group may run over K's padding, class torch may not: fma(+0, z, c) would turn c = -0 into +0, and z may be infinite.
int64_t LinearTg4::inputs_of_group(int64_t g) const {
  return config_.numerics == Numerics::kTorch ? config_.inputs_in_group(g) : config_.padded_inputs_in_group(g);
}

void LinearTg4::emit_group(int64_t inputs) {
  for (int pass = 0; pass < passes(); ++pass) {
    if (pass > 0) {
      sub(reg_codes, static_cast<uint32_t>(row_bytes() * inputs));
      sub(reg_x, static_cast<uint32_t>(x_bytes_per_pair() / 2 * inputs));
    }
    begin_group(pass);
    emit_inputs(pass, inputs);
    end_group(pass);
  }
  add(reg_scales, reg_scale_stride);
  if (config_.numerics == Numerics::kGroup) add(reg_sums, 4 * config_.rows);
  if (inputs % 32 != 0) add(reg_codes, static_cast<uint32_t>(row_bytes() * (32 - inputs % 32)));
}

void LinearTg4::emit_inputs(int pass, int64_t inputs) {
  const int64_t iterations = inputs / 2 / pairs_per_iteration_;
  if (iterations > 0) {
    Xbyak::Label next_iteration;
    if (iterations > 1) mov(reg_iterations, iterations);
    L(next_iteration);
    for (int pair = 0; pair < pairs_per_iteration_; ++pair) emit_pair(pass, pair);
    add(reg_codes, 2 * row_bytes() * pairs_per_iteration_);
    add(reg_x, x_bytes_per_pair() * pairs_per_iteration_);
    if (iterations > 1) {
      dec(reg_iterations);
      jnz(next_iteration, T_NEAR);
    }
  }
  const int64_t left = inputs - iterations * 2 * pairs_per_iteration_;
  for (int pair = 0; pair < left / 2; ++pair) emit_pair(pass, pair);
  if (left % 2 != 0) emit_last_input(static_cast<int>(left - 1));
  if (left > 0) {
    add(reg_codes, static_cast<uint32_t>(row_bytes() * left));
    add(reg_x, static_cast<uint32_t>(x_bytes_per_pair() / 2 * left));
  }
}

void LinearTg4::advance_block() {
  add(reg_block_scales, kBlockChannels * 2 * scale_bytes());
  add(reg_y, kBlockChannels * y_bytes());
  if (has_bias()) add(reg_bias, kBlockChannels * 4);
  if (has_residual()) add(reg_residual, kBlockChannels * residual_bytes());
}

int LinearTg4::x_offset(int row, int element) const {
  const int64_t offset = row * (config_.padded_k() / 2) * x_form_bytes_per_pair_ + int64_t{4} * element;
  if (offset > INT32_MAX) throw Xbyak::Error(Xbyak::ERR_OFFSET_IS_TOO_BIG);
  return static_cast<int>(offset);
}

void LinearTg4::prefetch_codes(int pair) {
  constexpr int kAhead = 4096, kLine = 64;
  const int offset = pair * 2 * row_bytes();
  if (offset % kLine == 0) prefetcht0(ptr[reg_codes + offset + kAhead]);
}

void LinearTg4::row_pointer(const Xbyak::Reg64& destination, const Xbyak::Reg64& base, size_t stride_offset, int row) {
  imul(destination, ptr[reg_args + stride_offset], row);
  add(destination, base);
}

}  // namespace okl::jit
