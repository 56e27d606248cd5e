// SPDX-License-Identifier: Apache-2.0
// omni/activation.h: every function on the portable tier against its own definition in double precision, every other tier against
// the portable one, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#if defined(OMNI_HAVE_SLEEF)
#include <sleef.h>
#endif

#include "kernels/activation/activation_kernel.h"
#include "tests/support/abi_check.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/row_kernels.h"
#include "tests/support/threads.h"

namespace okl::test {
namespace {

constexpr uint16_t kFunctions[] = {OMNI_ACTIVATION_RELU,    OMNI_ACTIVATION_ELU,  OMNI_ACTIVATION_GELU, OMNI_ACTIVATION_SILU,
                                   OMNI_ACTIVATION_SIGMOID, OMNI_ACTIVATION_TANH, OMNI_ACTIVATION_EXP,  OMNI_ACTIVATION_SNAKE};
constexpr const char* kPortable = "activation_portable";

struct Case {
  omni_activation_query query = {};
  uint32_t m = 1;
  int64_t extra = 0;  // columns behind each row, NaN
  std::vector<float> x, a, b;

  Case(uint16_t function, uint16_t x_type, uint16_t y_type, int64_t n, uint32_t rows = 1) : m(rows) {
    query.size = sizeof query;
    query.function = function;
    query.x_type = x_type, query.y_type = y_type;
    query.n = n;
    x.resize(static_cast<size_t>(m * n));
    a.resize(static_cast<size_t>(n), 1.0F), b.resize(static_cast<size_t>(n), 1.0F);
  }
  void fill(uint64_t seed) {
    std::mt19937_64 random(seed);
    for (float& value : x) value = random_value(random, -12, 5);
    for (float& value : a) value = std::fabs(random_value(random, -3, 6));
    for (float& value : b) value = std::fabs(random_value(random, -3, 3));
  }
};

OwnedPlan make_plan(const omni_activation_query& query, const char* kernel) {
  omni_activation_query named = query;
  named.kernel = kernel;
  omni_plan* plan = nullptr;
  EXPECT_EQ(omni_activation_select(&named, &plan), OMNI_OK) << omni_last_error();
  return OwnedPlan(plan);
}

// Operands between guards, NaN behind each row; the bits of y.
std::vector<uint32_t> run(const Case& c, const char* kernel, Flush flush = Flush::kBack, const omni_parallel* parallel = nullptr) {
  const omni_activation_query& q = c.query;
  const int64_t n = q.n, ld = n + c.extra, m = c.m;
  const bool snake = q.function == OMNI_ACTIVATION_SNAKE;
  const auto bytes = [&](uint16_t type) { return static_cast<size_t>((m - 1) * ld + n) * bytes_of_type(type); };
  GuardedBuffer x(bytes(q.x_type), flush, bytes_of_type(q.x_type), 0xFF), y(bytes(q.y_type), flush, bytes_of_type(q.y_type));
  GuardedBuffer a(static_cast<size_t>(n) * 4, flush, 4), b(static_cast<size_t>(n) * 4, flush, 4);
  for (int64_t i = 0; i < m * n; ++i) put(x.data(), q.x_type, i / n * ld + i % n, c.x[static_cast<size_t>(i)]);
  std::copy(c.a.begin(), c.a.end(), a.as<float>());
  std::copy(c.b.begin(), c.b.end(), b.as<float>());
  x.make_read_only(), a.make_read_only(), b.make_read_only();
  const OwnedPlan plan = make_plan(q, kernel);
  const omni_activation_args args = {
      sizeof args, c.m, x.data(), ld, snake ? a.as<float>() : nullptr, snake ? b.as<float>() : nullptr, y.data(), ld, parallel};
  EXPECT_EQ(omni_activation_run(plan.get(), &args), OMNI_OK) << omni_last_error();
  EXPECT_TRUE(y.intact()) << kernel;
  std::vector<uint32_t> bits;
  for (int64_t i = 0; i < m * n; ++i) bits.push_back(get_bits(y.data(), q.y_type, i / n * ld + i % n));
  for (int64_t r = 0; r + 1 < m; ++r) {
    for (int64_t i = n; i < ld; ++i) {
      EXPECT_EQ(get_bits(y.data(), q.y_type, r * ld + i), q.y_type == OMNI_DTYPE_F32 ? 0xA5A5A5A5U : 0xA5A5U) << "padding of y";
    }
  }
  return bits;
}

struct Types {
  uint16_t x, y;
};
constexpr Types kTypes[] = {{OMNI_DTYPE_BF16, OMNI_DTYPE_BF16},
                            {OMNI_DTYPE_BF16, OMNI_DTYPE_F32},
                            {OMNI_DTYPE_F32, OMNI_DTYPE_BF16},
                            {OMNI_DTYPE_F32, OMNI_DTYPE_F32}};

// One element in fp32, all of it in double but the product of SnakeBeta, which the contract rounds.
double exact_value(uint16_t function, double x, float a = 1, float b = 1) {
  switch (function) {
    case OMNI_ACTIVATION_RELU:
      return x > 0 ? x : 0;
    case OMNI_ACTIVATION_ELU:
      return x > 0 ? x : std::expm1(x);
    case OMNI_ACTIVATION_GELU:
      return 0.5 * x * std::erfc(-x / std::sqrt(2.0));
    case OMNI_ACTIVATION_SILU:
      return x / (1.0 + std::exp(-x));
    case OMNI_ACTIVATION_SIGMOID:
      return 1.0 / (1.0 + std::exp(-x));
    case OMNI_ACTIVATION_TANH:
      return std::tanh(x);
    case OMNI_ACTIVATION_EXP:
      return std::exp(x);
    default: {
      const auto t = static_cast<double>(static_cast<float>(x) * a);
#if defined(OMNI_HAVE_SLEEF)
      const double sine = Sleef_sin_u10(t);
#else
      const double sine = std::sin(t);
#endif
      return x + sine * sine * static_cast<double>(b);
    }
  }
}

double ulp_of(double value) {
  int exponent;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, std::max(exponent, -125) - 24);
}

// docs/elementwise.md, and half an ulp or none for what is exact.
double bound_of(uint16_t function, double x, double exact) {
  const double ulp = ulp_of(exact);
  switch (function) {
    case OMNI_ACTIVATION_RELU:
      return 0;
    case OMNI_ACTIVATION_ELU:
      return x > 0 ? 0 : ulp;
    case OMNI_ACTIVATION_GELU:
      return x < -3.18 ? 2e-8 : 4.2 * ulp;
    case OMNI_ACTIVATION_TANH:
      return 2.6 * ulp;
    case OMNI_ACTIVATION_EXP:
      return exact < 0x1p-126 ? exact : 0.9 * ulp;
    case OMNI_ACTIVATION_SILU:
    case OMNI_ACTIVATION_SIGMOID:
      return x < -87.3 ? std::fabs(exact) : 2.5 * ulp;
    default:
      return 0;
  }
}

class Activation : public KernelTest {};

TEST_P(Activation, EveryLengthHasTheBitsOfThePortableTier) {
  for (const uint16_t function : kFunctions) {
    for (const Types types : kTypes) {
      for (int64_t n = 1; n < 100; ++n) {
        Case c(function, types.x, types.y, n, 1 + static_cast<uint32_t>(n % 3));
        c.extra = n % 4;
        c.fill(static_cast<uint64_t>(n));
        ASSERT_EQ(run(c, kernel(), n % 2 == 0 ? Flush::kBack : Flush::kFront), run(c, kPortable)) << function << " " << n;
      }
    }
  }
}

// Every bf16, and as many fp32 values across all exponents, both signs, NaN and infinities.
TEST_P(Activation, EveryValueHasTheBitsOfThePortableTier) {
  constexpr int64_t n = 65536;
  for (const uint16_t function : kFunctions) {
    for (const Types types : {kTypes[0], kTypes[3]}) {
      Case c(function, types.x, types.y, n);
      for (int64_t i = 0; i < n; ++i) {
        const uint32_t low = types.x == OMNI_DTYPE_F32 ? static_cast<uint32_t>(i * 40503 % 65536) : 0;
        c.x[static_cast<size_t>(i)] = from_bits(static_cast<uint32_t>(i) << 16 | low);
        c.a[static_cast<size_t>(i)] = 0.25F * static_cast<float>(1 + i % 7), c.b[static_cast<size_t>(i)] = 0.3F;
      }
      ASSERT_EQ(run(c, kernel()), run(c, kPortable)) << function;
    }
  }
}

TEST_P(Activation, IsTheExactFunction) {
  std::vector<float> values;
  for (float x = -12.0F; x < 12.0F; x += 0.00037F) values.push_back(x);
  for (float x = -110.0F; x < 95.0F; x += 0.0173F) values.push_back(x);
  for (int exponent = -149; exponent < -3; ++exponent) {
    for (const float mantissa : {1.0F, 1.37F, 1.75F}) {
      values.push_back(std::ldexp(mantissa, exponent));
      values.push_back(-std::ldexp(mantissa, exponent));
    }
  }
  for (const uint16_t function : kFunctions) {
    if (function == OMNI_ACTIVATION_SNAKE) continue;
    Case c(function, OMNI_DTYPE_F32, OMNI_DTYPE_F32, static_cast<int64_t>(values.size()));
    c.x = values;
    const std::vector<uint32_t> y = run(c, kernel());
    double worst = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const auto x = static_cast<double>(values[i]);
      const double exact = exact_value(function, x), error = std::fabs(static_cast<double>(from_bits(y[i])) - exact);
      if (exact > 0x1.fffffep127) {
        ASSERT_EQ(y[i], 0x7F800000U) << x;
        continue;
      }
      worst = std::max(worst, error / ulp_of(exact));
      ASSERT_LE(error, bound_of(function, x, exact)) << function << " of " << values[i] << ", " << error / ulp_of(exact) << " ulp";
    }
    RecordProperty("worst_ulp_" + std::to_string(function), std::to_string(worst));
  }
}

