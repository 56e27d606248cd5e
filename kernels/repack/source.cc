// SPDX-License-Identifier: Apache-2.0
#include "kernels/repack/source.h"

#include <algorithm>
#include <cstring>

#include "kernels/format/checked.h"
#include "kernels/repack/blocks.h"
#include "kernels/repack/byte_transpose.inl"

namespace okl {
namespace {

// Nibble i of `word` in byte i of the result.
uint64_t spread_nibbles(uint32_t word) {
  uint64_t x = word;
  x = (x | x << 16) & 0x0000FFFF0000FFFF;
  x = (x | x << 8) & 0x00FF00FF00FF00FF;
  return (x | x << 4) & 0x0F0F0F0F0F0F0F0F;
}

uint32_t read_u8(const uint8_t* row, InputRange inputs, uint8_t* out) {
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

uint32_t read_i32(const uint8_t* row, InputRange inputs, uint8_t* out) {
  const auto* words = reinterpret_cast<const uint32_t*>(row);
  uint32_t seen = 0;
  const auto take = [&](int64_t i, uint32_t code) {
    seen |= code;
    out[i] = static_cast<uint8_t>(code);
  };
  if (inputs.permutation != nullptr) {
    for (int64_t i = 0; i < inputs.count; ++i) take(i, words[inputs.source(i)]);
  } else {
    for (int64_t i = 0; i < inputs.count; ++i) take(i, words[inputs.first + i]);
  }
  return seen;
}

void read_pairs(const uint8_t* row, InputRange inputs, uint8_t* out) {
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

void read_halves(const uint8_t* row, int64_t half, InputRange inputs, uint8_t* out) {
  int64_t i = 0;
  if (inputs.permutation == nullptr) {
    const int64_t low = std::clamp<int64_t>(half - inputs.first, 0, inputs.count);
    for (; i < low; ++i) out[i] = row[inputs.first + i] & 15;
    for (; i < inputs.count; ++i) out[i] = row[inputs.first + i - half] >> 4;
    return;
  }
  for (; i < inputs.count; ++i) {
    const int64_t input = inputs.source(i);
    out[i] = input < half ? row[input] & 15 : row[input - half] >> 4;
  }
}

// int32 [ceil(K/8)][N]: a word holds 8 inputs of one channel.
void read_gptq(const CodeView& view, const uint8_t* source, int64_t channel, int64_t channels, InputRange inputs, CodeTile* tile,
               int64_t column) {
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

// Input-major sources: byte j of an input holds channels low(j) and high(j). `row(i)` is where input i begins. 16 inputs by 16
// bytes are transposed in registers; what is left over goes byte by byte.
template <typename Row, typename Channels>
void read_input_major(const Row& row, int64_t bytes, const Channels& channels, int64_t inputs, uint8_t* tile) {
  int64_t j = 0;
  for (; j + 16 <= bytes; j += 16) {
    int64_t i = 0;
    for (; i + 16 <= inputs; i += 16) {
      Bytes16 block[16];
      for (int r = 0; r < 16; ++r) block[r] = load16(row(i + r) + j);
      transpose_16x16(block);
      for (int b = 0; b < 16; ++b) {
        store16(tile + channels.low(j + b) * CodeTile::kPitch + i, block[b] & 15);
        store16(tile + channels.high(j + b) * CodeTile::kPitch + i, block[b] >> 4);
      }
    }
    for (; i < inputs; ++i) {
      for (int64_t b = j; b < j + 16; ++b) {
        tile[channels.low(b) * CodeTile::kPitch + i] = row(i)[b] & 15;
        tile[channels.high(b) * CodeTile::kPitch + i] = row(i)[b] >> 4;
      }
    }
  }
  for (; j < bytes; ++j) {
    uint8_t *low = tile + channels.low(j) * CodeTile::kPitch, *high = tile + channels.high(j) * CodeTile::kPitch;
    for (int64_t i = 0; i < inputs; ++i) {
      low[i] = row(i)[j] & 15;
      high[i] = row(i)[j] >> 4;
    }
  }
}

// int32 [K][ceil(N/8)]: nibble i of a word is channel {0, 2, 4, 6, 1, 3, 5, 7}[i], so byte b is a channel and the one two further
// on.
struct AwqChannels {
  int64_t low(int64_t j) const {
    constexpr int kFirst[4] = {0, 4, 1, 5};
    return j / 4 * 8 + kFirst[j % 4];
  }
  int64_t high(int64_t j) const { return low(j) + 2; }
};

// Channels beyond N land in rows of the tile that are filled with padding afterwards, or not written at all.
void read_awq(const CodeView& view, const uint8_t* source, int64_t channel, int64_t channels, InputRange inputs, CodeTile* tile,
              int64_t column) {
  const uint8_t* first = source + channel / 8 * 4;
  const int64_t ld = view.ld;
  read_input_major([=](int64_t i) { return first + inputs.source(i) * ld; }, ceil_div(channels, 8) * 4, AwqChannels(), inputs.count,
                   tile->codes + column);
}

void read_blocks(omni_format format, const CodeView& view, const uint8_t* source, int64_t channel, int64_t channels,
                 InputRange inputs, CodeTile* tile, int64_t column) {
  const BlockFormat blocks = BlockFormat::of(format);
  for (int64_t start = 0; start < channels; start += blocks.width) {
    const Block block(blocks, view.n, view.k, channel + start);
    const uint8_t* first = source + block.offset;
    const int64_t bytes = block.bytes_per_input();
    read_input_major([=](int64_t i) { return first + inputs.source(i) * bytes; }, bytes, block, inputs.count,
                     tile->row(start) + column);
  }
}

}  // namespace

uint32_t read_codes(omni_format format, const CodeView& view, const void* source, int64_t channel, int64_t channels,
                    InputRange inputs, CodeTile* tile, int64_t column) {
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
      case OMNI_FORMAT_CODES_S8:
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
