// SPDX-License-Identifier: Apache-2.0
// The loop nest of class exact on x86-64, for any register width: channel blocks, blocks of inputs, row tiles, steps of four
// inputs. What a step is made of is the business of the class for one ISA.
//
// C lives in memory, [rows][64] fp32, because the integer accumulators of a tile need the registers: on the stack for the direct
// path, in scratch behind the panel for the other. Nothing of K is unrolled but a step or eight, so one code serves every block of
// inputs, the short last one included.
//
// The code holds one body for each number of rows up to kernel's most. A call of the direct path is one body; the panel path
// unpacks a block of inputs once and runs tiles of at most kPanelTile rows over it, whose sizes differ by one at most.
#pragma once

#include <string_view>
#include <vector>

#include "jit/x64/generator.h"
#include "kernels/gemm/exact_kernel.h"

namespace okl::jit {

class ExactX64 : public Generator {
 public:
  static constexpr int64_t kMostPanelInputs = 256;  // of a panel
  static constexpr int kRowBytesC = kExactBlockChannels * 4;

  // Bytes of scratch of the panel path for `config`: the panel, C and perhaps waiting sums.
  static size_t panel_scratch(const ExactConfig& config) {
    const int64_t inputs = config.block < kMostPanelInputs ? (config.block + 31) / 32 * 32 : kMostPanelInputs;
    const int64_t rows = config.block > kMostPanelInputs ? 2 * config.rows : config.rows;
    return static_cast<size_t>(inputs * config.block_width + rows * kRowBytesC);
  }

 protected:
  static constexpr int kStepInputs = 4;
  // Steps of one iteration. Blocks of inputs are padded to 32, so eight always divide.
  static constexpr int kMostUnroll = 8;
  static constexpr int kPanelTile = 6;

  ExactX64(const ExactConfig& config, VectorWidth width, int direct_tile);

  void generate() override;

  // Accumulators of a tile: some vectors of one step that are loaded together.
  struct Pass {
    int weights;               // byte of the step at which they begin
    std::vector<int> channel;  // first channel of each vector
  };

  // --- hooks -------------------------------------------------------------------------------------------------------------------
  virtual std::vector<Pass> passes(int rows) const = 0;
  virtual int weight_registers(int vectors) const { return vectors; }
  virtual void load_constants() {}                              // once a call: channel masks, registers that stay
  virtual void init_rows() = 0;                                 // C = bias or +0, for every row
  virtual void load_group() = 0;                                // scales and zero points of the channel block into their buffers
  virtual void store_rows() = 0;                                // residual and store, for every row
  virtual void start(int row, const Pass& pass, int rows) = 0;  // accumulators of one row
  virtual void load_step(const Pass& pass, int rows, int step) = 0;          // w()
  virtual void fill_step(const Pass&, int, int) {}                           // likewise from reg_w, and into the panel at reg_w_now
  virtual void multiply(int row, const Pass& pass, int rows, int step) = 0;  // one row of x by w()
  virtual void separate(int row, const Pass& pass, int rows) {               // after the last step, before the fold
    (void)row, (void)pass, (void)rows;
  }

  bool has_bias() const { return config_.epilogue & OMNI_EPILOGUE_BIAS; }
  bool has_residual() const { return config_.epilogue & OMNI_EPILOGUE_RESIDUAL; }
  bool panel() const { return config_.path == ExactPath::kPanel; }
  bool w4() const { return config_.is_w4(); }
  int y_bytes() const { return config_.y_type == OMNI_DTYPE_F32 ? 4 : 2; }
  int residual_bytes() const { return config_.residual_type == OMNI_DTYPE_F32 ? 4 : 2; }
  int step_bytes() const { return static_cast<int>(config_.step_bytes()); }
  int panel_step_bytes() const { return config_.block_width * kStepInputs; }
  // A long block goes through the panel in pieces; sums wait in scratch in between. There is one such block: its group is K.
  bool in_pieces() const { return panel() && config_.block > kMostPanelInputs; }
  int64_t piece() const { return in_pieces() ? kMostPanelInputs : config_.block; }
  int64_t pieces() const { return in_pieces() ? (config_.padded_k() + piece() - 1) / piece() : config_.blocks(); }
  int steps_in_block() const { return static_cast<int>((piece() + 31) / 32) * kMostUnroll; }
  int panel_bytes() const { return steps_in_block() * panel_step_bytes(); }
  int start_stride() const { return static_cast<int>(config_.blocks()) * kStartBytes; }  // from row to row
  int unroll(int rows) const { return rows <= 2 ? 8 : 4; }
  int lanes() const { return kind_ == Xbyak::Operand::ZMM ? 16 : 8; }

