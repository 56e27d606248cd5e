// SPDX-License-Identifier: Apache-2.0
// Test support: the 64 bytes that LDTILECFG reads.
#pragma once

#include <cstdint>

namespace okl::test {

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[8] = {}, more_row_bytes[8] = {};
  uint8_t rows[8] = {}, more_rows[8] = {};

  TileConfig& tile(int index, int row_count, int bytes) {
    rows[index] = static_cast<uint8_t>(row_count);
    row_bytes[index] = static_cast<uint16_t>(bytes);
    return *this;
  }
  // dst 0 = [m][n] of 4-byte sums, A 1 = [m][k4] and B 2 = [k4][n] of 4-byte groups.
  static TileConfig product(int m, int n, int k4) { return TileConfig().tile(0, m, 4 * n).tile(1, m, 4 * k4).tile(2, k4, 4 * n); }
  const uint8_t* bytes() const { return &palette; }
};
static_assert(sizeof(TileConfig) == 64);

}  // namespace okl::test