// The square of the sine alone (x = t, a = 1, and what is left of y after x), with b large enough to hide x. Arguments are dense
// near 0, near the multiples of pi, where the reduction cancels, and spread up to 2^18.
TEST_P(Activation, SnakeHoldsItsSine) {
  std::vector<float> angles;
  std::mt19937_64 random(4);
  for (float t = -7.0F; t < 7.0F; t += 0.00091F) angles.push_back(t);
  for (int k = 1; k < 83443; k += 1 + k / 300) {
    const auto near = static_cast<float>(k * 3.141592653589793);
    for (const float t : {near, std::nextafterf(near, 0), std::nextafterf(near, 1e9F), near + 1.5F}) {
      angles.push_back(t);
      angles.push_back(-t);
    }
  }
  for (int i = 0; i < 20000; ++i) angles.push_back(std::ldexp(static_cast<float>(random() % 16777216), -6));
  const auto n = static_cast<int64_t>(angles.size());
  Case c(OMNI_ACTIVATION_SNAKE, OMNI_DTYPE_F32, OMNI_DTYPE_F32, n);
  c.x = angles;
  for (float& b : c.b) b = 0x1p60F;
  const std::vector<uint32_t> y = run(c, kernel());
  for (size_t i = 0; i < angles.size(); ++i) {
    const double exact = exact_value(OMNI_ACTIVATION_SNAKE, static_cast<double>(angles[i]), 1, 0x1p60F);
    const double error = std::fabs(static_cast<double>(from_bits(y[i])) - exact);
    // Two factors off by 2.2 ulp of 2^-23 of them at most, the square's and the sum's rounding.
    ASSERT_LE(error, (2 * 2.2 * 0x1p-23 + 2 * 0x1p-24) * std::fabs(exact)) << angles[i];
  }
}

