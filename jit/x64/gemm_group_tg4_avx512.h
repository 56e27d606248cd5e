// SPDX-License-Identifier: Apache-2.0
// Class group, 7 to 16 rows of x, on AVX-512 F/BW/DQ/VL: a chunk of 32 inputs is unpacked once for all rows.
//
// Where FMA decides, GroupTg4Avx512Fma spends 8 of 24 port slots a row tile on unpacking, once for each tile of six rows. Here the
// fp32 codes of a chunk go to an 8 KiB panel in L1 first, and every tile only loads them: 16 rows of 13312x2048 take 44 cycles for
// an input of 64 channels against 50 (cold, one core of Emerald Rapids). d and c of all rows live on the stack; a tile keeps its d
// in registers through a chunk.
#pragma once

#include "jit/x64/linear_tg4_avx512.h"
#include "kernels/gemv/prepare.h"

namespace okl::jit {

class GemmGroupTg4Avx512 final : public LinearTg4Avx512 {
 public:
  static constexpr int kMaxRows = 16;
  explicit GemmGroupTg4Avx512(const LinearConfig& config);

 private:
  static constexpr int kTileRows = 6;      // 24 d, 4 w, 2 x
  static constexpr int kChunkInputs = 32;  // K is padded to this
  static constexpr int kUnrolledInputs = 8;

  void generate() override;
  void begin_block() override;
  void emit_all_groups();
  void emit_group(int64_t chunks);
  void unpack_chunk();
  void run_tile(int first_row, int rows);
  void emit_input(int input, int first_row, int rows);
  void fold_group();
  void finish_block() override;

  int row_vector_bytes() const { return vectors() * 64; }
  int rows_bytes() const { return config_.rows * row_vector_bytes(); }
  Xbyak::Address c_slot(int row, int i) { return ptr[rsp + row * row_vector_bytes() + i * 64]; }
  Xbyak::Address d_slot(int row, int i) { return ptr[rsp + rows_bytes() + row * row_vector_bytes() + i * 64]; }
  int panel_offset() const { return 2 * rows_bytes(); }
  int panel_bytes() const { return kChunkInputs * row_vector_bytes(); }
  Xbyak::Address chunks_left() { return qword[rsp + panel_offset() + panel_bytes()]; }

  Xbyak::Zmm d(int row_of_tile, int i) const { return Xbyak::Zmm(row_of_tile * vectors() + i); }
  const Xbyak::Reg64 reg_panel = rax;
};

}  // namespace okl::jit
