// SPDX-License-Identifier: Apache-2.0
// The loops over a batch against the same sums in double, and the scales that they lead to.
#include "reference/pack/lane_math.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/pack/quantiser_case.h"
#include "reference/pack/scale_search.h"

namespace ref {
namespace {

struct Case {
  Case(int64_t count, uint32_t seed, Zeros kind) : zeros(kind), moments(static_cast<size_t>(count * (count + 3))) {
    rows = normal_rows(kLanes, count, seed, 0.5F);
    batch.resize(count);
    batch.load(rows.w.data(), kLanes, count);
    for (int64_t i = 0; i < count; ++i) importance.push_back(0.5F + static_cast<float>(i % 5));
    batch.set_importance(importance.data());
    const std::vector<float> x = normal_rows(count, count, seed + 1, 1).w;
    for (int64_t i = 0; i < count; ++i) {
      for (int64_t j = 0; j < count; ++j) {
        for (int64_t r = 0; r < count; ++r)
          moments[static_cast<size_t>(i * (count + 3) + j)] +=
              x[static_cast<size_t>(r * count + i)] * x[static_cast<size_t>(r * count + j)];
      }
    }
    nearest_scales(batch, zeros, &scales);
    for (int64_t lane = 0; lane < kLanes; lane += 2) {  // clipped ones, too
      scales.scale[lane] = nearest_bf16(scales.scale[lane] * 0.7F);
      if (zeros != Zeros::kOffsets) scales.offset[lane] = (8 - scales.zero[lane]) * scales.scale[lane];
    }
  }
  float w(int64_t i, int64_t lane) const { return rows.w[static_cast<size_t>(lane * batch.count() + i)]; }
  double code(int64_t i, int64_t lane) const {
    const double origin = zeros == Zeros::kOffsets ? static_cast<double>(scales.offset[lane]) : 0;
    const double q = std::nearbyint((static_cast<double>(w(i, lane)) - origin) / static_cast<double>(scales.scale[lane]));
    return std::clamp(q + static_cast<double>(scales.zero[lane]), 0.0, 15.0);
  }
  double error(int64_t i, int64_t lane) const {
    const double scale = scales.scale[lane], value = zeros == Zeros::kOffsets
                                                         ? (code(i, lane) - 8) * scale + static_cast<double>(scales.offset[lane])
                                                         : (code(i, lane) - static_cast<double>(scales.zero[lane])) * scale;
    return static_cast<double>(w(i, lane)) - value;
  }