// t = x * a rounded, then one fma.
TEST_P(Activation, SnakeIsTheContract) {
  Case c(OMNI_ACTIVATION_SNAKE, OMNI_DTYPE_F32, OMNI_DTYPE_F32, 3001, 2);
  c.fill(9);
  const std::vector<uint32_t> y = run(c, kernel());
  for (size_t i = 0; i < c.x.size(); ++i) {
    const float a = c.a[i % 3001], b = c.b[i % 3001];
    const double exact = exact_value(OMNI_ACTIVATION_SNAKE, static_cast<double>(c.x[i]), a, b);
    const double bound = 3 * 0x1p-23 * static_cast<double>(b) + 0.51 * ulp_of(exact);
    ASSERT_LE(std::fabs(static_cast<double>(from_bits(y[i])) - exact), bound) << c.x[i] << " " << a << " " << b;
  }
}

// Far beyond its range the sine is of no use, but a number between 0 and 1 when squared.
TEST_P(Activation, SnakeStaysFinite) {
  std::vector<float> x;
  for (int exponent = 18; exponent < 127; ++exponent) {
    for (const float mantissa : {1.0F, 1.3F, 1.9999F}) x.push_back(std::ldexp(mantissa, exponent));
  }
  Case c(OMNI_ACTIVATION_SNAKE, OMNI_DTYPE_F32, OMNI_DTYPE_F32, static_cast<int64_t>(x.size()));
  for (size_t i = 0; i < x.size(); ++i) c.x[i] = 1.0F, c.a[i] = x[i], c.b[i] = 2.0F;
  const std::vector<uint32_t> y = run(c, kernel());
  for (size_t i = 0; i < x.size(); ++i) {
    ASSERT_TRUE(from_bits(y[i]) >= 1.0F && from_bits(y[i]) <= 3.0F) << x[i];
    if (x[i] < 0x1p20F) {
      ASSERT_NEAR(static_cast<double>(from_bits(y[i])), exact_value(OMNI_ACTIVATION_SNAKE, 1, x[i], 2.0F), 5e-3) << x[i];
    }
  }
}

