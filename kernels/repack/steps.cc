// SPDX-License-Identifier: Apache-2.0
#include "kernels/repack/steps.h"

#include <algorithm>
#include <cstring>

#include "kernels/format/blocks64.h"
#include "kernels/format/vllm_w4a8.h"

namespace okl {
namespace {

constexpr uint32_t kLowNibbles = 0x0F0F0F0F;

uint32_t load_word(const uint8_t* from) {
  uint32_t word;
  std::memcpy(&word, from, sizeof word);
  return word;
}
void store_word(uint8_t* to, uint32_t word) { std::memcpy(to, &word, sizeof word); }

// Channels of a tile that share one run of steps: 32 (w4s, vLLM), or a whole block of w8s.
struct Unit {
  int64_t first;           // channel in the tile
  int64_t words;           // of a step
  int64_t base, stride;    // bytes: of step 0, and from step to step
  int64_t steps, gap;      // vLLM: a gap of so many bytes follows so many steps
  bool nibbles, adjacent;  // two channels a byte; eight channels further on (vLLM), else 16

  int64_t offset(int64_t step) const { return base + step * stride + (gap == 0 ? 0 : step / steps * gap); }
  int64_t low(int64_t word) const { return first + (adjacent ? word + word / 8 * 8 : word); }
  int64_t high(int64_t word) const { return low(word) + (adjacent ? 8 : 16); }
};

// The units of the tile that begins at `channel`, a multiple of 64; returns how many.
int units_of(omni_format format, const CodeView& view, const StepFacts& facts, int64_t channel, Unit* units) {
  const int64_t block = channel / Blocks64::kBlock;
  if (format == OMNI_FORMAT_W8S) {
    const int64_t width = kW8s.block_width(view.n, block);
    units[0] = {0, width, kW8s.block_offset(view.n, view.k, block), width * 4, 0, 0, false, false};
    return 1;
  }
  int count = 0;
  if (format == OMNI_FORMAT_W4S) {
    const int64_t width = kW4s.block_width(view.n, block), base = kW4s.block_offset(view.n, view.k, block);
    for (int64_t first = 0; first < width; first += 32) {
      units[count++] = {first, 16, base + first * 2, width * 2, 0, 0, true, false};
    }
    return count;
  }
  const int64_t inputs = vllm::block_inputs(facts.group), unit_bytes = view.k / inputs * vllm::block_bytes(inputs);
  for (int64_t first = 0; first < std::min(Blocks64::kBlock, view.n - channel); first += vllm::kBlockChannels) {
    units[count++] = {first, 16,  (channel + first) / vllm::kBlockChannels * unit_bytes, 64, inputs / 4, vllm::kSumBytes,
                      true,  true};
  }
  return count;
}

void read_unit(const Unit& unit, const uint8_t* source, InputRange inputs, CodeTile* tile, int64_t column) {
  int64_t i = 0;
  if (inputs.permutation == nullptr && inputs.first % 4 == 0) {
    for (; i + 4 <= inputs.count; i += 4) {
      const uint8_t* step = source + unit.offset((inputs.first + i) / 4);
      for (int64_t j = 0; j < unit.words; ++j) {
        const uint32_t word = load_word(step + 4 * j);
        if (unit.nibbles) {
          store_word(tile->row(unit.low(j)) + column + i, word & kLowNibbles);
          store_word(tile->row(unit.high(j)) + column + i, word >> 4 & kLowNibbles);
        } else {
          store_word(tile->row(unit.first + j) + column + i, word);
        }
      }
    }
  }
  for (; i < inputs.count; ++i) {
    const int64_t input = inputs.source(i);
    const uint8_t* step = source + unit.offset(input / 4) + input % 4;
    for (int64_t j = 0; j < unit.words; ++j) {
      if (unit.nibbles) {
        tile->row(unit.low(j))[column + i] = step[4 * j] & 15;
        tile->row(unit.high(j))[column + i] = step[4 * j] >> 4;
      } else {
        tile->row(unit.first + j)[column + i] = step[4 * j];
      }
    }
  }
}

void write_unit(const Unit& unit, uint8_t* destination, int64_t first, int64_t count, const CodeTile& tile) {
  for (int64_t i = 0; i < count; i += 4) {
    uint8_t* step = destination + unit.offset((first + i) / 4);
    for (int64_t j = 0; j < unit.words; ++j) {
      uint32_t word = load_word(tile.row(unit.nibbles ? unit.low(j) : unit.first + j) + i);
      if (unit.nibbles) word |= load_word(tile.row(unit.high(j)) + i) << 4;
      store_word(step + 4 * j, word);
    }
  }
}

// Behind the codes of a vLLM block: sum of (code - zero) of each channel over the block's inputs.
void write_sums(const CodeView& view, const StepFacts& facts, const Unit& unit, uint8_t* destination, int64_t channel,
                int64_t first, int64_t count, const CodeTile& tile) {
  const int64_t inputs = vllm::block_inputs(facts.group);
  for (int64_t i = 0; i < count; i += inputs) {
    const int64_t group = (first + i) / facts.group;
    int32_t sums[vllm::kBlockChannels];
    for (int64_t c = 0; c < vllm::kBlockChannels; ++c) {
      const int64_t row = unit.first + c;
      int32_t sum = 0;
      for (int64_t k = 0; k < inputs; ++k) sum += tile.row(row)[i + k];
      const int32_t zero = facts.zeros == nullptr ? 8 : facts.zeros[group * view.n + channel + row];
      sums[c] = sum - zero * static_cast<int32_t>(inputs);
    }
    std::memcpy(destination + unit.offset((first + i) / 4) + inputs / 4 * unit.stride, sums, sizeof sums);
  }
}

}  // namespace

void read_steps(omni_format format, const CodeView& view, const StepFacts& facts, const uint8_t* source, int64_t channel,
                int64_t channels, InputRange inputs, CodeTile* tile, int64_t column) {
  Unit units[2];
  const int count = units_of(format, view, facts, channel, units);
  for (int i = 0; i < count; ++i) {
    if (units[i].first < channels) read_unit(units[i], source, inputs, tile, column);
  }
}

void write_steps(omni_format format, const CodeView& view, const StepFacts& facts, uint8_t* destination, int64_t channel,
                 int64_t first, int64_t count, const CodeTile& tile) {
  Unit units[2];
  const int number = units_of(format, view, facts, channel, units);
  for (int i = 0; i < number; ++i) {
    write_unit(units[i], destination, first, count, tile);
    if (format == OMNI_FORMAT_VLLM_W4A8) write_sums(view, facts, units[i], destination, channel, first, count, tile);
  }
}

}  // namespace okl
