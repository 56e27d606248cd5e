// SPDX-License-Identifier: Apache-2.0
// Moments of inputs, their factor, and error feedback through it.
#include <gtest/gtest.h>

#include <functional>
#include <limits>

#include "reference/core/error.h"
#include "reference/core/half.h"
#include "reference/pack/cholesky.h"
#include "reference/pack/quantiser_case.h"
#include "reference/pack/scale_search.h"

namespace ref {
namespace {

// Inputs that depend on each other, as those of a model do.
std::vector<float> correlated_inputs(int64_t rows, int64_t k, uint32_t seed) {
  const int64_t rank = k / 4 + 1;
  const std::vector<float> base = normal_rows(rows, rank, seed, 1).w, mix = normal_rows(rank, k, seed + 1, 1).w,
                           noise = normal_rows(rows, k, seed + 2, 0.3F).w;
  std::vector<float> x = noise;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t c = 0; c < rank; ++c) {
      for (int64_t i = 0; i < k; ++i)
        x[static_cast<size_t>(r * k + i)] += base[static_cast<size_t>(r * rank + c)] * mix[static_cast<size_t>(c * k + i)];
    }
  }
  return x;
}

std::vector<double> naive_moments(const std::vector<float>& x, int64_t k) {
  std::vector<double> h(static_cast<size_t>(k * k));
  const auto rows = static_cast<int64_t>(x.size()) / k;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t i = 0; i < k; ++i) {
      for (int64_t j = 0; j < k; ++j) {
        h[static_cast<size_t>(i * k + j)] += static_cast<double>(x[static_cast<size_t>(r * k + i)]) *
                                             static_cast<double>(x[static_cast<size_t>(r * k + j)]) / static_cast<double>(rows);
      }
    }
  }
  double trace = 0;
  for (int64_t i = 0; i < k; ++i) trace += h[static_cast<size_t>(i * k + i)];
  for (int64_t i = 0; i < k; ++i) h[static_cast<size_t>(i * k + i)] += 0.01 * trace / static_cast<double>(k);
  return h;
}

InputMoments moments_of(const std::vector<float>& x, int64_t k, bool whole = true) {
  InputMoments inputs(k, whole);
  // In calls of several sizes, one beyond what goes through at once.
  const auto rows = static_cast<int64_t>(x.size()) / k;
  const int64_t first = std::min<int64_t>(rows, 7);
  inputs.add(x.data(), first, k, nullptr);
  if (rows > first) inputs.add(x.data() + first * k, rows - first, k, nullptr);
  inputs.finish();
  if (whole) inputs.factorise(nullptr);
  return inputs;
}

// Below a panel, at its edge, several of them, more than one block of columns.
class Moments : public testing::TestWithParam<int64_t> {};
TEST_P(Moments, AndTheirFactor) {
  const int64_t k = GetParam();
  const std::vector<float> x = correlated_inputs(k < 300 ? 600 : 80, k, 5);
  const std::vector<double> h = naive_moments(x, k);
  const InputMoments inputs = moments_of(x, k), blocks = moments_of(x, k, false);
  double size = 0;
  for (int64_t i = 0; i < k; ++i) size = std::max(size, h[static_cast<size_t>(i * k + i)]);
  const double tolerance = 2e-5 * size;
  for (int64_t begin = 0; begin < k; begin += 32) {
    const int64_t count = std::min<int64_t>(32, k - begin);
    std::vector<float> one(static_cast<size_t>(count * 48), -1), two(one.size(), -1);
    inputs.copy_block(begin, count, 48, one.data());
    blocks.copy_block(begin, count, 48, two.data());
    for (int64_t i = 0; i < count; ++i) {
      EXPECT_NEAR(inputs.diagonal()[static_cast<size_t>(begin + i)], h[static_cast<size_t>((begin + i) * (k + 1))], tolerance);
      for (int64_t j = 0; j < 48; ++j) {
        const double expected = j < count ? h[static_cast<size_t>((begin + i) * k + begin + j)] : 0;
        ASSERT_NEAR(one[static_cast<size_t>(i * 48 + j)], expected, tolerance) << begin << " " << i << " " << j;
        ASSERT_NEAR(two[static_cast<size_t>(i * 48 + j)], expected, tolerance);
      }
    }
  }
  // T is lower triangular with a positive diagonal, and T^T T the moments.
  const float* t = inputs.factor().data();
  for (int64_t i = 0; i < k; ++i) {
    EXPECT_GT(t[i * k + i], 0);
    for (int64_t j = 0; j < k; ++j) {
      if (j > i) {
        ASSERT_EQ(t[i * k + j], 0);
      }
      double product = 0;
      for (int64_t r = std::max(i, j); r < k; ++r) product += static_cast<double>(t[r * k + i]) * static_cast<double>(t[r * k + j]);
      ASSERT_NEAR(product, h[static_cast<size_t>(i * k + j)], tolerance) << i << " " << j;
    }
  }
}
INSTANTIATE_TEST_SUITE_P(Sizes, Moments, testing::Values(1, 5, 64, 128, 129, 250, 300, 700));