TEST_P(Activation, SpecialValues) {
  constexpr uint32_t kInfinity = 0x7F800000, kMinusZero = 0x80000000, kOne = 0x3F800000;
  struct Row {
    uint16_t function;
    uint32_t zero, minus_zero, infinity, minus_infinity, most, least;  // least: the largest negative float
  };
  const Row rows[] = {{OMNI_ACTIVATION_RELU, 0, 0, kInfinity, 0, 0x7F7FFFFF, 0},
                      {OMNI_ACTIVATION_ELU, 0, kMinusZero, kInfinity, kOne | kMinusZero, 0x7F7FFFFF, kOne | kMinusZero},
                      {OMNI_ACTIVATION_GELU, 0, kMinusZero, kInfinity, kF32NaN, 0x7F7FFFFF, kMinusZero},
                      {OMNI_ACTIVATION_SILU, 0, kMinusZero, kInfinity, kMinusZero, 0x7F7FFFFF, kMinusZero},
                      {OMNI_ACTIVATION_SIGMOID, 0x3F000000, 0x3F000000, kOne, 0, kOne, 0},
                      {OMNI_ACTIVATION_TANH, 0, kMinusZero, kOne, kOne | kMinusZero, kOne, kOne | kMinusZero},
                      {OMNI_ACTIVATION_EXP, kOne, kOne, kInfinity, 0, kInfinity, 0}};
  for (const Row& expected : rows) {
    Case c(expected.function, OMNI_DTYPE_F32, OMNI_DTYPE_F32, 8);
    c.x = {0.0F,
           -0.0F,
           from_bits(kInfinity),
           from_bits(0xFF800000),
           from_bits(0x7F7FFFFF),
           from_bits(0xFF7FFFFF),
           from_bits(0xFFC00123),
           from_bits(0x7F800001)};
    const std::vector<uint32_t> bits = {expected.zero, expected.minus_zero, expected.infinity, expected.minus_infinity,
                                        expected.most, expected.least,      kF32NaN,           kF32NaN};
    EXPECT_EQ(run(c, kernel()), bits) << expected.function;
  }
  Case c(OMNI_ACTIVATION_SNAKE, OMNI_DTYPE_F32, OMNI_DTYPE_F32, 8);
  c.x = {0.0F, -0.0F, from_bits(kInfinity), from_bits(0xFFC00123), 1.0F, 1.0F, 1.0F, 1e-40F};
  c.a[4] = from_bits(kF32NaN), c.b[5] = from_bits(kF32NaN), c.a[6] = 0.0F;
  const std::vector<uint32_t> y = run(c, kernel());
  // -0 + (+0): the sum of zeros of both signs.
  EXPECT_EQ(y, (std::vector<uint32_t>{0, 0, kF32NaN, kF32NaN, kF32NaN, kF32NaN, kOne, std::bit_cast<uint32_t>(1e-40F)}));
}

