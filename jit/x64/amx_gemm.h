// SPDX-License-Identifier: Apache-2.0
// What the AMX kernels share: the tile configuration, the loop nest over channel blocks, blocks of inputs and tiles of 16 rows,
// accumulators in scratch, epilogue and stores. docs/amx.md draws the nest and says what a kernel owes to other users of tiles.
//
// For each channel block, for each block of inputs: the weights become a panel of B tiles in scratch (or are B tiles as packed),
// every 16 rows of x run over it with one C tile for 16 channels, and their sums are folded into fp32 accumulators while they are
// in L1. A call configures its tiles first and releases them last: it depends on nobody's configuration and leaves none behind.
#pragma once

#include "jit/x64/generator.h"
#include "jit/x64/store_avx512.h"
#include "omni/linear.h"

namespace okl::jit {

struct AmxShape {
  // Inputs, all multiples of 32. A block is what is summed in tiles; a group holds whole blocks, the last group may be shorter.
  int64_t padded_k, group, block;
  int width;        // channels stored in a channel block: 16, 32, 48 or 64
  int x_bytes;      // of an element of x
  bool panel;       // whether unpack_row() makes B tiles; else the packed weights are B tiles
  int scale_bytes;  // of a channel in one group, zeros included where they are interleaved; 0: no scales
  uint16_t y_type, residual_type;
  uint8_t epilogue;
  int rows;  // most rows of a call
};

// What StoreAvx512 asks. The bias is where the accumulators start, so that the store knows of none.
class AmxStores : public Generator {
 protected:
  explicit AmxStores(const AmxShape& shape) : Generator(VectorWidth::kZmm), shape_(shape) {}

  bool has_bias() const { return false; }
  bool has_residual() const { return (shape_.epilogue & OMNI_EPILOGUE_RESIDUAL) != 0; }
  bool residual_is_f32() const { return shape_.residual_type == OMNI_DTYPE_F32; }
  bool y_is_f32() const { return shape_.y_type == OMNI_DTYPE_F32; }
  bool torch_store() const { return false; }

  const AmxShape shape_;
  const Xbyak::Reg64 reg_tmp = rax;
  const Xbyak::Reg64 reg_tmp2 = r13;
  const Xbyak::Reg64 reg_bias = r13;  // never used
};

class AmxGemm : public StoreAvx512<AmxStores> {
 public:
  static constexpr int kTileRows = 16;
  // Most rows of a call: their accumulators (32 KiB), a panel of 128 int8 inputs (8 KiB) and the sums of a tile (4 KiB) are about
  // an L1 of Sapphire Rapids, and unpacking is shared by eight tiles.
  static constexpr int kMaxRows = 128;

 protected:
  // Where the fields of the kernel's argument struct stand.
  struct Arguments {
    size_t codes, scales, scale_stride, x, x_stride, y, ldy, bias, residual, ld_residual, channels, blocks, rows, scratch;
  };
  template <typename Tile>
  static constexpr Arguments arguments_of();

  using Shape = AmxShape;

  AmxGemm(const Shape& shape, const Arguments& arguments) : StoreAvx512(shape), args_(arguments) {}

  static constexpr size_t scratch_bytes(const Shape& shape) {
    return panel_bytes(shape) + static_cast<size_t>((kTileRows + shape.rows) * shape.width * 4);
  }

  void generate() final;

  // --- what a kernel adds, in the order in which it runs
  // -----------------------------------------------------------------------------
  virtual void load_constants() {}                           // once a call
  virtual void begin_channel_block() {}                      // pointers of its own
  virtual void load_group() {}                               // scales and zeros of the group at reg_scales
  virtual void unpack_row(int) {}                            // one row of each B tile, to ptr[reg_unpack + row * stride()]
  virtual int packed_row_bytes() const { return stride(); }  // of the packed weights that one such row comes from
  virtual void dot(const Xbyak::Tmm& c, const Xbyak::Tmm& a, const Xbyak::Tmm& b) = 0;
  virtual void point_at_row_values(const Xbyak::Reg64&) {}  // that register to what fold_row() needs of row reg_row
  virtual int row_values_stride() const { return 0; }       // from one row of it to the next
  virtual void fold_row(const Xbyak::Reg64& sums, const Xbyak::Reg64& accumulators, const Xbyak::Reg64& row_values) = 0;
  virtual void end_block() {}
  virtual void end_group() {}
  virtual void advance_own_pointers() {}  // by 64 channels