TEST(MomentErrors, AreToldApart) {
  InputMoments none(8, true);
  EXPECT_THROW(none.finish(), Error);
  InputMoments bad(8, true);
  std::vector<float> x(16, 1);
  x[11] = std::numeric_limits<float>::infinity();
  bad.add(x.data(), 2, 8, nullptr);
  try {
    bad.finish();
    FAIL();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("input 3"), std::string::npos) << error.what();
  }
  InputMoments blocks(8, false);
  blocks.add(x.data(), 1, 8, nullptr);
  blocks.finish();
  EXPECT_THROW(blocks.factorise(nullptr), Error);
  std::vector<float> indefinite = {1, 2, 2, 1};
  EXPECT_THROW(factorise_from_below(indefinite.data(), 2, nullptr), Error);
  const Rows rows = normal_rows(2, 8, 1);
  EXPECT_THROW(quantise(rows, 8, true, Quantiser::kGptq, false, &blocks), Error);
}

// Inputs that are always 0 have no say, and no harm.
TEST(Gptq, TakesInputsOfNothing) {
  std::vector<float> x = correlated_inputs(100, 64, 3);
  for (size_t i = 0; i < x.size(); ++i) x[i] = i % 64 == 9 ? 0 : x[i];
  const Rows rows = normal_rows(3, 64, 4);
  const InputMoments some = moments_of(x, 64), none = moments_of(std::vector<float>(640), 64);
  EXPECT_LT(total_error(rows, quantise(rows, 32, false, Quantiser::kGptq, false, &some), 32), 1);
  EXPECT_EQ(quantise(rows, 32, false, Quantiser::kGptq, false, &none).codes, quantise(rows, 32, false, Quantiser::kSearch).codes);
}

// The published algorithm, in double and without blocks: each code's error goes into the later weights through the inverse of what
// is left of the moments. Scales are those that were found.
std::vector<uint8_t> textbook_codes(const Rows& rows, std::vector<double> h, const Quantised& found, int64_t group,
                                    const std::function<void(int64_t, const std::vector<double>&)>& on_group) {
  const int64_t k = rows.k, groups = groups_of(group, k), size = group <= 0 ? k : group;
  std::vector<double> w(rows.w.begin(), rows.w.end());
  std::vector<uint8_t> codes(w.size());
  // Inverse by Gauss-Jordan.
  std::vector<double> inverse(h.size());
  for (int64_t i = 0; i < k; ++i) inverse[static_cast<size_t>(i * k + i)] = 1;
  const auto at = [k](std::vector<double>& m, int64_t i, int64_t j) -> double& { return m[static_cast<size_t>(i * k + j)]; };
  for (int64_t p = 0; p < k; ++p) {
    const double pivot = at(h, p, p);
    for (int64_t j = 0; j < k; ++j) {
      at(h, p, j) /= pivot;
      at(inverse, p, j) /= pivot;
    }
    for (int64_t i = 0; i < k; ++i) {
      const double factor = at(h, i, p);
      for (int64_t j = 0; i != p && j < k; ++j) {
        at(h, i, j) -= factor * at(h, p, j);
        at(inverse, i, j) -= factor * at(inverse, p, j);
      }
    }
  }
  for (int64_t j = 0; j < k; ++j) {
    if (j % size == 0) on_group(j, w);
    for (int64_t row = 0; row < rows.rows; ++row) {
      const auto g = static_cast<size_t>(row * groups + j / size);
      const double scale = found.scales[g], zero = found.offsets.empty() ? found.zeros[g] : 8 - found.offsets[g] / scale;
      double& weight = w[static_cast<size_t>(row * k + j)];
      const double code = std::clamp(std::nearbyint(weight / scale + zero), 0.0, 15.0), error = weight - (code - zero) * scale;
      codes[static_cast<size_t>(row * k + j)] = static_cast<uint8_t>(code);
      for (int64_t i = j + 1; i < k; ++i) w[static_cast<size_t>(row * k + i)] -= error * at(inverse, j, i) / at(inverse, j, j);
    }
    // The inverse of the moments without input j.
    const std::vector<double> before = inverse;
    for (int64_t i = j + 1; i < k; ++i) {
      for (int64_t l = j + 1; l < k; ++l) {
        at(inverse, i, l) -= before[static_cast<size_t>(i * k + j)] * before[static_cast<size_t>(j * k + l)] /
                             before[static_cast<size_t>(j * k + j)];
      }
    }
  }
  return codes;
}

