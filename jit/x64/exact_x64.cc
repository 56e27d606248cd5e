// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/exact_x64.h"

#include <algorithm>
#include <cstddef>

namespace okl::jit {
namespace {

// Weights are asked for this far ahead: the hardware prefetcher stops at page ends and cannot run ahead of a loop that is busy.
constexpr int kAhead = 4096;

}  // namespace

ExactX64::ExactX64(const ExactConfig& config, VectorWidth width, int direct_rows)
    : Generator(width),
      config_(config),
      kind_(width == VectorWidth::kZmm ? Xbyak::Operand::ZMM : Xbyak::Operand::YMM),
      most_rows_(config.path == ExactPath::kPanel ? std::min<int>(kPanelTile, config.rows)
                                                  : std::min<int>(direct_rows, config.rows)),
      bodies_(static_cast<size_t>(most_rows_) + 1) {}

int ExactX64::stack_bytes() const { return kStackC + (panel() ? 0 : most_rows_ * kRowBytesC); }

void ExactX64::generate() {
  Xbyak::Label block, inputs, inputs_done;
  prologue(stack_bytes());
  load_arguments();
  choose_bodies();
  load_constants();
  L(block);
  begin_block();
  L(inputs);
  begin_inputs();
  run_tiles(inputs_done);
  L(inputs_done);
  next_inputs();
  jnz(inputs, T_NEAR);
  store_rows();
  next_block();
  jnz(block, T_NEAR);
  epilogue();
}

void ExactX64::load_arguments() {
  const auto copy = [&](int to, size_t from) {
    mov(reg_tmp, ptr[reg_args + from]);
    mov(slot(to), reg_tmp);
  };
  copy(kBlocksLeft, offsetof(ExactTile, blocks));
  copy(kBlockCodes, offsetof(ExactTile, codes));
  copy(kBlockScales, offsetof(ExactTile, scales));
  copy(kBlockZeros, offsetof(ExactTile, zeros));
  copy(kY, offsetof(ExactTile, y));
  copy(kBias, offsetof(ExactTile, bias));
  copy(kResidual, offsetof(ExactTile, residual));
  copy(kX, offsetof(ExactTile, x));
  copy(kStarts, offsetof(ExactTile, starts));
  mov(reg_scratch, ptr[reg_args + offsetof(ExactTile, scratch)]);
}

// Direct: the body of `rows` rows. Panel: ceil(rows / 6) tiles, of which rows mod tiles have one row more.
void ExactX64::choose_bodies() {
  const auto address_of_body = [&](const Xbyak::Reg64& rows, int to) {  // rows >= 1, reg_tmp is clobbered
    Xbyak::Label known;
    for (int r = most_rows_; r >= 1; --r) {
      lea(reg_tmp, ptr[rip + bodies_[static_cast<size_t>(r)]]);
      if (r == 1) break;
      cmp(rows, r);
      jge(known, T_NEAR);
    }
    L(known);
    mov(slot(to), reg_tmp);
  };
  if (!panel()) {
    mov(reg_count, ptr[reg_args + offsetof(ExactTile, rows)]);
    address_of_body(reg_count, kBody);
    return;
  }
  mov(rax, ptr[reg_args + offsetof(ExactTile, rows)]);
  mov(reg_count, rax);
  add(rax, most_rows_ - 1);
  xor_(edx, edx);
  mov(rsi, most_rows_);
  div(rsi);
  mov(slot(kTiles), rax);
  mov(rsi, rax);
  mov(rax, reg_count);
  xor_(edx, edx);
  div(rsi);  // rax = rows of a small tile, rdx = tiles with one more
  mov(slot(kLargeTiles), rdx);
  mov(reg_count, rax);
  address_of_body(reg_count, kBody);
  inc(reg_count);
  address_of_body(reg_count, kBodyLarge);
}

void ExactX64::begin_block() {
  for (const auto& [to, from] : {std::pair{kScales, kBlockScales}, {kZeros, kBlockZeros}, {kXNow, kX}, {kStartsNow, kStarts}}) {
    mov(reg_tmp, slot(from));
    mov(slot(to), reg_tmp);
  }
  mov(reg_w, slot(kBlockCodes));
  mov(slot(kBlocksOfK), static_cast<uint32_t>(config_.blocks()));
  mov(slot(kGroupLeft), 1);
  init_rows();
}

// Scales at the start of a group, the length of this block of inputs.
void ExactX64::begin_inputs() {
  Xbyak::Label same_group, whole;
  dec(slot(kGroupLeft));
  jnz(same_group, T_NEAR);
  load_group();
  mov(slot(kGroupLeft), static_cast<uint32_t>(config_.blocks_in_group()));
  L(same_group);
  const auto iterations = [&](int64_t b) {
    return static_cast<uint32_t>(config_.padded_inputs_in_block(b) / (kStepInputs * kMostUnroll));
  };
  const int64_t last = config_.blocks() - 1;
  mov(reg_iterations, iterations(last));
  if (iterations(0) != iterations(last)) {
    cmp(slot(kBlocksOfK), 1);
    je(whole, T_NEAR);
    mov(reg_iterations, iterations(0));
    L(whole);
  }
  mov(reg_x, slot(kXNow));
  mov(reg_starts, slot(kStartsNow));
  mov(reg_x_scales, ptr[reg_args + offsetof(ExactTile, x_scales)]);
  if (panel()) {
    unpack_panel();
    lea(reg_c, ptr[reg_scratch + panel_bytes()]);
  } else {
    lea(reg_c, ptr[rsp + kStackC]);
  }
}

void ExactX64::run_tiles(const Xbyak::Label& done) {
  if (!panel()) {
    jmp(slot(kBody));
    for (int rows = 1; rows <= most_rows_; ++rows) body(rows, done);
    return;
  }
  Xbyak::Label next, small;
  mov(reg_tiles, slot(kTiles));
  mov(reg_tmp, slot(kLargeTiles));
  mov(slot(kLargeLeft), reg_tmp);
  // The next block of inputs is asked for by the first tiles, a line a step.
  const int window = steps_in_block() * step_bytes();
  const int asked = steps_in_block() * 64;
  lea(reg_ahead, ptr[reg_w + window]);
  L(next);
  lea(reg_tmp, ptr[reg_w + (2 * window - asked)]);
  cmp(reg_ahead, reg_tmp);
  cmova(reg_ahead, reg_tmp);
  dec(slot(kLargeLeft));
  js(small, T_NEAR);
  jmp(slot(kBodyLarge));
  L(small);
  jmp(slot(kBody));
  Xbyak::Label tile_done;
  for (int rows = 1; rows <= most_rows_; ++rows) {
    body(rows, tile_done);
  }
  L(tile_done);
  dec(reg_tiles);
  jnz(next, T_NEAR);
  (void)done;
}

void ExactX64::body(int rows, const Xbyak::Label& done) {
  L(bodies_[static_cast<size_t>(rows)]);
  const std::vector<Pass> all = passes(rows);
  for (size_t i = 0; i < all.size(); ++i) run_pass(all[i], rows, i + 1 == all.size());
  if (panel()) {
    add(reg_x, static_cast<uint32_t>(rows * config_.row_bytes()));
    add(reg_c, rows * kRowBytesC);
    add(reg_starts, static_cast<uint32_t>(rows * start_stride()));
    add(reg_x_scales, rows * 4);
  }
  if (rows < most_rows_ || panel()) jmp(done, T_NEAR);
}

void ExactX64::run_pass(const Pass& pass, int rows, bool) {
  const int steps = unroll(rows), bytes = panel() ? panel_step_bytes() : step_bytes();
  for (int row = 0; row < rows; ++row) start(row, pass, rows);
  mov(reg_w_now, panel() ? reg_scratch : reg_w);
  mov(reg_x_now, reg_x);
  if (steps == kMostUnroll) {
    mov(reg_count, reg_iterations);
  } else {
    lea(reg_count, ptr[reg_iterations * (kMostUnroll / steps)]);
  }
  Xbyak::Label iteration;
  L(iteration);
  for (int step = 0; step < steps; ++step) {
    load_step(pass, rows, step);
    // One line of this pass's part of the weights; the passes of a step together ask for all of them.
    if (!panel()) {
      const int end = pass.weights + static_cast<int>(pass.channel.size()) * step_bytes() / (config_.block_width / lanes());
      for (int line = (pass.weights + 63) / 64 * 64; line < end; line += 64) {
        prefetcht0(ptr[reg_w_now + step * bytes + line + kAhead]);
      }
    }
    if (panel()) prefetcht0(ptr[reg_ahead + step * 64]);
    for (int row = 0; row < rows; ++row) multiply(row, pass, rows, step);
  }
  if (panel()) add(reg_ahead, steps * 64);
  add(reg_w_now, steps * bytes);
  add(reg_x_now, steps * kStepInputs);
  dec(reg_count);
  jnz(iteration, T_NEAR);
  fold(pass, rows);
}

// C = fma(float(sum) * x_scale, w_scale, C).
void ExactX64::fold(const Pass& pass, int rows) {
  const int vectors = static_cast<int>(pass.channel.size());
  const Xbyak::Xmm x_scale = extra(0, rows, vectors);
  for (int i = 0; i < vectors; ++i) vmovaps(w(i, rows, vectors), scale_buffer(pass.channel[static_cast<size_t>(i)]));
  for (int row = 0; row < rows; ++row) {
    separate(row, pass, rows);
    vbroadcastss(x_scale, dword[reg_x_scales + row * 4]);
    for (int i = 0; i < vectors; ++i) {
      const Xbyak::Xmm sum = acc(row, i, vectors);
      const Xbyak::Address c = c_address(row, pass.channel[static_cast<size_t>(i)]);
      vcvtdq2ps(sum, sum);
      vmulps(sum, sum, x_scale);
      vfmadd213ps(sum, w(i, rows, vectors), c);
      vmovaps(c, sum);
    }
  }
}

// Leaves ZF set when no inputs are left.
void ExactX64::next_inputs() {
  mov(reg_tmp, reg_iterations);
  imul(reg_tmp, reg_tmp, kMostUnroll * step_bytes());
  add(reg_w, reg_tmp);
  mov(reg_tmp, reg_iterations);
  shl(reg_tmp, 5);  // 32 inputs
  add(slot(kXNow), reg_tmp);
  add(slot(kStartsNow), kStartBytes);
  dec(slot(kBlocksOfK));
}

// Leaves ZF set when no channel block is left.
void ExactX64::next_block() {
  mov(slot(kBlockCodes), reg_w);
  add(slot(kBlockScales), static_cast<uint32_t>(kExactBlockChannels * config_.scale_bytes()));
  add(slot(kBlockZeros), kExactBlockChannels);
  add(slot(kY), kExactBlockChannels * y_bytes());
  add(slot(kBias), kExactBlockChannels * 4);
  add(slot(kResidual), kExactBlockChannels * residual_bytes());
  dec(slot(kBlocksLeft));
}

}  // namespace okl::jit