  // Registers of a tile in this order: accumulators, weights, then x and what a multiply needs.
  Xbyak::Xmm vec(int i) const { return Xbyak::Xmm(kind_, i); }
  Xbyak::Xmm acc(int row, int i, int vectors) const { return vec(row * vectors + i); }
  Xbyak::Xmm w(int i, int rows, int vectors) const { return vec(rows * vectors + i); }
  Xbyak::Xmm extra(int i, int rows, int vectors) const { return vec(rows * vectors + weight_registers(vectors) + i); }

  // What a step reads. x and starts of row `row` of the tile.
  Xbyak::Address x_address(int row, int step) const {
    return ptr[reg_x_now + static_cast<int>(row * config_.row_bytes()) + step * kStepInputs];
  }
  Xbyak::Address start_address(int row, int which) const { return ptr[reg_starts + row * start_stride() + which * 4]; }
  Xbyak::Address weight_address(const Pass& pass, int step, int byte) const {
    return ptr[reg_w_now + step * (panel() ? panel_step_bytes() : step_bytes()) + pass.weights + byte];
  }
  Xbyak::Address scale_buffer(int channel) const { return ptr[rsp + kScaleBuffer + channel * 4]; }
  Xbyak::Address zero_buffer(int channel) const { return ptr[rsp + kZeroBuffer + channel * 4]; }
  Xbyak::Address c_address(int row, int channel) const { return ptr[reg_c + row * kRowBytesC + channel * 4]; }
  Xbyak::Address waiting_sum(int row, int channel) const { return ptr[reg_c + (config_.rows + row) * kRowBytesC + channel * 4]; }

  // State of the call on the stack, touched once a block of inputs or less.
  enum Slot : int {
    kBlocksLeft,
    kBlockCodes,   // channel block
    kBlockScales,  // group 0
    kBlockZeros,
    kY,
    kBias,
    kResidual,
    kX,       // row 0, input 0
    kStarts,  // row 0, block 0
    kScales,  // current group
    kZeros,
    kGroupLeft,  // blocks of inputs of the current group
    kBlocksOfK,  // blocks of inputs left, or pieces
    kPartial,    // for those who have no masks
    kYTile,
    kCodesNow,
    kXNow,  // row 0 at the current block of inputs
    kStartsNow,
    kBody,
    kFill,
    kBodyLarge,
    kLargeTiles,
    kTiles,
    kLargeLeft,
    kSlots
  };
  Xbyak::Address slot(int index) const { return qword[rsp + kSlotBase + index * 8]; }

  static constexpr int kStartBytes = 8;
  static constexpr int kScaleBuffer = 0, kZeroBuffer = 256, kSlotBase = 512, kStackC = 768;
  static_assert(kSlots * 8 <= kStackC - kSlotBase);

  const ExactConfig config_;

  const Xbyak::Reg64 reg_args = rdi;
  const Xbyak::Reg64 reg_w = rsi;        // codes at the current block of inputs
  const Xbyak::Reg64 reg_x = rdx;        // x of the tile at the current block of inputs
  const Xbyak::Reg64 reg_c = rcx;        // C of the tile
  const Xbyak::Reg64 reg_starts = r8;    // of the tile at the current block of inputs
  const Xbyak::Reg64 reg_x_scales = r9;  // of the tile
  const Xbyak::Reg64 reg_scratch = r10;  // the panel
  const Xbyak::Reg64 reg_ahead = r11;    // weights to ask for
  const Xbyak::Reg64 reg_w_now = r12;    // inside a body
  const Xbyak::Reg64 reg_x_now = r14;
  const Xbyak::Reg64 reg_iterations = r13;  // of eight steps in the current block of inputs
  const Xbyak::Reg64 reg_count = rbx;
  const Xbyak::Reg64 reg_tiles = r15;
  const Xbyak::Reg64 reg_tmp = rax;

 private:
  void load_arguments();
  void choose_bodies();
  void begin_block();
  void begin_inputs();
  void run_tiles();
  void body(int rows, bool fill);
  void run_pass(const Pass& pass, int rows, bool fill, bool first);
  void ask_for_outputs(int rows);
  void begin_sums(const Pass& pass, int rows);
  void end_sums(const Pass& pass, int rows);
  void fold(const Pass& pass, int rows);
  void next_inputs();
  void next_block();
  int stack_bytes() const;

  const Xbyak::Operand::Kind kind_;
  const int most_rows_;                       // of a tile
  std::vector<Xbyak::Label> bodies_, fills_;  // by rows
};

// Assembles `Kernel` for a configuration through the cache: the `make` of a JIT row.
template <typename Kernel>
ExactCode make_exact(const ExactConfig& config, std::string_view name) {
  const GeneratedCode code = find_or_generate(name, config, [&] { return Kernel(config).assemble(); });
  return {reinterpret_cast<ExactTileFn>(const_cast<void*>(code.entry)), code.bytes};
}

}  // namespace okl::jit
