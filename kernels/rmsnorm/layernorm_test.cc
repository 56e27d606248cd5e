// SPDX-License-Identifier: Apache-2.0
// LayerNorm on every tier against the contract in scalar form, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "kernels/rmsnorm/layernorm_kernel.h"
#include "tests/support/abi_check.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/row_kernels.h"
#include "tests/support/threads.h"

namespace okl::test {
namespace {

struct Case {
  omni_layernorm_query query = {};
  uint32_t m = 1;
  int64_t extra = 0;  // columns behind each row, NaN
  bool has_weight = true, has_bias = true;
  std::vector<float> x, weight, bias;

  Case() {
    query.size = sizeof query;
    query.x_type = query.y_type = OMNI_DTYPE_F32;
    query.n = 64;
    query.eps = 1e-5F;
  }
  void fill(uint64_t seed, float offset = 0) {
    std::mt19937_64 random(seed);
    x.resize(static_cast<size_t>(m * query.n));
    weight.resize(static_cast<size_t>(query.n)), bias.resize(static_cast<size_t>(query.n));
    for (float& value : x) value = random_value(random, -6, 3) + offset;
    for (float& value : weight) value = random_value(random, -2, 1);
    for (float& value : bias) value = random_value(random, -4, 0);
  }
  float value(size_t at) const { return query.x_type == OMNI_DTYPE_BF16 ? bf16_to_float(bf16_round_ieee(x[at])) : x[at]; }
};

float tree(float (&lanes)[64]) {
  for (int half = 32; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  return lanes[0];
}

// docs/numerics.md, "Element-wise", element by element: the bits of y.
std::vector<uint32_t> reference(const Case& c) {
  const auto n = static_cast<size_t>(c.query.n);
  std::vector<uint32_t> bits;
  for (size_t r = 0; r < c.m; ++r) {
    float sums[64] = {}, squares[64] = {};
    for (size_t i = 0; i < n; ++i) sums[i % 64] += c.value(r * n + i);
    const float mean = tree(sums) / static_cast<float>(n);
    for (size_t i = 0; i < n; ++i) {
      const float d = c.value(r * n + i) - mean;
      squares[i % 64] = std::fma(d, d, squares[i % 64]);
    }
    const float inverse = 1.0F / std::sqrt(tree(squares) / static_cast<float>(n) + c.query.eps);
    for (size_t i = 0; i < n; ++i) {
      const float scaled = (c.value(r * n + i) - mean) * inverse;
      const float y = std::fma(scaled, c.has_weight ? c.weight[i] : 1.0F, c.has_bias ? c.bias[i] : 0.0F);
      if (c.query.y_type == OMNI_DTYPE_BF16) {
        bits.push_back(bf16_round_group(y));
      } else {
        bits.push_back(std::isnan(y) ? kF32NaN : std::bit_cast<uint32_t>(y));
      }
    }
  }
  return bits;
}

OwnedPlan make_plan(const omni_layernorm_query& query, const char* kernel) {
  omni_layernorm_query named = query;
  named.kernel = kernel;
  omni_plan* plan = nullptr;
  EXPECT_EQ(omni_layernorm_select(&named, &plan), OMNI_OK) << omni_last_error();
  return OwnedPlan(plan);
}

// Operands between guards; what lies behind a row must be neither read into a result nor written.
std::vector<uint32_t> run(const Case& c, const char* kernel, Flush flush = Flush::kBack, const omni_parallel* parallel = nullptr) {
  const omni_layernorm_query& q = c.query;
  const int64_t n = q.n, ld = n + c.extra, m = c.m;
  const auto bytes = [&](uint16_t type) { return static_cast<size_t>((m - 1) * ld + n) * bytes_of_type(type); };
  GuardedBuffer x(bytes(q.x_type), flush, bytes_of_type(q.x_type), 0xFF), y(bytes(q.y_type), flush, bytes_of_type(q.y_type));
  GuardedBuffer weight(static_cast<size_t>(n) * 4, flush, 4), bias(static_cast<size_t>(n) * 4, flush, 4);
  for (int64_t i = 0; i < m * n; ++i) put(x.data(), q.x_type, i / n * ld + i % n, c.x[static_cast<size_t>(i)]);
  std::copy(c.weight.begin(), c.weight.end(), weight.as<float>());
  std::copy(c.bias.begin(), c.bias.end(), bias.as<float>());
  x.make_read_only(), weight.make_read_only(), bias.make_read_only();
  const OwnedPlan plan = make_plan(q, kernel);
  const omni_layernorm_args args = {
      sizeof args, c.m, x.data(), ld, c.has_weight ? weight.as<float>() : nullptr, c.has_bias ? bias.as<float>() : nullptr,
      y.data(),    ld,  parallel};
  EXPECT_EQ(omni_layernorm_run(plan.get(), &args), OMNI_OK) << omni_last_error();
  EXPECT_TRUE(y.intact()) << kernel;
  std::vector<uint32_t> found;
  for (int64_t i = 0; i < m * n; ++i) found.push_back(get_bits(y.data(), q.y_type, i / n * ld + i % n));
  for (int64_t r = 0; r + 1 < m; ++r) {
    for (int64_t i = n; i < ld; ++i) {
      EXPECT_EQ(get_bits(y.data(), q.y_type, r * ld + i), q.y_type == OMNI_DTYPE_F32 ? 0xA5A5A5A5U : 0xA5A5U) << "padding of y";
    }
  }
  return found;
}

class Layernorm : public KernelTest {};

TEST_P(Layernorm, EveryFormAndLengthIsTheContract) {
  for (const uint16_t x_type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    for (const uint16_t y_type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
      for (int64_t n = 1; n < 200; ++n) {
        Case c;
        c.query.x_type = x_type, c.query.y_type = y_type, c.query.n = n;
        c.m = 1 + static_cast<uint32_t>(n % 2);
        c.extra = n % 3;
        c.has_weight = n % 4 < 2, c.has_bias = n % 8 < 4;
        c.fill(static_cast<uint64_t>(n), n % 5 == 0 ? 100.0F : 0.0F);
        ASSERT_EQ(run(c, kernel(), n % 2 == 0 ? Flush::kBack : Flush::kFront), reference(c)) << n << " " << x_type << " " << y_type;
      }
    }
  }
}

TEST_P(Layernorm, IsTheNorm) {
  for (const int64_t n : {96, 512, 1024, 1000}) {
    Case c;
    c.query.n = n;
    c.fill(static_cast<uint64_t>(n), 3.0F);
    const std::vector<uint32_t> y = run(c, kernel());
    double mean = 0, variance = 0;
    for (const float x : c.x) mean += static_cast<double>(x) / static_cast<double>(n);
    for (const float x : c.x) variance += std::pow(static_cast<double>(x) - mean, 2) / static_cast<double>(n);
    const double r = 1 / std::sqrt(variance + static_cast<double>(c.query.eps));
    for (size_t i = 0; i < y.size(); ++i) {
      const double d = static_cast<double>(c.x[i]) - mean, w = static_cast<double>(c.weight[i]);
      const double exact = d * r * w + static_cast<double>(c.bias[i]);
      // The mean is off by the roundings of n/64 additions, the tree and a division, of values up to 16; r by half of as many.
      const double steps = static_cast<double>(n) / 64 + 9;
      const double bound = steps * 0x1p-24 * (16 + std::fabs(d)) * r * std::fabs(w) + 0x1p-24 * std::fabs(exact);
      ASSERT_LE(std::fabs(static_cast<double>(from_bits(y[i])) - exact), bound) << n << " " << i;
    }
  }
}

// A row of one value has no deviation but the rounding of its mean: y is the bias.
TEST_P(Layernorm, EqualValuesGiveTheBias) {
  Case c;
  c.query.n = 128;
  c.fill(1);
  std::fill(c.x.begin(), c.x.end(), 2.5F);
  const std::vector<uint32_t> y = run(c, kernel());
  for (size_t i = 0; i < y.size(); ++i) EXPECT_EQ(from_bits(y[i]), c.bias[i]);
}

// Values near zero and not finite, in the middle row of three.
TEST_P(Layernorm, SpecialRowsLeaveTheOthersAlone) {
  for (const uint16_t type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    for (const int64_t n : {96, 128}) {
      struct Special {
        float all, one;
      };
      for (const Special special : {Special{0, 0},
                                    {-0.0F, -0.0F},
                                    {1e-30F, 1e-30F},
                                    {1e-40F, -1e-40F},
                                    {1.0F, from_bits(0x7F800000)},
                                    {1.0F, from_bits(0xFF800000)},
                                    {1.0F, from_bits(0xFFC12345)},
                                    {3e38F, 3e38F},
                                    {3e19F, -3e19F},
                                    {3e38F, -3e38F}}) {
        Case c;
        c.query.x_type = c.query.y_type = type, c.query.n = n;
        c.m = 3;
        c.fill(5);
        std::fill(c.x.begin() + n, c.x.begin() + 2 * n, special.all);
        c.x[static_cast<size_t>(n + 70)] = special.one;
        ASSERT_EQ(run(c, kernel()), reference(c)) << special.all << " " << special.one;
      }
    }
  }
}

TEST_P(Layernorm, WeightsThatAreNotFinite) {
  for (const uint16_t type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    Case c;
    c.query.y_type = type;
    c.query.n = 100;
    c.fill(2);
    c.weight[3] = from_bits(0xFFC10000), c.weight[9] = from_bits(0x7F800000), c.bias[99] = from_bits(0xFF800000);
    ASSERT_EQ(run(c, kernel()), reference(c));
  }
}

TEST_P(Layernorm, BatchesAndThreadsChangeNothing) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 5; ++round) {
    Case c;
    c.m = 3 + static_cast<uint32_t>(random() % 40);
    c.query.n = 1 + static_cast<int64_t>(random() % 2000);
    c.extra = static_cast<int64_t>(random() % 70);
    c.fill(random());
    const std::vector<uint32_t> whole = run(c, kernel());
    ASSERT_EQ(whole, reference(c));
    for (const uint32_t threads : {1U, 2U, 5U}) {
      const omni_parallel parallel = threads == 1 ? backwards(4) : fresh_threads(&threads);
      ASSERT_EQ(run(c, kernel(), Flush::kFront, &parallel), whole);
    }
  }
}

// y may be x.
TEST_P(Layernorm, InPlace) {
  Case c;
  c.query.n = 200;
  c.m = 2;
  c.fill(4);
  const std::vector<uint32_t> expected = run(c, kernel());
  const OwnedPlan plan = make_plan(c.query, kernel());
  const omni_layernorm_args args = {sizeof args, 2, c.x.data(), 200, c.weight.data(), c.bias.data(), c.x.data(), 200, nullptr};
  ASSERT_EQ(omni_layernorm_run(plan.get(), &args), OMNI_OK);
  for (size_t i = 0; i < 400; ++i) ASSERT_EQ(std::bit_cast<uint32_t>(c.x[i]), expected[i]);
}

TEST_P(Layernorm, KeepsTheCallersState) {
  for (const uint16_t x_type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    for (const uint16_t y_type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
      float x[100] = {}, weight[100] = {}, bias[100] = {}, y[100];
      const LayernormRow argument = {x, weight, bias, y, 100, 1e-6F};
      EXPECT_EQ(AbiTrampoline::call(row().as<Op::kLayernorm>().row_for(x_type, y_type), &argument), "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Layernorm, testing::ValuesIn(kernels_of(Op::kLayernorm)), kernel_test_name);

TEST(LayernormArguments, BadQueriesAreRefused) {
  const Case c;
  omni_plan* made = nullptr;
  const auto select = [&](const auto& change) {
    omni_layernorm_query changed = c.query;
    change(changed);
    const omni_status status = omni_layernorm_select(&changed, &made);
    EXPECT_NE(std::string(omni_last_error()), "");
    return status;
  };
  EXPECT_EQ(omni_layernorm_select(nullptr, &made), OMNI_ERR_NULL);
  EXPECT_EQ(omni_layernorm_select(&c.query, nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(select([](auto& q) { q.size = 4; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(select([](auto& q) { q.x_type = OMNI_DTYPE_NONE; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.y_type = OMNI_DTYPE_S8; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.reserved = 1; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.n = 0; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.eps = -1e-6F; }), OMNI_ERR_RANGE);
  EXPECT_EQ(select([](auto& q) { q.eps = from_bits(0x7FC00000); }), OMNI_ERR_RANGE);
  EXPECT_EQ(select([](auto& q) { q.eps = from_bits(0x7F800000); }), OMNI_ERR_RANGE);
  EXPECT_EQ(select([](auto& q) { q.kernel = "layernorm_mmx"; }), OMNI_ERR_UNKNOWN_NAME);
  EXPECT_EQ(select([](auto& q) { q.kernel = "rmsnorm_portable"; }), OMNI_ERR_NO_KERNEL);
  EXPECT_EQ(made, nullptr);
}

TEST(LayernormArguments, BadRunsTouchNothing) {
  const Case c;
  const OwnedPlan plan = make_plan(c.query, nullptr);
  std::vector<float> x(130, 2.0F), weight(65, 1.0F), bias(65, 1.0F), y(130, 77.0F);
  const omni_layernorm_args good = {sizeof good, 2, x.data(), 64, weight.data(), bias.data(), y.data(), 64, nullptr};
  const auto run_changed = [&](const auto& change, const omni_plan* with) {
    omni_layernorm_args args = good;
    change(args);
    const omni_status status = omni_layernorm_run(with, &args);
    EXPECT_TRUE(status == OMNI_OK || omni_last_error()[0] != '\0');
    EXPECT_EQ(y, std::vector<float>(130, 77.0F));
    return status;
  };
  EXPECT_EQ(omni_layernorm_run(nullptr, &good), OMNI_ERR_NULL);
  EXPECT_EQ(omni_layernorm_run(plan.get(), nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.size = 8; }, plan.get()), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(run_changed([](auto& a) { a.x = nullptr; }, plan.get()), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.y = nullptr; }, plan.get()), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.ldx = 63; }, plan.get()), OMNI_ERR_STRIDE);
  EXPECT_EQ(run_changed([](auto& a) { a.ldy = 63; }, plan.get()), OMNI_ERR_STRIDE);
  EXPECT_EQ(run_changed([](auto& a) { a.ldx = INT64_MAX / 2; }, plan.get()), OMNI_ERR_OVERFLOW);
  const auto odd = [](const auto* p) { return reinterpret_cast<const float*>(reinterpret_cast<uintptr_t>(p) + 2); };
  EXPECT_EQ(run_changed([&](auto& a) { a.x = odd(static_cast<const float*>(a.x)); }, plan.get()), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([&](auto& a) { a.weight = odd(a.weight); }, plan.get()), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([&](auto& a) { a.bias = odd(a.bias); }, plan.get()), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([](auto& a) { a.y = static_cast<char*>(a.y) + 2; }, plan.get()), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([](auto& a) { a.m = 0, a.x = nullptr; }, plan.get()), OMNI_OK);
  const omni_quantize_query query = {sizeof query, OMNI_DTYPE_BF16, 0, 64, nullptr, nullptr};
  omni_plan* quantize = nullptr;
  ASSERT_EQ(omni_quantize_select(&query, &quantize), OMNI_OK);
  EXPECT_EQ(run_changed([](auto&) {}, OwnedPlan(quantize).get()), OMNI_ERR_TYPE);
}

}  // namespace
}  // namespace okl::test
