// SPDX-License-Identifier: Apache-2.0
// The contract between the attention driver and its kernels. docs/numerics.md says what is computed, docs/attention.md how the
// cache is laid out.
//
// A kernel works on a unit: up to kMostUnitRows rows of one K/V head, a row being one query head at one position. It never
// allocates, threads, prints or keeps state. How a prepared q and the channels of a state are ordered is the kernel's own business;
// the sizes are common.
#pragma once

#include <cstdint>

#include "kernels/dispatch/kernel.h"
#include "omni/attention.h"

namespace okl {

inline constexpr int64_t kBlockKeys = OMNI_KV_BLOCK;
inline constexpr int64_t kSegmentKeys = 1024;
inline constexpr int64_t kSegmentBlocks = kSegmentKeys / kBlockKeys;
inline constexpr int32_t kMostUnitRows = 96;
inline constexpr int32_t kMostHeadDim = OMNI_ATTENTION_MOST_HEAD_DIM;

// Rows are numbered through a run: row r stands at position + r / group and is query head r % group of its K/V head.
struct AttentionUnit {
  int64_t first_row;  // number of the unit's row 0
  int64_t position;   // of row 0 of the run
  int64_t window;     // keys that a row sees, or 0: all
  int32_t rows;       // 1..kMostUnitRows
  int32_t group;      // query heads of a K/V head
  int32_t head_dim;
  float scale;

  // Visible keys [first_key, last_key] of row `row` of the unit; both rise with the row.
  [[gnu::always_inline]] int64_t last_key(int32_t row) const { return position + (first_row + row) / group; }
  [[gnu::always_inline]] int64_t first_key(int32_t row) const {
    const int64_t last = last_key(row);
    return window == 0 || window > last ? 0 : last - window + 1;
  }
  // Where row `row` is in q or out, given the leading dimension in bytes and the bytes of a head.
  [[gnu::always_inline]] int64_t row_offset(int32_t row, int64_t ld, int64_t head_bytes) const {
    return (first_row + row) / group * ld + (first_row + row) % group * head_bytes;
  }
};

// Bytes of an element of the cache, and of one (block, head) record: K, V and the scales of s8. Kernels read values in runs of up
// to 64 channels, past the end of the last row where head_dim is no multiple of that: into the scales, or into padding.
[[gnu::always_inline]] constexpr int64_t cache_element_bytes(uint16_t type) {
  return type == OMNI_DTYPE_F32 ? 4 : type == OMNI_DTYPE_BF16 ? 2 : 1;
}
[[gnu::always_inline]] constexpr int64_t record_bytes(uint16_t type, int64_t head_dim) {
  const int64_t behind = type == OMNI_DTYPE_S8 ? 2 * kBlockKeys * 4 : head_dim % 64 != 0 ? 256 : 0;
  return 2 * kBlockKeys * head_dim * cache_element_bytes(type) + behind;
}

// Floats of the state of `rows` rows, 64-byte aligned: m, l and the channels of a, each with padding. m and l stand in the order of
// the rows; the order of a is the kernel's.
[[gnu::always_inline]] constexpr int64_t state_rows(int64_t rows) { return (rows + 15) / 16 * 16; }
[[gnu::always_inline]] constexpr int64_t state_dim(int64_t head_dim) { return (head_dim + 63) / 64 * 64; }
[[gnu::always_inline]] constexpr int64_t state_floats(int64_t rows, int64_t head_dim) {
  return 2 * state_rows(rows) + rows * state_dim(head_dim);
}
[[gnu::always_inline]] constexpr int64_t q_floats(int64_t rows, int64_t head_dim) { return (rows * head_dim + 15) / 16 * 16; }

// Rounds and scrubs the unit's rows of q.
struct AttentionLoad {
  AttentionUnit unit;
  const void* q;  // row 0 of the run, first head of the K/V head
  int64_t ldq;    // bytes
  uint16_t q_type;
  float* out;  // q_floats
};

// Blocks [first_block, last_block) of one segment, absolute; `state` is written, whatever it held. A row that sees no key of them
// is left with m = -Inf, and so is one whose visible scores are all -Inf.
struct AttentionSegment {
  AttentionUnit unit;
  const float* q;
  const uint8_t* records;  // of the K/V head, block 0 of the ring
  int64_t block_stride;    // bytes from a block's record to the next block's
  int64_t ring_blocks;
  int64_t first_block, last_block;
  float* state;  // state_floats
};

// total <- total merged with the segment right of it; a total or a part with m = -Inf counts as empty.
struct AttentionMerge {
  int32_t rows, head_dim;
  float* total;
  const float* part;
};

// out = a * (1 / l).
struct AttentionStore {
  AttentionUnit unit;
  const float* total;
  void* out;  // as AttentionLoad::q
  int64_t ld_out;
  uint16_t out_type;
};

// Rows of keys and values into consecutive slots of one record.
struct AttentionAppend {
  const void* k;
  const void* v;
  int64_t ldk, ldv;  // bytes
  uint8_t* record;
  int32_t head_dim;
  int32_t first_slot, rows;  // first_slot + rows <= 64
  uint16_t kv_type;
};

struct AttentionKernel {
  void (*load)(const AttentionLoad*);
  void (*segment)(const AttentionSegment*);
  void (*merge)(const AttentionMerge*);
  void (*store)(const AttentionStore*);
  void (*append)(const AttentionAppend*);
};

}  // namespace okl
