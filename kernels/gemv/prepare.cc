// SPDX-License-Identifier: Apache-2.0
#include "kernels/gemv/prepare.h"

#include <algorithm>
#include <bit>

#include "kernels/format/bf16.h"

namespace okl {
namespace {

// bf16 below 2^-119 in magnitude: exponent field under 8. Then every d and X is a multiple of 2^-126 (docs/numerics.md).
constexpr uint16_t kScrubBelow = 8 << 7;

constexpr uint16_t scrub(uint16_t x) { return (x & 0x7FFF) < kScrubBelow ? 0 : x; }

// Reads input k of one row as the kernel's element.
template <typename Source, bool scrubbed>
struct RowReader {
  const Source* row;
  const int32_t* permutation;
  Source operator()(int64_t k) const {
    const Source value = row[permutation != nullptr ? permutation[k] : k];
    if constexpr (scrubbed) return scrub(value);
    return value;
  }
};

float widen(uint16_t bits) { return bf16_to_float(bits); }
float widen(float value) { return value; }

// One row into column `row` of a tile of `rows`.
template <typename Reader>
void write_pairs(const Reader& x, int64_t k, int64_t padded_k, int rows, uint32_t* panel) {
  const int64_t whole = k / 2;
  for (int64_t j = 0; j < whole; ++j) {
    panel[j * rows] = static_cast<uint32_t>(x(2 * j)) | static_cast<uint32_t>(x(2 * j + 1)) << 16;
  }
  for (int64_t j = whole; j < padded_k / 2; ++j) panel[j * rows] = 2 * j < k ? x(2 * j) : 0;
}

template <typename Reader>
void write_floats(const Reader& x, int64_t k, int64_t padded_k, int rows, float* panel) {
  for (int64_t i = 0; i < k; ++i) panel[i * rows] = widen(x(i));
  for (int64_t i = k; i < padded_k; ++i) panel[i * rows] = 0.0F;
}

// X of each group: X = fma(x, 1, X) is one rounded addition, the odd element of a pair first. Groups are independent chains; eight
// at a time hide the latency of the additions.
constexpr int kChains = 8;

template <typename Element>
void write_sums(const LinearConfig& config, const Element& element, int rows, float* sums) {
  const int64_t groups = config.groups();
  for (int64_t g0 = 0; g0 < groups; g0 += kChains) {
    const int chains = static_cast<int>(std::min<int64_t>(kChains, groups - g0));
    float sum[kChains] = {};
    const int64_t shared = config.padded_inputs_in_group(g0 + chains - 1) / 2;  // the last group of the batch is the shortest
    if (chains == kChains) {
      for (int64_t j = 0; j < shared; ++j) {
        for (int c = 0; c < kChains; ++c) {
          const int64_t first = (g0 + c) * config.group + 2 * j;
          sum[c] = sum[c] + element(first + 1);
          sum[c] = sum[c] + element(first);
        }
      }
    }
    for (int c = 0; c < chains; ++c) {
      for (int64_t j = chains == kChains ? shared : 0; j < config.padded_inputs_in_group(g0 + c) / 2; ++j) {
        const int64_t first = (g0 + c) * config.group + 2 * j;
        sum[c] = sum[c] + element(first + 1);
        sum[c] = sum[c] + element(first);
      }
      sums[(g0 + c) * rows] = sum[c];
    }
  }
}

template <typename Reader>
void prepare_row(const PrepareArgs& args, const Reader& x, int rows, uint8_t* panel, float* sums) {
  const LinearConfig& config = *args.config;
  if constexpr (sizeof(x(0)) == 2) {
    if (args.form == XForm::kPairs) {
      auto* pairs = reinterpret_cast<uint32_t*>(panel);
      write_pairs(x, config.k, config.padded_k(), rows, pairs);
      if (config.numerics == Numerics::kGroup) {
        const auto element = [&](int64_t k) {
          const uint32_t pair = pairs[k / 2 * rows];
          return std::bit_cast<float>(k % 2 == 0 ? pair << 16 : pair & 0xFFFF0000);
        };
        write_sums(config, element, rows, sums);
      }
      return;
    }
  }
  auto* floats = reinterpret_cast<float*>(panel);
  write_floats(x, config.k, config.padded_k(), rows, floats);
  if (config.numerics == Numerics::kGroup) {
    write_sums(
        config, [&](int64_t k) { return floats[k * rows]; }, rows, sums);
  }
}

}  // namespace

void prepare_rows(const PrepareArgs& args, uint32_t first_tile, uint32_t last_tile) {
  const LinearConfig& config = *args.config;
  const WorkspaceLayout layout(config, args.form);
  const RowTiles tiles(args.m, args.max_rows);
  constexpr size_t kEntryBytes = 4;  // of one row in a panel: a bf16 pair or a float
  for (uint32_t tile = first_tile; tile < last_tile; ++tile) {
    const uint32_t first = tiles.first(tile);
    const int rows = static_cast<int>(tiles.rows(tile));
    for (int row = 0; row < rows; ++row) {
      uint8_t* panel = args.workspace + layout.panel(first) + static_cast<size_t>(row) * kEntryBytes;
      auto* sums = reinterpret_cast<float*>(args.workspace + layout.sums(args.m, first)) + row;
      const int64_t offset = static_cast<int64_t>(first + row) * args.ldx;
      if (args.x_type == OMNI_DTYPE_F32) {
        prepare_row(args, RowReader<float, false>{static_cast<const float*>(args.x) + offset, args.permutation}, rows, panel, sums);
      } else if (config.numerics == Numerics::kGroup) {
        prepare_row(args, RowReader<uint16_t, true>{static_cast<const uint16_t*>(args.x) + offset, args.permutation}, rows, panel,
                    sums);
      } else {
        prepare_row(args, RowReader<uint16_t, false>{static_cast<const uint16_t*>(args.x) + offset, args.permutation}, rows, panel,
                    sums);
      }
    }
  }
}

}  // namespace okl