TEST(Gptq, IsThePublishedAlgorithm) {
  const int64_t k = 160;
  const Rows rows = normal_rows(12, k, 8);
  const std::vector<float> x = correlated_inputs(400, k, 9);
  const InputMoments inputs = moments_of(x, k);
  for (const int64_t group : {32, 128, 0}) {
    for (const bool offsets : {false, true}) {
      const Quantised found = quantise(rows, group, false, Quantiser::kGptq, offsets, &inputs);
      int64_t other_scales = 0;
      const auto compare_scales = [&](int64_t begin, const std::vector<double>& w) {
        const int64_t count = std::min(k - begin, group == 0 ? k : group), groups = groups_of(group, k);
        GroupBatch batch;
        batch.resize(count);
        std::vector<float> square, lanes(static_cast<size_t>(rows.rows * count));
        for (int64_t i = 0; i < rows.rows * count; ++i) {
          lanes[static_cast<size_t>(i)] = static_cast<float>(w[static_cast<size_t>(i / count * k + begin + i % count)]);
        }
        for (int64_t j = begin; j < begin + count; ++j) {
          const float pivot = inputs.factor()[static_cast<size_t>(j * k + j)];
          square.push_back(pivot * pivot);
        }
        batch.load(lanes.data(), rows.rows, count);
        batch.set_importance(square.data());
        GroupScales scales;
        search_scales(batch, offsets ? Zeros::kOffsets : Zeros::kPoints, &scales);
        for (int64_t row = 0; row < rows.rows; ++row) {
          other_scales +=
              scales.scale[row] != found.scales[static_cast<size_t>(row * groups + begin / (group == 0 ? k : group))] ? 1 : 0;
        }
      };
      const std::vector<uint8_t> expected = textbook_codes(rows, naive_moments(x, k), found, group, compare_scales);
      EXPECT_LE(other_scales, 12 * groups_of(group, k) / 10) << group;  // roundings of w decide between equals
      int64_t different = 0;
      for (size_t i = 0; i < expected.size(); ++i) different += found.codes[i] != expected[i] ? 1 : 0;
      // A tie that fp32 decides the other way changes what follows in its row.
      EXPECT_LT(different, 12 * k / 50) << group;
    }
  }
}

// Also where the best by the diagonal are worse than nearest rounding.
TEST(Search, IsNeverWorseWithMoments) {
  const int64_t k = 128;
  const Rows rows = normal_rows(150, k, 26);
  std::vector<float> x = correlated_inputs(300, k, 27);
  for (size_t i = 0; i < x.size(); ++i) x[i] = x[i] * 0.05F + x[i - i % static_cast<size_t>(k)];  // one direction above all
  const InputMoments inputs = moments_of(x, k, false);
  for (const bool symmetric : {true, false}) {
    const Quantised nearest = quantise(rows, 32, symmetric, Quantiser::kNearest),
                    found = quantise(rows, 32, symmetric, Quantiser::kSearch, false, &inputs);
    const std::vector<double> before = group_errors(rows, nearest, 32, &inputs), after = group_errors(rows, found, 32, &inputs);
    for (size_t i = 0; i < before.size(); ++i) EXPECT_LE(after[i], before[i] * 1.0001 + 1e-9) << i;
  }
}

// The search knows which errors of a group cancel in its outputs.
TEST(Search, WeighsErrorsTogether) {
  for (const int64_t k : {32, 64, 256}) {
    const Rows rows = normal_rows(60, k, 16);
    const std::vector<float> x = correlated_inputs(400, k, 17);
    const InputMoments inputs = moments_of(x, k, false);
    for (const bool symmetric : {true, false}) {
      const double plain = output_error(rows, quantise(rows, 0, symmetric, Quantiser::kSearch), 0, x),
                   found = output_error(rows, quantise(rows, 0, symmetric, Quantiser::kSearch, false, &inputs), 0, x);
      EXPECT_LT(found, 0.87 * plain) << k << symmetric << " " << found / plain;
    }
  }
}

TEST(Gptq, LowersTheErrorOfTheOutput) {
  const int64_t k = 512;
  const Rows rows = normal_rows(40, k, 6);
  const std::vector<float> x = correlated_inputs(700, k, 7);
  const InputMoments inputs = moments_of(x, k);
  for (const bool symmetric : {true, false}) {
    for (const bool offsets : {false, true}) {
      for (const int64_t group : {64, 256, 0}) {
        const auto error = [&](Quantiser quantiser, const InputMoments* used) {
          return output_error(rows, quantise(rows, group, symmetric, quantiser, offsets, used), group, x);
        };
        const double plain = error(Quantiser::kSearch, nullptr), gptq = error(Quantiser::kGptq, &inputs);
        EXPECT_LT(gptq, 0.35 * plain) << symmetric << offsets << group;
      }
    }
  }
}

}  // namespace
}  // namespace ref