TEST_P(Activation, BatchesAndThreadsChangeNothing) {
  std::mt19937_64 random(5);
  for (const uint16_t function : kFunctions) {
    const int64_t n = 1 + static_cast<int64_t>(random() % 2500);
    Case c(function, OMNI_DTYPE_F32, OMNI_DTYPE_F32, n, 2 + static_cast<uint32_t>(random() % 30));
    c.extra = function % 2 == 0 ? 0 : static_cast<int64_t>(random() % 50);
    c.fill(random());
    const std::vector<uint32_t> whole = run(c, kernel());
    for (const uint32_t threads : {1U, 3U}) {
      const omni_parallel parallel = threads == 1 ? backwards(4) : fresh_threads(&threads);
      ASSERT_EQ(run(c, kernel(), Flush::kFront, &parallel), whole) << function;
    }
    const size_t r = random() % c.m, width = static_cast<size_t>(n);
    Case one(function, OMNI_DTYPE_F32, OMNI_DTYPE_F32, n);
    one.x.assign(c.x.begin() + static_cast<int64_t>(r * width), c.x.begin() + static_cast<int64_t>((r + 1) * width));
    one.a = c.a, one.b = c.b;
    const std::vector<uint32_t> alone = run(one, kernel());
    ASSERT_TRUE(std::equal(alone.begin(), alone.end(), whole.begin() + static_cast<int64_t>(r * width))) << function;
  }
}

// y may be x.
TEST_P(Activation, InPlace) {
  for (const uint16_t function : kFunctions) {
    Case c(function, OMNI_DTYPE_F32, OMNI_DTYPE_F32, 77, 3);
    c.fill(function);
    const std::vector<uint32_t> expected = run(c, kernel());
    const OwnedPlan plan = make_plan(c.query, kernel());
    const omni_activation_args args = {sizeof args, 3, c.x.data(), 77, c.a.data(), c.b.data(), c.x.data(), 77, nullptr};
    ASSERT_EQ(omni_activation_run(plan.get(), &args), OMNI_OK);
    for (size_t i = 0; i < c.x.size(); ++i) ASSERT_EQ(std::bit_cast<uint32_t>(c.x[i]), expected[i]) << function << " " << i;
  }
}