  Rows rows;
  Zeros zeros;
  GroupBatch batch;
  GroupScales scales;
  std::vector<float> importance, moments;
};

class Lanes : public testing::TestWithParam<int64_t> {};

TEST_P(Lanes, EqualSumsInDouble) {
  const int64_t count = GetParam();
  for (const Zeros zeros : {Zeros::kNone, Zeros::kPoints, Zeros::kOffsets}) {
    Case test(count, 3, zeros);
    std::vector<uint8_t> codes(static_cast<size_t>(count * kLanes));
    std::vector<float> left(codes.size());
    nearest_codes(test.batch.w(), count, test.scales, zeros, codes.data());
    code_residuals(test.batch.w(), codes.data(), count, test.scales, zeros, left.data());
    float quick[kLanes];
    double stored[kLanes], together[kLanes];
    CodeSums sums;
    quick_errors(test.batch, test.scales, quick);
    code_sums(test.batch, test.scales, &sums);
    stored_errors(test.batch, test.scales, zeros, stored);
    test.batch.set_moments(test.moments.data(), count + 3);
    stored_errors(test.batch, test.scales, zeros, together);
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      double square = 0, product = 0, size = 0, q = 0, qq = 0, qw = 0;
      for (int64_t i = 0; i < count; ++i) {
        const auto at = static_cast<size_t>(i * kLanes + lane);
        const double e = test.error(i, lane), weight = test.importance[static_cast<size_t>(i)], c = test.code(i, lane) - 8;
        ASSERT_EQ(codes[at], test.code(i, lane));
        ASSERT_NEAR(left[at], e, 1e-6);
        square += weight * e * e;
        q += weight * c;
        qq += weight * c * c;
        qw += weight * c * static_cast<double>(test.w(i, lane));
        for (int64_t j = 0; j < count; ++j) {
          const double term = e * static_cast<double>(test.moments[static_cast<size_t>(i * (count + 3) + j)]) * test.error(j, lane);
          product += term;
          size += std::fabs(term);
        }
      }
      EXPECT_NEAR(stored[lane], square, 1e-5 * square);
      EXPECT_NEAR(quick[lane], square, 1e-5 * square);
      EXPECT_NEAR(together[lane], product, 1e-5 * size);
      EXPECT_NEAR(sums.q[lane], q, 1e-5 * (std::fabs(q) + qq));
      EXPECT_NEAR(sums.qq[lane], qq, 1e-5 * qq);
      EXPECT_NEAR(sums.qw[lane], qw, 1e-5 * qq);
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Counts, Lanes, testing::Values(1, 3, 4, 7, 32, 130, 259));

TEST(Lanes, AddOuterProducts) {
  std::vector<float> y(5 * kLanes, 1), factors = {1, 2, 3, 4, 5};
  float x[kLanes];
  for (int64_t lane = 0; lane < kLanes; ++lane) x[lane] = static_cast<float>(lane);
  add_outer(factors.data(), x, 5, y.data());
  for (int64_t i = 0; i < 5 * kLanes; ++i)
    EXPECT_EQ(y[static_cast<size_t>(i)], 1 + static_cast<float>((i / kLanes + 1) * (i % kLanes)));
}

// The least scale of nearest rounding is where fp16 begins to lose bits.
TEST(NearestScales, HaveAFloor) {
  GroupBatch batch;
  batch.resize(2);
  for (int64_t lane = 0; lane < kLanes; ++lane) {
    batch.w()[lane] = 7.5F * (lane == 0 ? 6.1e-5F : lane == 1 ? 6.3e-5F : 1e-5F);
    batch.w()[kLanes + lane] = 0;
  }
  GroupScales scales;
  nearest_scales(batch, Zeros::kNone, &scales);
  EXPECT_EQ(scales.scale[0], 0x1p-14F);
  EXPECT_EQ(scales.scale[1], nearest_bf16(6.3e-5F));
  EXPECT_EQ(scales.scale[2], 0x1p-14F);
}

// Given its codes, no other scale of a group does better: the refinement has come to rest.
TEST(SearchScales, RestAtTheMinimumOfTheirCodes) {
  for (const Zeros zeros : {Zeros::kNone, Zeros::kPoints, Zeros::kOffsets}) {
    int64_t better = 0;
    for (uint32_t seed = 0; seed < 20; ++seed) {
      Case test(64, 100 + seed, zeros);
      search_scales(test.batch, zeros, &test.scales);
      for (int64_t lane = 0; lane < kLanes; ++lane) {
        double cc = 0, cw = 0, found = 0;
        const double shift = zeros == Zeros::kOffsets ? 8 : test.scales.zero[lane],
                     offset = zeros == Zeros::kOffsets ? test.scales.offset[lane] : 0;
        for (int64_t i = 0; i < 64; ++i) {
          const double weight = test.importance[static_cast<size_t>(i)], c = test.code(i, lane) - shift, e = test.error(i, lane);
          cc += weight * c * c;
          cw += weight * c * (static_cast<double>(test.w(i, lane)) - offset);
          found += weight * e * e;
        }
        const double scale = nearest_bf16(static_cast<float>(cw / cc));
        double other = 0;
        for (int64_t i = 0; i < 64; ++i) {
          const double e = static_cast<double>(test.w(i, lane)) - offset - (test.code(i, lane) - shift) * scale;
          other += test.importance[static_cast<size_t>(i)] * e * e;
        }
        if (other < found * 0.9999) ++better;
      }
    }
    EXPECT_LT(better, 20 * kLanes / 20) << static_cast<int>(zeros);
  }
}

}  // namespace
}  // namespace ref
