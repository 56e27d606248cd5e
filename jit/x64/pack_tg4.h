// SPDX-License-Identifier: Apache-2.0
// Packing a tg4 block: 64 rows of 64 codes are combined into 32 rows of 64 bytes, which are then transposed.
#pragma once

#include "jit/x64/generator.h"
#include "kernels/repack/pack_kernel.h"

namespace okl::jit {

class PackTg4 : public Generator {
 public:
  static constexpr int kStep = 64;  // inputs: whole cache lines of a dense row

 protected:
  static constexpr int kRows = 32;
  static constexpr int kCombinedBytes = kRows * kStep;  // at [rsp]
  static constexpr int kScratch = kCombinedBytes;       // behind it

  PackTg4(VectorWidth width, int scratch_bytes) : Generator(width), scratch_bytes_(scratch_bytes) {}

  void generate() final;

  virtual void clear_seen() = 0;
  // Combines the rows at reg_low_row_ and reg_high_row_: low | high << 4 into [rsp + 64 * row], both ORed into `seen`.
  virtual void combine_row(int row) = 0;
  virtual void begin_combine() = 0;
  virtual void end_combine() = 0;
  // Columns [32 * half, + 32) of the combined rows to reg_out_.
  virtual void transpose_half(int half) = 0;
  // eax = whether a byte of `seen` is above 15.
  virtual void report_seen() = 0;

  Xbyak::Address combined(int row, int column) { return ptr[rsp + kStep * row + column]; }

  const Xbyak::Reg64 reg_tile_ = rdi;
  const Xbyak::Reg64 reg_codes_ = rsi;     // channel 0, first input of the step
  const Xbyak::Reg64 reg_low_row_ = rdx;   // channel d
  const Xbyak::Reg64 reg_high_row_ = rcx;  // channel d + 32
  const Xbyak::Reg64 reg_ld_ = r8;
  const Xbyak::Reg64 reg_out_ = r9;
  const Xbyak::Reg64 reg_steps_ = r10;
  const Xbyak::Reg64 reg_half_rows_ = r11;  // 32 * ld

 private:
  void load_arguments();
  void combine_rows();

  const int scratch_bytes_;
};

class PackTg4Avx512 final : public PackTg4 {
 public:
  PackTg4Avx512() : PackTg4(VectorWidth::kZmm, 64) {}

 private:
  void clear_seen() override;
  void begin_combine() override;
  void combine_row(int row) override;
  void end_combine() override;
  void transpose_half(int half) override;
  void report_seen() override;

  // The transpose needs every register: `seen` waits in memory.
  const Xbyak::Zmm zmm_seen_ = zmm31;
};

class PackTg4Avx2 final : public PackTg4 {
 public:
  PackTg4Avx2() : PackTg4(VectorWidth::kYmm, 32 * 32 + 32) {}

 private:
  void clear_seen() override;
  void begin_combine() override;
  void combine_row(int row) override;
  void end_combine() override;
  void transpose_half(int half) override;
  void report_seen() override;

  const Xbyak::Ymm ymm_seen_ = ymm15;
};

}  // namespace okl::jit