TEST_P(Activation, KeepsTheCallersState) {
  for (const uint16_t function : kFunctions) {
    for (const Types types : kTypes) {
      float x[50] = {}, a[50] = {}, b[50] = {}, y[50];
      const ActivationRow argument = {x, a, b, y, 50};
      EXPECT_EQ(AbiTrampoline::call(row().as<Op::kActivation>().row_for(function, types.x, types.y), &argument), "");
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Kernels, Activation, testing::ValuesIn(kernels_of(Op::kActivation)), kernel_test_name);

TEST(ActivationArguments, BadQueriesAreRefused) {
  const omni_activation_query query = Case(OMNI_ACTIVATION_SNAKE, OMNI_DTYPE_BF16, OMNI_DTYPE_BF16, 64).query;
  omni_plan* made = nullptr;
  const auto select = [&](const auto& change) {
    omni_activation_query changed = query;
    change(changed);
    const omni_status status = omni_activation_select(&changed, &made);
    EXPECT_NE(std::string(omni_last_error()), "");
    return status;
  };
  EXPECT_EQ(omni_activation_select(nullptr, &made), OMNI_ERR_NULL);
  EXPECT_EQ(omni_activation_select(&query, nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(select([](auto& q) { q.size = 4; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(select([](auto& q) { q.function = 0; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.function = OMNI_ACTIVATION_SNAKE + 1; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.x_type = OMNI_DTYPE_F16; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.y_type = OMNI_DTYPE_S8; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.reserved = 1; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.n = -1; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.kernel = "activation"; }), OMNI_ERR_UNKNOWN_NAME);
  EXPECT_EQ(select([](auto& q) { q.kernel = "geglu_portable"; }), OMNI_ERR_NO_KERNEL);
  EXPECT_EQ(select([](auto& q) { q.kernel = "activation_avx2", q.max_isa = "portable"; }), OMNI_ERR_NO_KERNEL);
  EXPECT_EQ(made, nullptr);
}

TEST(ActivationArguments, BadRunsTouchNothing) {
  const OwnedPlan snake = make_plan(Case(OMNI_ACTIVATION_SNAKE, OMNI_DTYPE_BF16, OMNI_DTYPE_BF16, 64).query, nullptr);
  const OwnedPlan relu = make_plan(Case(OMNI_ACTIVATION_RELU, OMNI_DTYPE_BF16, OMNI_DTYPE_BF16, 64).query, nullptr);
  std::vector<uint16_t> x(129, 0x3F80), y(129, 0x1234);
  std::vector<float> columns(65, 1.0F);
  const omni_activation_args good = {sizeof good, 2, x.data(), 64, columns.data(), columns.data(), y.data(), 64, nullptr};
  const auto run_changed = [&](const auto& change) {
    omni_activation_args args = good;
    change(args);
    const omni_status status = omni_activation_run(snake.get(), &args);
    EXPECT_TRUE(status == OMNI_OK || omni_last_error()[0] != '\0');
    EXPECT_EQ(y, std::vector<uint16_t>(129, 0x1234));
    return status;
  };
  EXPECT_EQ(omni_activation_run(nullptr, &good), OMNI_ERR_NULL);
  EXPECT_EQ(omni_activation_run(snake.get(), nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& r) { r.size = 8; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(run_changed([](auto& r) { r.x = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& r) { r.y = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& r) { r.a = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& r) { r.b = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& r) { r.ldx = 63; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(run_changed([](auto& r) { r.ldy = 63; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(run_changed([](auto& r) { r.ldy = INT64_MAX / 2; }), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(run_changed([](auto& r) { r.x = static_cast<const char*>(r.x) + 1; }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([](auto& r) { r.y = static_cast<char*>(r.y) + 1; }), OMNI_ERR_ALIGNMENT);
  const auto odd = [](const float* p) { return reinterpret_cast<const float*>(reinterpret_cast<uintptr_t>(p) + 2); };
  EXPECT_EQ(run_changed([&](auto& r) { r.a = odd(r.a); }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([&](auto& r) { r.b = odd(r.b); }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([](auto& r) { r.m = 0, r.x = nullptr, r.y = nullptr; }), OMNI_OK);
  omni_activation_args without = good;
  without.a = without.b = nullptr;  // only SnakeBeta looks at them
  EXPECT_EQ(omni_activation_run(relu.get(), &without), OMNI_OK);
  EXPECT_EQ(y[127], 0x3F80);
  EXPECT_EQ(y[128], 0x1234);
  const omni_quantize_query other = {sizeof other, OMNI_DTYPE_BF16, 0, 64, nullptr, nullptr};
  omni_plan* quantize = nullptr;
  ASSERT_EQ(omni_quantize_select(&other, &quantize), OMNI_OK);
  EXPECT_EQ(omni_activation_run(OwnedPlan(quantize).get(), &good), OMNI_ERR_TYPE);
}

}  // namespace
}  // namespace okl::test
