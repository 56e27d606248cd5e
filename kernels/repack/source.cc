// SPDX-License-Identifier: Apache-2.0
#include "kernels/repack/source.h"

#include <cstring>

#include "kernels/format/checked.h"
#include "kernels/repack/blocks.h"

namespace okl {
namespace {

// Nibble i of `word` in byte i of the result.
uint64_t spread_nibbles(uint32_t word) {
  uint64_t x = word;
  x = (x | x << 16) & 0x0000FFFF0000FFFF;
  x = (x | x << 8) & 0x00FF00FF00FF00FF;
  return (x | x << 4) & 0x0F0F0F0F0F0F0F0F;
}

uint32_t read_u8(const uint8_t* row, const InputRange& inputs, uint8_t* out) {
  uint8_t seen = 0;
  if (inputs.permutation != nullptr) {
    for (int64_t i = 0; i < inputs.count; ++i) seen |= out[i] = row[inputs.source(i)];
    return seen;
  }
  const uint8_t* from = row + inputs.first;
  for (int64_t i = 0; i < inputs.count; ++i) {
    out[i] = from[i];
    seen |= from[i];
  }
  return seen;
}

uint32_t read_i32(const uint8_t* row, const InputRange& inputs, uint8_t* out) {
  const auto* words = reinterpret_cast<const uint32_t*>(row);
  uint32_t seen = 0;
  for (int64_t i = 0; i < inputs.count; ++i) {
    const uint32_t code = words[inputs.source(i)];
    seen |= code;
    out[i] = static_cast<uint8_t>(code);
  }
  return seen;
}

void read_pairs(const uint8_t* row, const InputRange& inputs, uint8_t* out) {
  int64_t i = 0;
  if (inputs.permutation == nullptr && inputs.first % 2 == 0) {
    const uint8_t* from = row + inputs.first / 2;
    for (int64_t j = 0; j < inputs.count / 2; ++j) {
      out[2 * j] = from[j] & 15;
      out[2 * j + 1] = from[j] >> 4;
    }
    i = inputs.count / 2 * 2;
  }
  for (; i < inputs.count; ++i) {
    const int64_t input = inputs.source(i);
    out[i] = row[input / 2] >> (input % 2 * 4) & 15;
  }
}

void read_halves(const uint8_t* row, int64_t half, const InputRange& inputs, uint8_t* out) {
  int64_t i = 0;
  if (inputs.permutation == nullptr) {
    for (; i < inputs.count && inputs.first + i < half; ++i) out[i] = row[inputs.first + i] & 15;
    for (; i < inputs.count; ++i) out[i] = row[inputs.first + i - half] >> 4;
    return;
  }
  for (; i < inputs.count; ++i) {
    const int64_t input = inputs.source(i);
    out[i] = input < half ? row[input] & 15 : row[input - half] >> 4;
  }
}

// int32 [ceil(K/8)][N]: a word holds 8 inputs of one channel.
void read_gptq(const CodeView& view, const uint8_t* source, int64_t channel, int64_t channels, const InputRange& inputs,
               CodeTile* tile, int64_t column) {
  const auto word_row = [&](int64_t input) { return reinterpret_cast<const uint32_t*>(source + input / 8 * view.ld) + channel; };
  int64_t i = 0;
  if (inputs.permutation == nullptr && inputs.first % 8 == 0) {
    for (; i + 8 <= inputs.count; i += 8) {
      const uint32_t* words = word_row(inputs.first + i);
      for (int64_t c = 0; c < channels; ++c) {
        const uint64_t codes = spread_nibbles(words[c]);
        std::memcpy(tile->row(c) + column + i, &codes, sizeof codes);
      }
    }
  }
  for (; i < inputs.count; ++i) {
    const int64_t input = inputs.source(i);
    const uint32_t* words = word_row(input);
    for (int64_t c = 0; c < channels; ++c) tile->row(c)[column + i] = words[c] >> (input % 8 * 4) & 15;
  }
}

// int32 [K][ceil(N/8)]: a word holds 8 channels of one input, even ones first.
void read_awq(const CodeView& view, const uint8_t* source, int64_t channel, int64_t channels, const InputRange& inputs,
              CodeTile* tile, int64_t column) {
  constexpr int kShift[8] = {0, 16, 4, 20, 8, 24, 12, 28};  // of channel 8c + i
  for (int64_t i = 0; i < inputs.count; ++i) {
    const auto* words = reinterpret_cast<const uint32_t*>(source + inputs.source(i) * view.ld) + channel / 8;
    for (int64_t c = 0; c < channels; ++c) tile->row(c)[column + i] = words[c / 8] >> kShift[c % 8] & 15;
  }
}

void read_blocks(omni_format format, const CodeView& view, const uint8_t* source, int64_t channel, int64_t channels,
                 const InputRange& inputs, CodeTile* tile, int64_t column) {
  const BlockFormat blocks = BlockFormat::of(format);
  for (int64_t first = 0; first < channels; first += blocks.width) {
    const Block block(blocks, view.n, view.k, channel + first);
    for (int64_t i = 0; i < inputs.count; ++i) {
      const uint8_t* bytes = source + block.offset + inputs.source(i) * block.bytes_per_input();
      for (int64_t j = 0; j < block.bytes_per_input(); ++j) {
        // Padding channels land in rows of the tile that nobody reads before they are overwritten.
        tile->row(first + block.low(j))[column + i] = bytes[j] & 15;
        tile->row(first + block.high(j))[column + i] = bytes[j] >> 4;
      }
    }
  }
}

}  // namespace

uint32_t read_codes(omni_format format, const CodeView& view, const void* source, int64_t channel, int64_t channels,
                    const InputRange& inputs, CodeTile* tile, int64_t column) {
  const auto* bytes = static_cast<const uint8_t*>(source);
  switch (format) {
    case OMNI_FORMAT_GPTQ:
      read_gptq(view, bytes, channel, channels, inputs, tile, column);
      return 0;
    case OMNI_FORMAT_AWQ:
      read_awq(view, bytes, channel, channels, inputs, tile, column);
      return 0;
    case OMNI_FORMAT_TG4:
    case OMNI_FORMAT_TORCH_AVX2:
    case OMNI_FORMAT_TORCH_DEFAULT:
      read_blocks(format, view, bytes, channel, channels, inputs, tile, column);
      return 0;
    default:
      break;
  }
  uint32_t seen = 0;
  for (int64_t c = 0; c < channels; ++c) {
    const uint8_t* row = bytes + dense_offset(channel + c, view.ld, 0);
    uint8_t* out = tile->row(c) + column;
    switch (format) {
      case OMNI_FORMAT_CODES_U8:
        seen |= read_u8(row, inputs, out);
        break;
      case OMNI_FORMAT_CODES_I32:
        seen |= read_i32(row, inputs, out);
        break;
      case OMNI_FORMAT_ROW_HALVES:
        read_halves(row, ceil_div(view.k, 2), inputs, out);
        break;
      default:  // ROW_PAIRS, and CT_PACKED: the bytes of its little-endian words are the same pairs
        read_pairs(row, inputs, out);
        break;
    }
  }
  return seen;
}

uint32_t read_wide_code(omni_format format, const CodeView& view, const void* source, int64_t channel, int64_t input) {
  const uint8_t* row = static_cast<const uint8_t*>(source) + dense_offset(channel, view.ld, 0);
  return format == OMNI_FORMAT_CODES_U8 ? row[input] : reinterpret_cast<const uint32_t*>(row)[input];
}

}  // namespace okl
