// SPDX-License-Identifier: Apache-2.0
// The contract between the head gate's driver and its kernels: one row of x, every head; and the form of packed weights.
//
//   pairs (bf16 x, bf16 weights): heads in blocks of eight, the last one as many as are left; of a block
//       [ceil(K/32)][heads of the block][32], scrubbed, zeros beyond K: 16 pairs of a head are a register, a block is one stream
//   chain (any other types): [ceil(heads/16)][K][16], zeros beyond the heads: sixteen heads are a register
#pragma once

#include <cstdint>

#include "kernels/dispatch/kernel.h"
#include "omni/headgate.h"

namespace okl {

inline constexpr int64_t kGateBlock = 8;                 // heads of a block of pairs
inline constexpr int64_t kGateStep = 32;                 // inputs of a step of pairs
inline constexpr int64_t kGateLanes = 16;                // heads of a block of chains
inline constexpr uint16_t kGateLeast = (127 - 56) << 7;  // 2^-56: what is smaller counts as 0 in pairs

struct HeadgateConfig {
  uint16_t x_type, weight_type, value_type, activation;

  bool pairs() const { return x_type == OMNI_DTYPE_BF16 && weight_type == OMNI_DTYPE_BF16; }
};

struct HeadgateRow {
  const void* x;        // [k]
  const void* weights;  // packed
  const float* bias;    // [heads] or nullptr
  float* gates;         // [heads] out, with room for gate_room(heads), so that whole registers may be stored
  const void* values;   // [heads][head_dim]
  void* out;            // likewise
  int64_t k, heads, head_dim;
};

inline constexpr int64_t gate_room(int64_t heads) { return (heads + kGateLanes - 1) / kGateLanes * kGateLanes + kGateLanes; }

struct HeadgateSteps {
  void (*gates)(const HeadgateRow*);     // of x, activation included
  void (*multiply)(const HeadgateRow*);  // values by gates; nullptr with value_type NONE
};

struct HeadgateKernel {
  HeadgateSteps (*steps)(const HeadgateConfig&);
};

}  // namespace okl
