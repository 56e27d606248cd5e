// SPDX-License-Identifier: Apache-2.0
#include "kernels/format/tg4.h"

#include <gtest/gtest.h>

#include <set>
#include <utility>

#include "kernels/format/checked.h"

namespace okl {
namespace {

TEST(Tg4, EveryCodeHasItsOwnNibble) {
  for (const int64_t n : {1, 15, 16, 17, 48, 49, 63, 64, 65, 80, 96, 112, 113, 128, 130, 192}) {
    for (const int64_t k : {1, 31, 32, 33}) {
      std::set<std::pair<int64_t, int>> seen;
      for (int64_t channel = 0; channel < tg4::padded_n(n); ++channel) {
        for (int64_t input = 0; input < tg4::padded_k(k); ++input) {
          const tg4::Position at = tg4::position(n, k, channel, input);
          EXPECT_GE(at.byte, 0);
          EXPECT_LT(at.byte, tg4::packed_bytes(n, k));
          EXPECT_TRUE(seen.emplace(at.byte, at.shift).second) << "n " << n << " channel " << channel << " input " << input;
        }
      }
      EXPECT_EQ(static_cast<int64_t>(seen.size()), 2 * tg4::packed_bytes(n, k));
      EXPECT_EQ(tg4::block_offset(n, k, tg4::blocks(n)), tg4::packed_bytes(n, k));
    }
  }
}

TEST(Tg4, PositionsAreTheDocumentedOnes) {
  // A block: byte d = channel d | channel d + 32.
  EXPECT_EQ(tg4::position(80, 64, 5, 3).byte, 3 * 32 + 5);
  EXPECT_EQ(tg4::position(80, 64, 5, 3).shift, 0);
  EXPECT_EQ(tg4::position(80, 64, 37, 3).byte, 3 * 32 + 5);
  EXPECT_EQ(tg4::position(80, 64, 37, 3).shift, 4);
  // The tail of 16: byte j = channel 2j | channel 2j + 1.
  EXPECT_EQ(tg4::position(80, 64, 69, 3).byte, 64 * 32 + 3 * 8 + 2);
  EXPECT_EQ(tg4::position(80, 64, 69, 3).shift, 4);
  // 49 channels are padded to 64 and are a block, not a tail.
  EXPECT_EQ(tg4::position(49, 64, 1, 0).byte, 1);
  EXPECT_EQ(tg4::position(48, 64, 1, 0).byte, 0);
}

// A 256k vocabulary by a width of 12k is 3.2e9 codes.
TEST(Tg4, OffsetsBeyond32Bits) {
  const int64_t n = 262144, k = 12288;
  EXPECT_EQ(tg4::packed_bytes(n, k), 1610612736);
  EXPECT_EQ(tg4::block_offset(n, k, 4095), 4095LL * 32 * 12288);
  EXPECT_EQ(tg4::position(n, k, n - 1, k - 1).byte, 1610612735);
  EXPECT_EQ(tg4::packed_bytes(2 * n, 4 * k), 12884901888LL);
  EXPECT_EQ(tg4::position(2 * n, 4 * k, 2 * n - 1, 4 * k - 1).byte, 12884901887LL);
  EXPECT_EQ(tg4::position(2 * n, 4 * k, 2 * n - 33, 4 * k - 1).byte, 12884901887LL);
  EXPECT_EQ(dense_offset(16383, 151936, 151935), 2489319423LL);
  EXPECT_EQ(dense_offset(262143, 12288, 12287), 3221225471LL);
}

TEST(Checked, ProductsAndQuotients) {
  int64_t out = -1;
  EXPECT_TRUE(checked_product({262144, 12288}, &out));
  EXPECT_EQ(out, 3221225472LL);
  EXPECT_TRUE(checked_product({16384, 151936}, &out));
  EXPECT_EQ(out, 2489319424LL);
  EXPECT_TRUE(checked_product({INT64_MAX, 2, 0}, &out));
  EXPECT_EQ(out, 0);
  EXPECT_FALSE(checked_product({int64_t{1} << 32, int64_t{1} << 31}, &out));
  EXPECT_TRUE(checked_product({int64_t{1} << 32, (int64_t{1} << 31) - 1}, &out));
  EXPECT_FALSE(checked_sum(INT64_MAX, 1, &out));
  EXPECT_EQ(ceil_div(INT64_MAX, 2), INT64_MAX / 2 + 1);
  EXPECT_EQ(ceil_div(0, 8), 0);
}

}  // namespace
}  // namespace okl
