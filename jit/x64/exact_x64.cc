// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/exact_x64.h"

#include <algorithm>
#include <cstddef>

namespace okl::jit {
namespace {

// The direct path asks for weights twice: this far ahead into the second level, where more requests can be under way than in the
// first, and again into the first when that has come.
constexpr int kAheadL2 = 8192, kAheadL1 = 2048;

}  // namespace

ExactX64::ExactX64(const ExactConfig& config, VectorWidth width, int direct_tile)
    : Generator(width),
      config_(config),
      kind_(width == VectorWidth::kZmm ? Xbyak::Operand::ZMM : Xbyak::Operand::YMM),
      most_rows_(config.path == ExactPath::kPanel ? std::min<int>(kPanelTile, config.rows)
                                                  : std::min<int>(direct_tile, config.rows)),
      bodies_(static_cast<size_t>(most_rows_) + 1),
      fills_(panel() ? bodies_.size() : 0) {}

int ExactX64::stack_bytes() const { return kStackC + (panel() ? 0 : config_.rows * kRowBytesC); }

void ExactX64::generate() {
  Xbyak::Label block, inputs;
  prologue(stack_bytes());
  load_arguments();
  choose_bodies();
  load_constants();
  L(block);
  begin_block();
  L(inputs);
  begin_inputs();
  run_tiles();
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

// ceil(rows / most) tiles, of which rows mod tiles have one row more; those come first.
void ExactX64::choose_bodies() {
  // Of reg_count rows; reg_tmp is clobbered.
  const auto address_of_body = [&](const std::vector<Xbyak::Label>& bodies, int to) {
    Xbyak::Label known;
    for (int r = most_rows_; r >= 1; --r) {
      lea(reg_tmp, ptr[rip + bodies[static_cast<size_t>(r)]]);
      if (r == 1) break;
      cmp(reg_count, r);
      jge(known, T_NEAR);
    }
    L(known);
    mov(slot(to), reg_tmp);
  };
  mov(rax, ptr[reg_args + offsetof(ExactTile, rows)]);
  mov(reg_count, rax);
  add(rax, most_rows_ - 1);
  xor_(edx, edx);
  mov(esi, most_rows_);
  div(rsi);
  mov(slot(kTiles), rax);
  mov(rsi, rax);
  mov(rax, reg_count);
  xor_(edx, edx);
  div(rsi);  // rax = rows of a small tile, rdx = tiles with one more
  mov(slot(kLargeTiles), rdx);
  mov(reg_count, rax);
  address_of_body(bodies_, kBody);
  if (panel()) address_of_body(fills_, kFill);
  inc(reg_count);
  address_of_body(bodies_, kBodyLarge);
  if (!panel()) return;
  Xbyak::Label all_small;
  cmp(slot(kLargeTiles), 0);
  je(all_small);
  address_of_body(fills_, kFill);
  L(all_small);
}

void ExactX64::begin_block() {
  for (const auto& [to, from] : {std::pair{kScales, kBlockScales}, {kZeros, kBlockZeros}, {kXNow, kX}, {kStartsNow, kStarts}}) {
    mov(reg_tmp, slot(from));
    mov(slot(to), reg_tmp);
  }
  mov(reg_w, slot(kBlockCodes));
  mov(slot(kBlocksOfK), static_cast<uint32_t>(pieces()));
  mov(slot(kGroupLeft), 1);
  init_rows();
}

// Scales at the start of a group, the length of this block of inputs.
void ExactX64::begin_inputs() {
  Xbyak::Label same_group, whole;
  dec(slot(kGroupLeft));
  jnz(same_group, T_NEAR);
  load_group();
  mov(slot(kGroupLeft), static_cast<uint32_t>(in_pieces() ? pieces() : config_.blocks_in_group()));
  L(same_group);
  const auto iterations = [&](int64_t b) {
    const int64_t inputs = in_pieces() ? std::min(piece(), config_.padded_k() - b * piece()) : config_.padded_inputs_in_block(b);
    return static_cast<uint32_t>(inputs / (kStepInputs * kMostUnroll));
  };
  const int64_t last = pieces() - 1;
  mov(reg_iterations, iterations(last));
  if (iterations(0) != iterations(last)) {
    cmp(slot(kBlocksOfK), 1);
    je(whole, T_NEAR);
    mov(reg_iterations, iterations(0));
    L(whole);
  }
  mov(reg_x, slot(kXNow));
  if (panel()) mov(slot(kCodesNow), reg_w);
  mov(reg_starts, slot(kStartsNow));
  mov(reg_x_scales, ptr[reg_args + offsetof(ExactTile, x_scales)]);
  if (panel()) {
    lea(reg_c, ptr[reg_scratch + panel_bytes()]);
  } else {
    lea(reg_c, ptr[rsp + kStackC]);
  }
}

void ExactX64::run_tiles() {
  Xbyak::Label next, small, done;
  const int window = steps_in_block() * step_bytes(), asked = steps_in_block() * 64;
  mov(reg_tiles, slot(kTiles));
  mov(reg_tmp, slot(kY));
  mov(slot(kYTile), reg_tmp);
  mov(reg_tmp, slot(kLargeTiles));
  mov(slot(kLargeLeft), reg_tmp);
  if (panel()) {
    lea(reg_ahead, ptr[reg_w + window]);
    dec(slot(kLargeLeft));
    jmp(slot(kFill));
  }
  L(next);
  if (panel()) {
    // The next block of inputs is asked for by the first tiles, a line a step.
    lea(reg_tmp, ptr[reg_w + (2 * window - asked)]);
    cmp(reg_ahead, reg_tmp);
    cmova(reg_ahead, reg_tmp);
  }
  dec(slot(kLargeLeft));
  js(small, T_NEAR);
  jmp(slot(kBodyLarge));
  L(small);
  jmp(slot(kBody));
  for (const bool fill : {true, false}) {
    if (fill && !panel()) continue;
    for (int rows = 1; rows <= most_rows_; ++rows) {
      body(rows, fill);
      if (fill || rows < most_rows_) jmp(done, T_NEAR);
    }
  }
  L(done);
  dec(reg_tiles);
  jnz(next, T_NEAR);
}

void ExactX64::body(int rows, bool fill) {
  L((fill ? fills_ : bodies_)[static_cast<size_t>(rows)]);
  ask_for_outputs(rows);
  const std::vector<Pass> all = passes(rows);
  for (size_t i = 0; i < all.size(); ++i) run_pass(all[i], rows, fill, i == 0);
  if (config_.rows <= most_rows_) return;  // one tile
  add(reg_x, static_cast<uint32_t>(rows * config_.row_bytes()));
  add(reg_c, rows * kRowBytesC);
  add(reg_starts, static_cast<uint32_t>(rows * start_stride()));
  add(reg_x_scales, rows * 4);
  imul(reg_tmp, ptr[reg_args + offsetof(ExactTile, ldy)], rows);
  add(slot(kYTile), reg_tmp);
}

// The lines of y that this tile will write, one of each row in each of the last blocks of inputs: a channel block of many rows ends
// in a burst of stores that would all miss.
void ExactX64::ask_for_outputs(int rows) {
  Xbyak::Label later;
  const int lines = (config_.block_width * y_bytes() + 63) / 64;
  mov(reg_tmp, slot(kBlocksOfK));
  cmp(reg_tmp, lines);
  jg(later, T_NEAR);
  shl(reg_tmp, 6);
  add(reg_tmp, slot(kYTile));
  mov(reg_count, ptr[reg_args + offsetof(ExactTile, ldy)]);
  for (int row = 0; row < rows; ++row) {
    prefetcht1(ptr[reg_tmp - 64]);
    if (row + 1 < rows) add(reg_tmp, reg_count);
  }
  L(later);
}

void ExactX64::run_pass(const Pass& pass, int rows, bool fill, bool first) {
  const int steps = unroll(rows), bytes = panel() ? panel_step_bytes() : step_bytes();
  begin_sums(pass, rows);
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
    if (fill) {
      fill_step(pass, rows, step);
    } else {
      load_step(pass, rows, step);
    }
    if (panel()) {
      prefetcht0(ptr[reg_ahead + step * 64]);
    } else if (first) {
      for (int line = 0; line < bytes; line += 64) {
        prefetcht1(ptr[reg_w_now + step * bytes + line + kAheadL2]);
        prefetcht0(ptr[reg_w_now + step * bytes + line + kAheadL1]);
      }
    }
    for (int row = 0; row < rows; ++row) multiply(row, pass, rows, step);
  }
  if (panel()) add(reg_ahead, steps * 64);
  if (fill) add(reg_w, steps * step_bytes());
  add(reg_w_now, steps * bytes);
  add(reg_x_now, steps * kStepInputs);
  dec(reg_count);
  jnz(iteration, T_NEAR);
  if (fill) mov(reg_w, slot(kCodesNow));
  end_sums(pass, rows);
}

void ExactX64::begin_sums(const Pass& pass, int rows) {
  Xbyak::Label fresh, begun;
  const int vectors = static_cast<int>(pass.channel.size());
  if (in_pieces()) {
    cmp(slot(kBlocksOfK), static_cast<uint32_t>(pieces()));
    je(fresh, T_NEAR);
    for (int row = 0; row < rows; ++row) {
      for (int i = 0; i < vectors; ++i) {
        vmovaps(acc(row, i, vectors), waiting_sum(row, pass.channel[static_cast<size_t>(i)]));
      }
    }
    jmp(begun, T_NEAR);
    L(fresh);
  }
  for (int row = 0; row < rows; ++row) start(row, pass, rows);
  L(begun);
}

void ExactX64::end_sums(const Pass& pass, int rows) {
  Xbyak::Label last, ended;
  const int vectors = static_cast<int>(pass.channel.size());
  if (in_pieces()) {
    cmp(slot(kBlocksOfK), 1);
    je(last, T_NEAR);
    for (int row = 0; row < rows; ++row) {
      for (int i = 0; i < vectors; ++i) {
        vmovaps(waiting_sum(row, pass.channel[static_cast<size_t>(i)]), acc(row, i, vectors));
      }
    }
    jmp(ended, T_NEAR);
    L(last);
  }
  fold(pass, rows);
  L(ended);
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
  if (!in_pieces()) add(slot(kStartsNow), kStartBytes);
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
