// SPDX-License-Identifier: Apache-2.0
#include "bench/stats.h"

#include <gtest/gtest.h>

#include <cmath>

namespace omnibench {
namespace {

TEST(Stats, QuantilesInterpolate) {
  EXPECT_DOUBLE_EQ(median({3, 1, 2}), 2);
  EXPECT_DOUBLE_EQ(median({4, 1, 2, 3}), 2.5);
  EXPECT_DOUBLE_EQ(quantile({0, 10}, 0.25), 2.5);
  EXPECT_DOUBLE_EQ(quantile({7}, 0.99), 7);
}

// Zero spread: nothing divides by it, and outliers on either side are seen.
TEST(Stats, ZeroSpread) {
  const std::vector<double> equal(10, 1.0);
  const Summary s = summarize(equal, 0);
  EXPECT_EQ(s.n, 10U);
  EXPECT_EQ(s.spread, 0);
  EXPECT_TRUE(s.fast_outliers.empty());
  EXPECT_TRUE(s.slow_outliers.empty());

  std::vector<double> fast = equal;
  fast[3] = 0.5;
  const Summary f = summarize(fast, 0);
  EXPECT_EQ(f.fast_outliers, std::vector<size_t>{3});
  EXPECT_TRUE(f.slow_outliers.empty());
  EXPECT_EQ(f.best, 0.5);
  EXPECT_EQ(f.median, 1.0);
  EXPECT_TRUE(std::isfinite(f.spread));

  std::vector<double> slow = equal;
  slow[9] = 2.0;
  const Summary g = summarize(slow, 0);
  EXPECT_EQ(g.slow_outliers, std::vector<size_t>{9});
  EXPECT_TRUE(g.fast_outliers.empty());
}

TEST(Stats, ZeroTimesGiveNoNan) {
  const Summary s = summarize({0, 0, 0}, 0);
  EXPECT_EQ(s.spread, 0);
  EXPECT_EQ(s.median, 0);
  EXPECT_EQ(summarize({}, 1).n, 0U);
}

TEST(Stats, PairedIsExactOnConstantRatios) {
  const Paired p = paired_statistics(std::vector<double>(10, std::log(1.25)));
  EXPECT_DOUBLE_EQ(p.ratio, 1.25);
  EXPECT_DOUBLE_EQ(p.low, 1.25);
  EXPECT_DOUBLE_EQ(p.high, 1.25);
  EXPECT_EQ(p.spread, 0);
}

TEST(Stats, BootstrapIsReproducibleAndHoldsTheMedian) {
  std::vector<double> logs;
  for (int i = 0; i < 21; ++i) logs.push_back(0.01 * ((i * 37) % 21 - 10));
  const Paired p = paired_statistics(logs);
  const Paired again = paired_statistics(logs);
  EXPECT_EQ(p.low, again.low);
  EXPECT_EQ(p.high, again.high);
  EXPECT_LT(p.low, p.ratio);
  EXPECT_GT(p.high, p.ratio);
  EXPECT_GT(p.spread, 0);
}

TEST(Stats, UnpairedRatio) {
  const Paired p = unpaired_statistics({100, 101, 99, 100}, {200, 202, 198, 200});
  EXPECT_NEAR(p.ratio, 2.0, 1e-9);
  EXPECT_GT(p.low, 1.9);
  EXPECT_LT(p.high, 2.1);
}

TEST(Stats, TrendSeesDriftOnly) {
  std::vector<double> drifting;
  std::vector<double> flat;
  for (int i = 0; i < 30; ++i) {
    drifting.push_back(1.0 + 0.01 * i);
    flat.push_back(1.0 + 0.01 * ((i * 7) % 5));
  }
  EXPECT_NEAR(trend(drifting).change, 0.29 / 1.145, 1e-9);
  EXPECT_GT(trend(drifting).score, 2.58);
  EXPECT_LT(std::fabs(trend(flat).score), 2.58);
  EXPECT_EQ(trend({1, 2, 3}).score, 0);  // too few to say anything
}

}  // namespace
}  // namespace omnibench
