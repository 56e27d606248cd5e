// SPDX-License-Identifier: Apache-2.0
// Class group, one row of x, on AVX-512 F/BW/DQ/VL: two blocks of 64 channels at a time, each in half of a register.
//
// On Intel the two vector ports decide: with VPMOVZXBD and a shift for every vector (linear_tg4_avx512.h) 128 codes cost 24 port
// slots, 13 cycles measured, more than memory needs to bring them. Here the load ports unpack instead. A chunk of 32 inputs of both
// blocks is copied to the stack one chunk ahead, as it is and shifted right by four bits:
//
//   input k, 128 bytes:   [block A, 32 bytes][block B, 32 bytes][A >> 4, 32 bytes][B >> 4, 32 bytes]
//
// A 64-byte load at byte offset b = 0..3 then has the code of channel 4l + b in the low four bits of dword l, and VPERMPS reads no
// more than those. Left are one shift, eight look-ups and eight FMAs for 128 codes: 17 slots. The loop
// alone takes 9.5 cycles, copies included, and the whole kernel 10.5. fp32 scales take four permutes a register and group instead
// of two: a model of 1.7 billion weights makes a token in 40.6 ms so, and in 45.0 with the other loop.
#pragma once

#include "jit/x64/linear_tg4_avx512.h"

namespace okl::jit {

class GemvGroupTg4Avx512 final : public LinearTg4Avx512 {
 public:
  static constexpr int kMaxRows = 1;
  explicit GemvGroupTg4Avx512(const LinearConfig& config);

  // Full blocks; others are left to GroupTg4Avx512Fma, with the same bits.
  static bool serves(const LinearConfig& config) { return config.block_width == kBlockChannels; }

 private:
  static constexpr int kChunkInputs = 32;
  static constexpr int kInputBytes = 128;                         // of one input in a chunk
  static constexpr int kChunkBytes = kChunkInputs * kInputBytes;  // 4 KiB: two of them stay in L1
  // Not a multiple of 4 KiB: a load whose low 12 address bits match those of a store in flight waits for it (12.4 against 10.5
  // cycles for 128 codes).
  static constexpr int kBufferDistance = kChunkBytes + 2048;
  // Codes are asked for this many chunks (1 KiB of either block) before they are copied. The hardware prefetcher stops at page
  // ends and restarts at each block: 20 GB/s on two cores of Emerald Rapids without, 28 to 30 with.
  static constexpr int kPrefetchChunks = 2;

  void generate() override;
  void begin_portion();
  void ask_for_first_chunks();
  void begin_pair();
  void emit_chunk();
  void emit_input(int input);
  void copy_inputs(int input);
  void next_group(const Xbyak::Label& next_chunk);
  void fold_group();
  void load_half_scales(int half);
  void permute_scales(int byte, const Xbyak::Zmm& scale, const Xbyak::Zmm& zero, const Xbyak::Zmm& tmp);
  void finish_pair();
  void to_channel_order(int half);
  void store_block(int block);
  void advance_pair();

  // Loop state on the stack, touched once a chunk or less.
  enum Slot : int {
    kGroupChunksLeft,
    kGroupsLeft,
    kBufferSum,  // addresses of both chunk buffers added up
    kSecondNow,  // bytes from block A to block B of the pair that is computed; 0 when A is the last block
    kBias,
    kResidual,
    kCopyCursor,  // five slots each, see begin_cursor
    kPrefetchCursor = kCopyCursor + 5,
    kSlots = kPrefetchCursor + 5
  };
  static constexpr int kSlotBytes = 128;
  static_assert(kSlots * 8 <= kSlotBytes);
  Xbyak::Address slot(int index) { return qword[rsp + index * 8]; }

  // A cursor walks over the chunks of all pairs. Behind the last pair it starts that pair again: what it points at is never used
  // then, but may be read.
  static constexpr int kChunk = 0, kChunksLeft = 1, kBlocksLeft = 2, kPair = 3, kSecond = 4;
  void begin_cursor(int cursor);
  void advance_cursor(int cursor);
  void second_block_offset();

  int64_t block_bytes() const { return config_.padded_k() * (kBlockChannels / 2); }
  int64_t chunks_in_block() const { return config_.padded_k() / kChunkInputs; }
  int64_t chunks_in_group(int64_t g) const { return config_.padded_inputs_in_group(g) / kChunkInputs; }

  // Vectors by (half, byte): lane l < 8 is channel 32 * half + 4 * l + byte of block A, lane 8 + l that of block B.
  Xbyak::Zmm d(int half, int byte) const { return Xbyak::Zmm(half * 4 + byte); }
  Xbyak::Zmm c(int half, int byte) const { return Xbyak::Zmm(8 + half * 4 + byte); }
  Xbyak::Zmm code(int i) const { return Xbyak::Zmm(16 + i); }  // eight look-ups in flight
  const Xbyak::Opmask k_second = k7;                           // lanes of block B

  const Xbyak::Reg64 reg_read = r14;  // chunk that is computed
  // Inside emit_chunk:
  const Xbyak::Reg64 reg_write = rax;            // chunk that is filled
  const Xbyak::Reg64 reg_second_codes = r15;     // block B of the chunk that is copied
  const Xbyak::Reg64 reg_prefetch = r12;         // the chunk that is asked for
  const Xbyak::Reg64 reg_second_prefetch = r13;  // likewise of block B
};

}  // namespace okl::jit
