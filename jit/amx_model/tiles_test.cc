// SPDX-License-Identifier: Apache-2.0
// The tile state machine: faults by the book, products against sums written the slow way.
#include "jit/amx_model/tiles.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "jit/amx_model/tile_config_for_test.h"
#include "kernels/format/bf16.h"

namespace okl::amx_model {
namespace {

using test::TileConfig;

TEST(Tiles, NothingWorksBeforeConfigure) {
  Tiles tiles;
  uint8_t memory[1024] = {};
  EXPECT_EQ(tiles.zero(0), Fault::kUndefined);
  EXPECT_EQ(tiles.load(0, memory, 64), Fault::kUndefined);
  EXPECT_EQ(tiles.store(0, memory, 64), Fault::kUndefined);
  EXPECT_EQ(tiles.dot_int8(0, 1, 2, true, true), Fault::kUndefined);
  EXPECT_EQ(tiles.dot_bf16(0, 1, 2), Fault::kUndefined);
  std::memset(memory, 0xAA, sizeof memory);
  tiles.store_configuration(memory);
  for (int i = 0; i < 64; ++i) EXPECT_EQ(memory[i], 0) << i;
  EXPECT_EQ(memory[64], 0xAA);
}

TEST(Tiles, ConfigurationReadsBackAndReleases) {
  Tiles tiles;
  const TileConfig config = TileConfig().tile(0, 16, 64).tile(5, 3, 12).tile(7, 1, 4);
  ASSERT_EQ(tiles.configure(config.bytes()), Fault::kNone);
  uint8_t out[64];
  tiles.store_configuration(out);
  EXPECT_EQ(std::memcmp(out, config.bytes(), 64), 0);
  EXPECT_EQ(tiles.zero(5), Fault::kNone);
  EXPECT_EQ(tiles.zero(6), Fault::kUndefined) << "a tile without a shape";
  tiles.release();
  EXPECT_FALSE(tiles.configured());
  EXPECT_EQ(tiles.zero(5), Fault::kUndefined);
  ASSERT_EQ(tiles.configure(config.bytes()), Fault::kNone);
  TileConfig none;
  none.palette = 0;
  none.reserved[3] = 1;  // with palette 0 nothing else is looked at
  EXPECT_EQ(tiles.configure(none.bytes()), Fault::kNone);
  EXPECT_FALSE(tiles.configured());
}

TEST(Tiles, BadConfigurationsFaultAndChangeNothing) {
  const auto refused = [](const TileConfig& config) {
    Tiles tiles;
    const TileConfig before = TileConfig().tile(2, 2, 8);
    EXPECT_EQ(tiles.configure(before.bytes()), Fault::kNone);
    const Fault fault = tiles.configure(config.bytes());
    uint8_t out[64];
    tiles.store_configuration(out);
    EXPECT_TRUE(fault == Fault::kNone || std::memcmp(out, before.bytes(), 64) == 0);
    return fault == Fault::kProtection;
  };
  const TileConfig good = TileConfig().tile(0, 16, 64);
  EXPECT_FALSE(refused(good));
  TileConfig bad = good;
  bad.palette = 2;
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad.reserved[13] = 1;
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad.more_row_bytes[0] = 4;
  EXPECT_TRUE(refused(bad));
  bad = good;
  bad.more_rows[7] = 1;
  EXPECT_TRUE(refused(bad));
  EXPECT_TRUE(refused(TileConfig(good).tile(1, 17, 64)));
  EXPECT_TRUE(refused(TileConfig(good).tile(1, 16, 65)));
  EXPECT_TRUE(refused(TileConfig(good).tile(1, 0, 64)));
  EXPECT_TRUE(refused(TileConfig(good).tile(1, 16, 0)));
}

TEST(Tiles, LoadAndStoreMoveTheShapeOnly) {
  Tiles tiles;
  ASSERT_EQ(tiles.configure(TileConfig().tile(4, 3, 10).bytes()), Fault::kNone);
  std::vector<uint8_t> in(64 * 3), out(64 * 3, 0xEE);
  for (size_t i = 0; i < in.size(); ++i) in[i] = static_cast<uint8_t>(i);
  ASSERT_EQ(tiles.load(4, in.data(), 20), Fault::kNone);
  ASSERT_EQ(tiles.store(4, out.data() + 128, -64), Fault::kNone) << "a negative stride";
  for (int row = 0; row < 3; ++row) {
    for (int i = 0; i < 64; ++i) EXPECT_EQ(out[static_cast<size_t>(128 - 64 * row + i)], i < 10 ? row * 20 + i : 0xEE);
  }
}

TEST(Tiles, AnInterruptedLoadGoesOnAtStartRow) {
  Tiles tiles;
  TileConfig config = TileConfig().tile(0, 4, 4);
  config.start_row = 2;
  ASSERT_EQ(tiles.configure(config.bytes()), Fault::kNone);
  const uint32_t in[] = {1, 2, 3, 4};
  uint32_t out[] = {9, 9, 9, 9};
  ASSERT_EQ(tiles.load(0, reinterpret_cast<const uint8_t*>(in), 4), Fault::kNone);
  ASSERT_EQ(tiles.store(0, reinterpret_cast<uint8_t*>(out), 4), Fault::kNone);
  EXPECT_EQ(out[0], 0U);
  EXPECT_EQ(out[1], 0U);
  EXPECT_EQ(out[2], 3U);
  EXPECT_EQ(out[3], 4U);
}

TEST(Tiles, WrongShapesAreUndefined) {
  const auto runs = [](const TileConfig& config, int dst = 0, int a = 1, int b = 2) {
    Tiles tiles;
    EXPECT_EQ(tiles.configure(config.bytes()), Fault::kNone);
    const bool int8_runs = tiles.dot_int8(dst, a, b, true, false) == Fault::kNone;
    EXPECT_EQ(tiles.dot_bf16(dst, a, b) == Fault::kNone, int8_runs);
    return int8_runs;
  };
  const TileConfig good = TileConfig::product(5, 7, 9);
  EXPECT_TRUE(runs(good));
  EXPECT_FALSE(runs(TileConfig(good).tile(1, 4, 36))) << "A has other rows than the sums";
  EXPECT_FALSE(runs(TileConfig(good).tile(1, 5, 32))) << "A is narrower than B is high";
  EXPECT_FALSE(runs(TileConfig(good).tile(2, 8, 28))) << "B is lower";
  EXPECT_FALSE(runs(TileConfig(good).tile(2, 9, 24))) << "B is narrower than the sums";
  EXPECT_FALSE(runs(TileConfig(good).tile(1, 5, 38))) << "not whole groups of four bytes";
  EXPECT_FALSE(runs(TileConfig(good).tile(0, 5, 26).tile(2, 9, 26))) << "not whole sums";
  const TileConfig square = TileConfig::product(4, 4, 4);
  EXPECT_FALSE(runs(square, 0, 1, 1));
  EXPECT_FALSE(runs(square, 1, 1, 2));
  EXPECT_FALSE(runs(square, 2, 1, 2));
  EXPECT_FALSE(runs(square, 0, 1, 3));
}

struct Operands {
  int m, n, k4;
  std::vector<uint8_t> a, b, sums;

