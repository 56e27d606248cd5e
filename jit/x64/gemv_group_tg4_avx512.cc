// SPDX-License-Identifier: Apache-2.0
#include "jit/x64/gemv_group_tg4_avx512.h"

#include <algorithm>
#include <cstddef>

namespace okl::jit {

GemvGroupTg4Avx512::GemvGroupTg4Avx512(const LinearConfig& config) : LinearTg4Avx512(config, kChunkInputs / 2, 0) {
  set_x_form(XForm::kFloats);
}

void GemvGroupTg4Avx512::generate() {
  Xbyak::Label next_pair, next_chunk;
  prologue(kSlotBytes + kBufferDistance + kChunkBytes);
  load_arguments();
  load_channel_masks();
  load_fp32_table();
  begin_portion();
  L(next_pair);
  begin_pair();
  L(next_chunk);
  emit_chunk();
  next_group(next_chunk);
  finish_pair();
  advance_pair();
  jg(next_pair, T_NEAR);
  epilogue();
}

void GemvGroupTg4Avx512::begin_portion() {
  mov(reg_tmp.cvt32(), 0xFF00);
  kmovw(k_second, reg_tmp.cvt32());
  mov(slot(kBias), reg_bias);
  mov(slot(kResidual), reg_residual);
  begin_cursor(kCopyCursor);
  begin_cursor(kPrefetchCursor);
  ask_for_first_chunks();
  for (int chunk = 0; chunk < kPrefetchChunks; ++chunk) advance_cursor(kPrefetchCursor);
  lea(reg_read, ptr[rsp + kSlotBytes]);
  lea(reg_write, ptr[reg_read * 2 + kBufferDistance]);
  mov(slot(kBufferSum), reg_write);
  mov(reg_write, reg_read);
  mov(reg_second_codes, slot(kCopyCursor + kSecond));
  add(reg_second_codes, reg_codes);
  mov(reg_prefetch, reg_codes);
  mov(reg_second_prefetch, reg_second_codes);
  for (int input = 0; input < kChunkInputs; input += 2) copy_inputs(input);
}

// Nothing has asked for the first codes and scales yet: a portion of six blocks loses 5 % to these misses otherwise.
void GemvGroupTg4Avx512::ask_for_first_chunks() {
  mov(reg_tmp, slot(kCopyCursor + kSecond));
  const int bytes = static_cast<int>(std::min<int64_t>(chunks_in_block(), kPrefetchChunks + 1)) * kChunkInputs * row_bytes();
  for (int line = 0; line < bytes; line += 64) {
    prefetcht0(ptr[reg_codes + line]);
    prefetcht0(ptr[reg_codes + reg_tmp + line]);
  }
  mov(reg_scales, reg_block_scales);
  prefetch_scales(0, 2);
}

void GemvGroupTg4Avx512::begin_cursor(int cursor) {
  mov(slot(cursor + kChunk), reg_codes);
  mov(slot(cursor + kPair), reg_codes);
  mov(slot(cursor + kBlocksLeft), reg_blocks);
  mov(reg_tmp, chunks_in_block());
  mov(slot(cursor + kChunksLeft), reg_tmp);
  mov(reg_tmp2, reg_blocks);
  second_block_offset();
  mov(slot(cursor + kSecond), reg_tmp);
}

// reg_tmp = bytes from block A to block B when reg_tmp2 blocks are left, 0 for a single one: it then runs as both, and only A is
// stored.
void GemvGroupTg4Avx512::second_block_offset() {
  cmp(reg_tmp2, 1);
  mov(reg_tmp, block_bytes());
  mov(reg_tmp2.cvt32(), 0);
  cmovle(reg_tmp, reg_tmp2);
}

void GemvGroupTg4Avx512::advance_cursor(int cursor) {
  Xbyak::Label same_pair, last_pair;
  add(slot(cursor + kChunk), kChunkInputs * row_bytes());
  dec(slot(cursor + kChunksLeft));
  jnz(same_pair);
  mov(reg_tmp, chunks_in_block());
  mov(slot(cursor + kChunksLeft), reg_tmp);
  mov(reg_tmp, slot(cursor + kPair));
  mov(reg_tmp2, slot(cursor + kBlocksLeft));
  cmp(reg_tmp2, 2);
  jle(last_pair);
  mov(reg_tmp2, 2 * block_bytes());
  add(reg_tmp, reg_tmp2);
  L(last_pair);
  mov(slot(cursor + kPair), reg_tmp);
  mov(slot(cursor + kChunk), reg_tmp);
  mov(reg_tmp2, slot(cursor + kBlocksLeft));
  cmp(reg_tmp2, 2);
  jle(same_pair);
  sub(reg_tmp2, 2);
  mov(slot(cursor + kBlocksLeft), reg_tmp2);
  second_block_offset();
  mov(slot(cursor + kSecond), reg_tmp);
  L(same_pair);
}

void GemvGroupTg4Avx512::begin_pair() {
  for (int i = 0; i < 16; ++i) vpxord(Xbyak::Zmm(i), Xbyak::Zmm(i), Xbyak::Zmm(i));  // d and c
  mov(reg_tmp, slot(kCopyCursor + kSecond));
  mov(slot(kSecondNow), reg_tmp);
  mov(reg_x, ptr[reg_args + offsetof(LinearTile, x)]);
  mov(reg_sums, ptr[reg_args + offsetof(LinearTile, sums)]);
  mov(reg_scales, reg_block_scales);
  mov(reg_tmp, config_.groups());
  mov(slot(kGroupsLeft), reg_tmp);
  mov(reg_tmp, chunks_in_group(0));
  mov(slot(kGroupChunksLeft), reg_tmp);
}

void GemvGroupTg4Avx512::emit_chunk() {
  advance_cursor(kCopyCursor);
  advance_cursor(kPrefetchCursor);
  const auto aim = [&](int cursor, const Xbyak::Reg64& first, const Xbyak::Reg64& second) {
    mov(first, slot(cursor + kChunk));
    mov(second, slot(cursor + kSecond));
    add(second, first);
  };
  aim(kPrefetchCursor, reg_prefetch, reg_second_prefetch);
  aim(kCopyCursor, reg_codes, reg_second_codes);
  mov(reg_write, slot(kBufferSum));
  sub(reg_write, reg_read);
  for (int input = 0; input < kChunkInputs; input += 2) {
    copy_inputs(input);
    emit_input(input + 1);  // the odd input of a pair first
    emit_input(input);
  }
  mov(reg_read, reg_write);
  add(reg_x, kChunkInputs * 4);
}

void GemvGroupTg4Avx512::copy_inputs(int input) {
  const int source = input * row_bytes(), destination = input * kInputBytes;
  for (int block = 0; block < 2; ++block) {
    const Xbyak::Zmm low(24 + 2 * block), high(25 + 2 * block);
    vmovdqu32(low, ptr[(block == 0 ? reg_codes : reg_second_codes) + source]);
    prefetcht0(ptr[(block == 0 ? reg_prefetch : reg_second_prefetch) + source]);
    vpsrlw(high, low, 4);
    for (const bool shifted : {false, true}) {
      const Xbyak::Zmm& bytes = shifted ? high : low;
      const int offset = destination + 32 * block + (shifted ? 64 : 0);
      vmovdqu32(ptr[reg_write + offset], Xbyak::Ymm(bytes.getIdx()));
      vextracti64x4(ptr[reg_write + offset + kInputBytes], bytes, 1);
    }
  }
}

void GemvGroupTg4Avx512::emit_input(int input) {
  vbroadcastss(zmm_x, ptr[reg_x + input * 4]);
  for (int half = 0; half < 2; ++half) {
    for (int byte = 0; byte < 4; ++byte) {
      const Xbyak::Zmm w = code(half * 4 + byte);
      vmovdqu32(w, ptr[reg_read + input * kInputBytes + half * 64 + byte]);
      vpermps(w, w, zmm_table);
      vfmadd231ps(d(half, byte), w, zmm_x);
    }
  }
}

void GemvGroupTg4Avx512::next_group(const Xbyak::Label& next_chunk) {
  dec(slot(kGroupChunksLeft));
  jnz(next_chunk, T_NEAR);
  fold_group();
  // The last group may be shorter.
  const int64_t last = config_.groups() - 1;
  mov(reg_tmp, chunks_in_group(0));
  if (chunks_in_group(last) != chunks_in_group(0)) {
    mov(reg_tmp2, chunks_in_group(last));
    cmp(slot(kGroupsLeft), 2);
    cmove(reg_tmp, reg_tmp2);
  }
  mov(slot(kGroupChunksLeft), reg_tmp);
  dec(slot(kGroupsLeft));
  jnz(next_chunk, T_NEAR);
}

void GemvGroupTg4Avx512::fold_group() {
  // Scales of block B follow those of block A; a single block has only its own.
  xor_(reg_tmp, reg_tmp);
  mov(reg_tmp2, kBlockChannels * 2 * scale_bytes());
  cmp(slot(kSecondNow), 0);
  cmovne(reg_tmp, reg_tmp2);
  add(reg_tmp, reg_scales);
  const Xbyak::Zmm scale = w(0), zero = w(1), tmp = w(2), sum = w(3);
  vbroadcastss(sum, ptr[reg_sums]);
  for (int half = 0; half < 2; ++half) {
    load_half_scales(half);
    for (int byte = 0; byte < 4; ++byte) {
      permute_scales(byte, scale, zero, tmp);
      vfmadd231ps(c(half, byte), scale, d(half, byte));
      vfmadd231ps(c(half, byte), zero, sum);
      vpxord(d(half, byte), d(half, byte), d(half, byte));
    }
  }
  prefetch_scales(2, 2);
  add(reg_scales, reg_scale_stride);
  add(reg_sums, 4);
  prefetch_scales(0, 2);  // of the next group: only the first pair of a portion has not asked for them before
}

// Scales and zeros of 32 channels of both blocks, block A's at reg_scales, B's at reg_tmp. bf16: code(0..1) are the (scale, zero)
// dwords of block A, code(2..3) those of block B. fp32: code(0..1) are the scales of block A and code(2..3) its zeros,
// code(4..7) the same of block B. Takes w(0).
void GemvGroupTg4Avx512::load_half_scales(int half) {
  for (int block = 0; block < 2; ++block) {
    const Xbyak::Reg64& base = block == 0 ? reg_scales : reg_tmp;
    for (int i = 0; i < 2; ++i) {
      const int offset = (half * 2 + i) * kLanes * 2 * scale_bytes();
      const Xbyak::Opmask& channels = k_channels(half * 2 + i);
      if (config_.scale_type == OMNI_DTYPE_BF16) {
        vmovdqu32(code(2 * block + i) | channels | T_z, ptr[base + offset]);
        continue;
      }
      const Xbyak::Zmm first = code(4 * block + i), second = code(4 * block + 2 + i), scales = w(0);
      kshiftrw(k_tmp, channels, 8);
      vmovdqu64(first | channels | T_z, ptr[base + offset]);
      vmovdqu64(second | k_tmp | T_z, ptr[base + offset + 64]);
      vmovdqa32(scales, ptr[pool(every_second_from(0))]);
      vpermi2ps(scales, first, second);
      vmovdqa32(zmm_x, ptr[pool(every_second_from(1))]);
      vpermi2ps(zmm_x, first, second);
      vmovaps(first, scales);
      vmovaps(second, zmm_x);
    }
  }
}

// Of the channels whose codes are in byte `byte` of each dword.
void GemvGroupTg4Avx512::permute_scales(int byte, const Xbyak::Zmm& scale, const Xbyak::Zmm& zero, const Xbyak::Zmm& tmp) {
  std::array<uint32_t, 16> index{};
  for (uint32_t lane = 0; lane < index.size(); ++lane) index[lane] = 4 * (lane % 8) + static_cast<uint32_t>(byte);
  const auto gather = [&](const Xbyak::Zmm& out, int of_a, int of_b) {
    vmovdqa32(out, ptr[pool(index)]);
    vmovdqa32(tmp, out);
    vpermi2d(out, code(of_a), code(of_a + 1));
    vpermi2d(tmp, code(of_b), code(of_b + 1));
    vmovdqa32(out | k_second, tmp);
  };
  if (config_.scale_type == OMNI_DTYPE_BF16) {
    gather(zero, 0, 2);
    vpslld(scale, zero, 16);
    vpandd(zero, zero, ptr_b[pool_word(0xFFFF0000)]);
  } else {
    gather(scale, 0, 4);
    gather(zero, 2, 6);
  }
}

void GemvGroupTg4Avx512::finish_pair() {
  Xbyak::Label single;
  to_channel_order(0);
  to_channel_order(1);
  mov(reg_bias, slot(kBias));
  mov(reg_residual, slot(kResidual));
  begin_store_row(0);
  store_block(0);
  cmp(slot(kSecondNow), 0);
  je(single, T_NEAR);
  store_block(1);
  L(single);
}

// Two 4x4 transposes, of dwords and of 128-bit lanes: c(half, 0..1) become channels 32 * half + 0..31 of block A, c(half, 2..3)
// those of block B.
void GemvGroupTg4Avx512::to_channel_order(int half) {
  const auto v = [&](int i) { return c(half, i); };
  vunpcklps(code(0), v(0), v(1));
  vunpckhps(code(1), v(0), v(1));
  vunpcklps(code(2), v(2), v(3));
  vunpckhps(code(3), v(2), v(3));
  vunpcklpd(code(4), code(0), code(2));  // 128-bit lane j: channels of l = 4j, and so on
  vunpckhpd(code(5), code(0), code(2));
  vunpcklpd(code(6), code(1), code(3));
  vunpckhpd(code(7), code(1), code(3));
  vshuff32x4(code(0), code(4), code(5), 0x88);  // lanes 0 and 2 of both
  vshuff32x4(code(1), code(6), code(7), 0x88);
  vshuff32x4(code(2), code(4), code(5), 0xDD);  // lanes 1 and 3
  vshuff32x4(code(3), code(6), code(7), 0xDD);
  vshuff32x4(v(0), code(0), code(1), 0x88);
  vshuff32x4(v(1), code(2), code(3), 0x88);
  vshuff32x4(v(2), code(0), code(1), 0xDD);
  vshuff32x4(v(3), code(2), code(3), 0xDD);
}

void GemvGroupTg4Avx512::store_block(int block) {
  for (int i = 0; i < 4; ++i) store_vector(c(i / 2, 2 * block + i % 2), 4 * block + i, code(0));
}

void GemvGroupTg4Avx512::advance_pair() {
  add(reg_block_scales, 2 * kBlockChannels * 2 * scale_bytes());
  add(reg_y, 2 * kBlockChannels * y_bytes());
  if (has_bias()) add(slot(kBias), 2 * kBlockChannels * 4);
  if (has_residual()) add(slot(kResidual), 2 * kBlockChannels * residual_bytes());
  sub(reg_blocks, 2);
}

}  // namespace okl::jit
