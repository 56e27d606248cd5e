// SPDX-License-Identifier: Apache-2.0
#include "kernels/repack/destination.h"

#include <algorithm>
#include <cstring>

#include "kernels/format/checked.h"
#include "kernels/repack/blocks.h"
#include "kernels/repack/byte_transpose.inl"

namespace okl {
namespace {

// 16 inputs by 16 bytes are transposed in registers; what is left over goes byte by byte.
void write_block(const Block& block, const uint8_t* rows, int64_t inputs, uint8_t* out) {
  const int64_t bytes = block.bytes_per_input();
  for (int64_t j = 0; j < bytes; j += 16) {
    const bool whole = j + 16 <= bytes;
    int64_t i = 0;
    for (; whole && i + 16 <= inputs; i += 16) {
      Bytes16 columns[16];
      for (int b = 0; b < 16; ++b) {
        columns[b] =
            load16(rows + block.low(j + b) * CodeTile::kPitch + i) | load16(rows + block.high(j + b) * CodeTile::kPitch + i) << 4;
      }
      transpose_16x16(columns);
      for (int r = 0; r < 16; ++r) store16(out + (i + r) * bytes + j, columns[r]);
    }
    for (; i < inputs; ++i) {
      for (int64_t b = j; b < std::min(j + 16, bytes); ++b) {
        out[i * bytes + b] =
            static_cast<uint8_t>(rows[block.low(b) * CodeTile::kPitch + i] | rows[block.high(b) * CodeTile::kPitch + i] << 4);
      }
    }
  }
}

void write_blocks(omni_format format, const CodeView& view, uint8_t* destination, int64_t channel, int64_t channels, int64_t first,
                  int64_t count, const CodeTile& tile, const Packer& packer) {
  const BlockFormat blocks = BlockFormat::of(format);
  for (int64_t start = 0; start < channels; start += blocks.width) {
    const Block block(blocks, view.n, view.k, channel + start);
    uint8_t* out = destination + block.offset + first * block.bytes_per_input();
    if (block.split && block.channels == tg4::kBlock) {
      packer({tile.row(start), CodeTile::kPitch, out, count});
      continue;
    }
    write_block(block, tile.row(start), count, out);
  }
}

void write_row(omni_format format, uint8_t* row, int64_t k, int64_t first, int64_t count, const uint8_t* codes) {
  switch (format) {
    case OMNI_FORMAT_CODES_U8:
    case OMNI_FORMAT_CODES_S8:
      std::memcpy(row + first, codes, static_cast<size_t>(count));
      break;
    case OMNI_FORMAT_CODES_I32: {
      auto* words = reinterpret_cast<int32_t*>(row) + first;
      for (int64_t i = 0; i < count; ++i) words[i] = codes[i];
      break;
    }
    case OMNI_FORMAT_ROW_HALVES: {
      const uint8_t* high = codes + kTileInputs / 2;
      const int64_t known = std::min(count, k - ceil_div(k, 2) - first);  // of the high codes
      for (int64_t i = 0; i < known; ++i) row[first + i] = static_cast<uint8_t>(codes[i] | high[i] << 4);
      for (int64_t i = std::max<int64_t>(known, 0); i < count; ++i)
        row[first + i] = static_cast<uint8_t>(codes[i] | tg4::kPadCode << 4);
      break;
    }
    default: {  // ROW_PAIRS: tiles start at even inputs
      uint8_t* out = row + first / 2;
      for (int64_t j = 0; j < count / 2; ++j) out[j] = static_cast<uint8_t>(codes[2 * j] | codes[2 * j + 1] << 4);
      if (count % 2 != 0) out[count / 2] = static_cast<uint8_t>(codes[count - 1] | tg4::kPadCode << 4);
      break;
    }
  }
}

}  // namespace

uint32_t Packer::operator()(const PackTile& tile) const {
  PackTile whole = tile, rest = tile;
  whole.inputs = tile.inputs / step * step;
  rest.inputs = tile.inputs - whole.inputs;
  rest.codes += whole.inputs;
  rest.out += whole.inputs * tg4::kBlockBytes;
  const uint32_t seen = whole.inputs == 0 ? 0 : run(&whole);
  return seen | pack_edge(rest);
}

void write_codes(omni_format format, const CodeView& view, void* destination, int64_t channel, int64_t channels, int64_t first,
                 int64_t count, const CodeTile& tile, const Packer& packer) {
  auto* bytes = static_cast<uint8_t*>(destination);
  if (format == OMNI_FORMAT_TG4 || format == OMNI_FORMAT_TORCH_AVX2 || format == OMNI_FORMAT_TORCH_DEFAULT) {
    write_blocks(format, view, bytes, channel, channels, first, count, tile, packer);
    return;
  }
  for (int64_t c = 0; c < channels; ++c) {
    write_row(format, bytes + dense_offset(channel + c, view.ld, 0), view.k, first, count, tile.row(c));
  }
}

}  // namespace okl