  int vectors() const { return shape_.width / 16; }
  int stride() const { return vectors() * 64; }  // bytes of a row of all B tiles, of all C tiles and of the accumulators
  // Registers by role; temporaries may be used by every hook.
  Xbyak::Zmm scale(int v) const { return Xbyak::Zmm(16 + v); }
  Xbyak::Zmm zero(int v) const { return Xbyak::Zmm(20 + v); }
  Xbyak::Zmm constant(int i) const { return Xbyak::Zmm(28 + i); }
  Xbyak::Zmm temporary(int i) const { return Xbyak::Zmm(i); }

  // 8-byte slots for what a kernel has no register for.
  Xbyak::Address own_slot(int i) { return qword[rsp + kOwnSlots + 8 * i]; }

  const Xbyak::Reg64 reg_args = rdi;
  const Xbyak::Reg64 reg_codes = rsi;
  const Xbyak::Reg64 reg_scales = r8;  // of the current group
  const Xbyak::Reg64 reg_row = rbx;
  const Xbyak::Reg64 reg_unpack = r12;

 private:
  // The stack: what LDTILECFG reads, then 8-byte slots.
  static constexpr int kConfiguration = 0, kTileRowsSlot = 64, kGroupsLeft = 72, kBlocksLeft = 80, kChannelBlocksLeft = 88, kY = 96,
                       kBias = 104, kResidual = 112, kScales = 120, kOwnSlots = 128, kStackBytes = 192;
  // C 0-3; A and B of 64 bytes of inputs; A and B of a last 32 bytes, which int8 has, or another pair so that loads run ahead.
  static constexpr int kA = 4, kB = 5, kOtherA = 6, kOtherB = 7;
  static constexpr int kStepBytes = 64;

  static constexpr size_t panel_bytes(const Shape& shape) {
    return shape.panel ? static_cast<size_t>(shape.block < shape.padded_k ? shape.block : shape.padded_k) *
                             static_cast<size_t>(shape.x_bytes * shape.width)
                       : 0;
  }

  bool starts_at_bias() const { return (shape_.epilogue & OMNI_EPILOGUE_BIAS) != 0; }
  bool half_steps() const { return (shape_.block % (kStepBytes / shape_.x_bytes)) != 0 || last_is_half(); }
  bool last_is_half() const { return shape_.padded_k % (kStepBytes / shape_.x_bytes) != 0; }

  void load_arguments();
  void configure_tiles();
  void clear_accumulators();
  void emit_groups();
  void emit_group(int64_t inputs);
  void emit_block(int64_t inputs);
  void unpack_panel(int64_t inputs);
  void emit_row_tiles(int64_t inputs);
  void emit_tile_products(int64_t inputs);
  void emit_steps(int first_step, int count);
  void emit_half_step(int at_step);
  void fold_rows();
  void finish_rows();
  void advance_channel_block();

  const Arguments args_;
  const Xbyak::Reg64 reg_x = rdx;  // row 0 of the current block of inputs
  const Xbyak::Reg64 reg_x_stride = rcx;
  const Xbyak::Reg64 reg_scale_stride = r9;
  const Xbyak::Reg64 reg_scratch = r10;
  const Xbyak::Reg64 reg_stride = r11;  // stride()
  const Xbyak::Reg64 reg_a = r12, reg_b = r13, reg_steps = r14;
  const Xbyak::Reg64 reg_accumulators = r12, reg_row_values = r13, reg_rows_left = r15;
};

template <typename Tile>
constexpr AmxGemm::Arguments AmxGemm::arguments_of() {
  return {offsetof(Tile, codes),    offsetof(Tile, scales),      offsetof(Tile, scale_stride), offsetof(Tile, x),
          offsetof(Tile, x_stride), offsetof(Tile, y),           offsetof(Tile, ldy),          offsetof(Tile, bias),
          offsetof(Tile, residual), offsetof(Tile, ld_residual), offsetof(Tile, channels),     offsetof(Tile, blocks),
          offsetof(Tile, rows),     offsetof(Tile, scratch)};
}

}  // namespace okl::jit
