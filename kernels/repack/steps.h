// SPDX-License-Identifier: Apache-2.0
// The formats that keep four inputs of a channel side by side, as integer dot products read them: w4s, w8s and vLLM's W4A8 blocks.
// A step is four inputs of up to 32 (w8s: 64) channels: words of 4 bytes, each the low and the high nibble of two channels (w8s:
// one).
#pragma once

#include <cstdint>

#include "kernels/format/format.h"
#include "kernels/repack/code_tile.h"

namespace okl {

inline bool is_stepped(omni_format format) {
  return format == OMNI_FORMAT_W4S || format == OMNI_FORMAT_W8S || format == OMNI_FORMAT_VLLM_W4A8;
}

// What vLLM's blocks hold besides codes: the group decides their size, the zero points their sums.
struct StepFacts {
  int64_t group = 0;
  const uint8_t* zeros = nullptr;  // [ceil(K/group)][N]; nullptr: 8 everywhere
};

// As read_codes() and write_codes(), for these formats. first and count of write_steps() are multiples of 4 and may run into the
// padding along K; rows of padding channels hold the padding already.
void read_steps(omni_format format, const CodeView& view, const StepFacts& facts, const uint8_t* source, int64_t channel,
                int64_t channels, InputRange inputs, CodeTile* tile, int64_t column);
void write_steps(omni_format format, const CodeView& view, const StepFacts& facts, uint8_t* destination, int64_t channel,
                 int64_t first, int64_t count, const CodeTile& tile);

}  // namespace okl