  Operands(int m_, int n_, int k4_, std::mt19937& random) : m(m_), n(n_), k4(k4_) {
    const auto fill = [&random](std::vector<uint8_t>& bytes, int count) {
      for (int i = 0; i < count; ++i) bytes.push_back(static_cast<uint8_t>(random()));
    };
    fill(a, m * 4 * k4);
    fill(b, k4 * 4 * n);
    fill(sums, m * 4 * n);
  }
  void load_into(Tiles& tiles) const {
    ASSERT_EQ(tiles.configure(TileConfig::product(m, n, k4).bytes()), Fault::kNone);
    ASSERT_EQ(tiles.load(0, sums.data(), 4 * n), Fault::kNone);
    ASSERT_EQ(tiles.load(1, a.data(), 4 * k4), Fault::kNone);
    ASSERT_EQ(tiles.load(2, b.data(), 4 * n), Fault::kNone);
  }
  template <typename T>
  std::vector<T> result(Tiles& tiles) const {
    std::vector<T> out(static_cast<size_t>(m * n));
    EXPECT_EQ(tiles.store(0, reinterpret_cast<uint8_t*>(out.data()), 4 * n), Fault::kNone);
    return out;
  }
};

int64_t as_integer(uint8_t byte, bool is_signed) { return is_signed ? int64_t{static_cast<int8_t>(byte)} : int64_t{byte}; }

TEST(Tiles, IntegerProductsOfEveryShape) {
  std::mt19937 random(1);
  for (int trial = 0; trial < 400; ++trial) {
    const Operands o(1 + static_cast<int>(random() % 16), 1 + static_cast<int>(random() % 16), 1 + static_cast<int>(random() % 16),
                     random);
    for (const bool a_signed : {false, true}) {
      for (const bool b_signed : {false, true}) {
        Tiles tiles;
        o.load_into(tiles);
        ASSERT_EQ(tiles.dot_int8(0, 1, 2, a_signed, b_signed), Fault::kNone);
        const std::vector<int32_t> out = o.result<int32_t>(tiles);
        for (int m = 0; m < o.m; ++m) {
          for (int n = 0; n < o.n; ++n) {
            int32_t start = 0;
            std::memcpy(&start, &o.sums[static_cast<size_t>(4 * (m * o.n + n))], 4);
            int64_t sum = start;
            for (int k = 0; k < 4 * o.k4; ++k) {
              const uint8_t left = o.a[static_cast<size_t>(m * 4 * o.k4 + k)];
              const uint8_t right = o.b[static_cast<size_t>((k / 4) * 4 * o.n + 4 * n + k % 4)];
              sum += as_integer(left, a_signed) * as_integer(right, b_signed);
            }
            ASSERT_EQ(out[static_cast<size_t>(m * o.n + n)], static_cast<int32_t>(static_cast<uint32_t>(sum)));
          }
        }
      }
    }
  }
}

// The extreme products do not saturate anywhere below 32 bits, and 32 bits wrap.
TEST(Tiles, IntegerExtremes) {
  Tiles tiles;
  ASSERT_EQ(tiles.configure(TileConfig::product(1, 1, 1).bytes()), Fault::kNone);
  const auto unit = [&tiles](uint32_t sum, uint8_t a, uint8_t b, bool a_signed, bool b_signed) {
    const uint8_t left[] = {a, a, a, a}, right[] = {b, b, b, b};
    uint32_t out = sum;
    EXPECT_EQ(tiles.load(0, reinterpret_cast<const uint8_t*>(&out), 4), Fault::kNone);
    EXPECT_EQ(tiles.load(1, left, 4), Fault::kNone);
    EXPECT_EQ(tiles.load(2, right, 4), Fault::kNone);
    EXPECT_EQ(tiles.dot_int8(0, 1, 2, a_signed, b_signed), Fault::kNone);
    EXPECT_EQ(tiles.store(0, reinterpret_cast<uint8_t*>(&out), 4), Fault::kNone);
    return static_cast<int32_t>(out);
  };
  EXPECT_EQ(unit(0, 255, 127, false, true), 4 * 255 * 127);
  EXPECT_EQ(unit(0, 255, 255, false, false), 4 * 255 * 255);
  EXPECT_EQ(unit(0, 0x80, 0x80, true, true), 4 * 128 * 128);
  EXPECT_EQ(unit(0, 0x80, 255, true, false), -4 * 128 * 255);
  EXPECT_EQ(unit(0x7FFFFFFF, 1, 1, true, true), std::numeric_limits<int32_t>::min() + 3);
}

uint16_t random_bf16(std::mt19937& random) { return bf16_round_ieee(std::normal_distribution<float>()(random)); }

// Against double: each step may err by half an ulp of what it holds.
TEST(Tiles, Bf16ProductsAreWithinTheirRoundings) {
  std::mt19937 random(2);
  for (int trial = 0; trial < 200; ++trial) {
    Operands o(1 + static_cast<int>(random() % 16), 1 + static_cast<int>(random() % 16), 1 + static_cast<int>(random() % 16),
               random);
    for (std::vector<uint8_t>* bytes : {&o.a, &o.b}) {
      for (size_t i = 0; i < bytes->size(); i += 2) {
        const uint16_t value = random_bf16(random);
        std::memcpy(&(*bytes)[i], &value, 2);
      }
    }
    for (size_t i = 0; i < o.sums.size(); i += 4) {
      const float value = std::normal_distribution<float>()(random);
      std::memcpy(&o.sums[i], &value, 4);
    }
    Tiles tiles;
    o.load_into(tiles);
    ASSERT_EQ(tiles.dot_bf16(0, 1, 2), Fault::kNone);
    const std::vector<float> out = o.result<float>(tiles);
    const auto bf16_at = [](const std::vector<uint8_t>& bytes, int index) {
      uint16_t value = 0;
      std::memcpy(&value, &bytes[static_cast<size_t>(2 * index)], 2);
      return double{bf16_to_float(value)};
    };
    for (int m = 0; m < o.m; ++m) {
      for (int n = 0; n < o.n; ++n) {
        float start = 0;
        std::memcpy(&start, &o.sums[static_cast<size_t>(4 * (m * o.n + n))], 4);
        double sum = start, magnitude = std::fabs(start);
        for (int k = 0; k < 2 * o.k4; ++k) {
          const double product = bf16_at(o.a, m * 2 * o.k4 + k) * bf16_at(o.b, (k / 2) * 2 * o.n + 2 * n + k % 2);
          sum += product;
          magnitude += std::fabs(product);
        }
        EXPECT_NEAR(out[static_cast<size_t>(m * o.n + n)], sum, magnitude * (o.k4 + 2) * 0x1p-24);
      }
    }
  }
}

float one_bf16_product(float sum, std::array<float, 2> x, std::array<float, 2> y) {
  Tiles tiles;
  EXPECT_EQ(tiles.configure(TileConfig::product(1, 1, 1).bytes()), Fault::kNone);
  const uint16_t a[] = {bf16_round_ieee(x[0]), bf16_round_ieee(x[1])}, b[] = {bf16_round_ieee(y[0]), bf16_round_ieee(y[1])};
  EXPECT_EQ(tiles.load(0, reinterpret_cast<const uint8_t*>(&sum), 4), Fault::kNone);
  EXPECT_EQ(tiles.load(1, reinterpret_cast<const uint8_t*>(a), 4), Fault::kNone);
  EXPECT_EQ(tiles.load(2, reinterpret_cast<const uint8_t*>(b), 4), Fault::kNone);
  EXPECT_EQ(tiles.dot_bf16(0, 1, 2), Fault::kNone);
  float out = 0;
  EXPECT_EQ(tiles.store(0, reinterpret_cast<uint8_t*>(&out), 4), Fault::kNone);
  return out;
}

TEST(Tiles, Bf16FlushesSubnormalsAndPropagatesSpecialValues) {
  const float least = 0x1p-126F, infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(one_bf16_product(0, {1, 2}, {3, 4}), 11);
  EXPECT_EQ(one_bf16_product(0, {0x1p-127F, 0}, {0x1p100F, 0}), 0) << "a subnormal input is zero";
  EXPECT_EQ(one_bf16_product(0, {0x1p-64F, 0}, {0x1p-64F, 0}), 0) << "a subnormal product is zero";
  EXPECT_EQ(one_bf16_product(0, {0x1p-63F, 0}, {0x1p-63F, 0}), least);
  EXPECT_EQ(one_bf16_product(0x1p-127F, {0x1p-63F, 0}, {0x1p-63F, 0}), least) << "a subnormal sum is zero on entry";
  EXPECT_EQ(one_bf16_product(-1.5F * least, {1, 0}, {least, 0}), 0) << "a subnormal result is zero";
  EXPECT_EQ(one_bf16_product(0, {infinity, 1}, {1, 1}), infinity);
  EXPECT_TRUE(std::isnan(one_bf16_product(0, {infinity, 1}, {0, 1})));
  EXPECT_TRUE(std::isnan(one_bf16_product(0, {std::nanf(""), 1}, {0, 1})));
  EXPECT_TRUE(std::isnan(one_bf16_product(infinity, {-infinity, 1}, {1, 1})));
}

// The chain of the even inputs alone is a chain of FMA: the model's shortcut through double must not round twice.
TEST(Tiles, Bf16ChainsRoundOnceAStep) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 20000; ++trial) {
    Tiles tiles;
    ASSERT_EQ(tiles.configure(TileConfig::product(1, 1, 16).bytes()), Fault::kNone);
    uint16_t a[32] = {}, b[32] = {};
    float chain = 0;
    for (int k = 0; k < 32; k += 2) {
      const auto draw = [&random] {  // signs, all mantissas, exponents over 40 powers of two
        return static_cast<uint16_t>((random() & 1) << 15 | (107 + random() % 40) << 7 | random() % 128);
      };
      a[k] = draw();
      b[k] = draw();
      chain = std::fma(bf16_to_float(a[k]), bf16_to_float(b[k]), chain);
    }
    float out = 0;
    ASSERT_EQ(tiles.load(1, reinterpret_cast<const uint8_t*>(a), 64), Fault::kNone);
    ASSERT_EQ(tiles.load(2, reinterpret_cast<const uint8_t*>(b), 4), Fault::kNone);
    ASSERT_EQ(tiles.dot_bf16(0, 1, 2), Fault::kNone);
    ASSERT_EQ(tiles.store(0, reinterpret_cast<uint8_t*>(&out), 4), Fault::kNone);
    ASSERT_EQ(out, chain);
  }
}

TEST(Tiles, ForkedChildrenKeepTheConfigurationOnly) {
  Tiles tiles;
  ASSERT_EQ(tiles.configure(TileConfig().tile(0, 1, 4).bytes()), Fault::kNone);
  uint32_t word = 7;
  ASSERT_EQ(tiles.load(0, reinterpret_cast<const uint8_t*>(&word), 4), Fault::kNone);
  tiles.clear_data();
  EXPECT_TRUE(tiles.configured());
  ASSERT_EQ(tiles.store(0, reinterpret_cast<uint8_t*>(&word), 4), Fault::kNone);
  EXPECT_EQ(word, 0U);
}

}  // namespace
}  // namespace okl::amx_model
