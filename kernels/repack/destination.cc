// SPDX-License-Identifier: Apache-2.0
#include "kernels/repack/destination.h"

#include <cstring>

#include "kernels/format/checked.h"
#include "kernels/repack/blocks.h"

namespace okl {
namespace {

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
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < block.bytes_per_input(); ++j) {
        *out++ = static_cast<uint8_t>(tile.row(start + block.low(j))[i] | tile.row(start + block.high(j))[i] << 4);
      }
    }
  }
}

void write_row(omni_format format, uint8_t* row, int64_t k, int64_t first, int64_t count, const uint8_t* codes) {
  switch (format) {
    case OMNI_FORMAT_CODES_U8:
      std::memcpy(row + first, codes, static_cast<size_t>(count));
      break;
    case OMNI_FORMAT_CODES_I32: {
      auto* words = reinterpret_cast<int32_t*>(row) + first;
      for (int64_t i = 0; i < count; ++i) words[i] = codes[i];
      break;
    }
    case OMNI_FORMAT_ROW_HALVES: {
      const int64_t half = ceil_div(k, 2);
      const uint8_t* high = codes + kTileInputs / 2;
      for (int64_t i = 0; i < count; ++i) {
        const uint8_t top = first + i + half < k ? high[i] : tg4::kPadCode;
        row[first + i] = static_cast<uint8_t>(codes[i] | top << 4);
      }
      break;
    }
    default:  // ROW_PAIRS: tiles start at even inputs
      for (int64_t i = 0; i < count; i += 2) {
        const uint8_t top = i + 1 < count ? codes[i + 1] : tg4::kPadCode;
        row[(first + i) / 2] = static_cast<uint8_t>(codes[i] | top << 4);
      }
      break;
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
