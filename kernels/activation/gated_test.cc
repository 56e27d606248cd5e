// SPDX-License-Identifier: Apache-2.0
// GEGLU and SwiGLU: the portable tier against the exact function in double precision, every other tier against the portable one,
// bit for bit.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "kernels/activation/gated_kernel.h"
#include "tests/support/abi_check.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/row_kernels.h"
#include "tests/support/threads.h"

namespace okl::test {
namespace {

double exact_gelu(double x) { return 0.5 * x * std::erfc(-x / std::sqrt(2.0)); }
double exact_silu(double x) { return x / (1.0 + std::exp(-x)); }

// What the two operations differ in.
struct Geglu {
  using Query = omni_geglu_query;
  using Args = omni_geglu_args;
  static constexpr Op kOp = Op::kGeglu;
  static constexpr auto select = omni_geglu_select;
  static constexpr auto run = omni_geglu_run;
};
struct Swiglu {
  using Query = omni_swiglu_query;
  using Args = omni_swiglu_args;
  static constexpr Op kOp = Op::kSwiglu;
  static constexpr auto select = omni_swiglu_select;
  static constexpr auto run = omni_swiglu_run;
};

// call(Geglu or Swiglu) for the operation that the kernel belongs to.
template <typename Call>
auto with_op(const std::string& kernel, const Call& call) {
  return kernel.starts_with("geglu") ? call(Geglu{}) : call(Swiglu{});
}

OwnedPlan make_plan(uint16_t x_type, uint16_t y_type, int64_t n, const std::string& kernel) {
  return with_op(kernel, [&](auto op) {
    const typename decltype(op)::Query query = {sizeof query, x_type, y_type, n, kernel.c_str(), nullptr};
    omni_plan* plan = nullptr;
    EXPECT_EQ(op.select(&query, &plan), OMNI_OK) << omni_last_error();
    return OwnedPlan(plan);
  });
}
omni_status run_plan(const std::string& kernel, const OwnedPlan& plan, uint32_t m, const void* gate_up, int64_t ld, void* y,
                     int64_t ldy, const omni_parallel* parallel) {
  return with_op(kernel, [&](auto op) {
    const typename decltype(op)::Args args = {sizeof args, m, gate_up, ld, y, ldy, parallel};
    return op.run(plan.get(), &args);
  });
}

// Rows of 2n values between guards, NaN behind them; the bits of y.
std::vector<uint32_t> run(const std::string& kernel, uint16_t x_type, uint16_t y_type, int64_t n, uint32_t m,
                          const std::vector<float>& gate_up, int64_t extra = 0, Flush flush = Flush::kBack,
                          const omni_parallel* parallel = nullptr) {
  const int64_t ld = 2 * n + extra, ldy = n + extra;
  GuardedBuffer x(static_cast<size_t>((m - 1) * ld + 2 * n) * bytes_of_type(x_type), flush, bytes_of_type(x_type), 0xFF);
  GuardedBuffer y(static_cast<size_t>((m - 1) * ldy + n) * bytes_of_type(y_type), flush, bytes_of_type(y_type));
  for (int64_t i = 0; i < m * 2 * n; ++i) put(x.data(), x_type, i / (2 * n) * ld + i % (2 * n), gate_up[static_cast<size_t>(i)]);
  x.make_read_only();
  const OwnedPlan plan = make_plan(x_type, y_type, n, kernel);
  EXPECT_EQ(run_plan(kernel, plan, m, x.data(), ld, y.data(), ldy, parallel), OMNI_OK) << omni_last_error();
  EXPECT_TRUE(y.intact()) << kernel;
  std::vector<uint32_t> bits;
  for (int64_t i = 0; i < m * n; ++i) bits.push_back(get_bits(y.data(), y_type, i / n * ldy + i % n));
  for (int64_t r = 0; r + 1 < m; ++r) {
    for (int64_t i = n; i < ldy; ++i)
      EXPECT_EQ(get_bits(y.data(), y_type, r * ldy + i), y_type == OMNI_DTYPE_F32 ? 0xA5A5A5A5U : 0xA5A5U);
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

class Gated : public KernelTest {
 protected:
  bool geglu() const { return row().op == Op::kGeglu; }
  const char* portable() const { return geglu() ? "geglu_portable" : "swiglu_portable"; }
};

TEST_P(Gated, EveryLengthHasTheBitsOfThePortableTier) {
  std::mt19937_64 random(3);
  for (const Types types : kTypes) {
    for (int64_t n = 1; n < 140; ++n) {
      std::vector<float> gate_up(static_cast<size_t>(2 * n));
      for (float& value : gate_up) value = random_value(random, -12, 3);
      const Flush flush = n % 2 == 0 ? Flush::kBack : Flush::kFront;
      ASSERT_EQ(run(kernel(), types.x, types.y, n, 1, gate_up, 0, flush), run(portable(), types.x, types.y, n, 1, gate_up)) << n;
    }
  }
}

// Every bf16 gate, and as many fp32 gates across all exponents, both signs, NaN and infinities.
TEST_P(Gated, EveryGateHasTheBitsOfThePortableTier) {
  constexpr int64_t n = 65536;
  std::vector<float> gate_up(2 * n);
  for (int64_t i = 0; i < n; ++i) {
    gate_up[static_cast<size_t>(i)] = from_bits(static_cast<uint32_t>(i) << 16);
    gate_up[static_cast<size_t>(n + i)] = i % 3 == 0 ? 1.0F : -0.37F;
  }
  ASSERT_EQ(run(kernel(), OMNI_DTYPE_BF16, OMNI_DTYPE_BF16, n, 1, gate_up),
            run(portable(), OMNI_DTYPE_BF16, OMNI_DTYPE_BF16, n, 1, gate_up));
  for (int64_t i = 0; i < n; ++i) {
    gate_up[static_cast<size_t>(i)] = from_bits(static_cast<uint32_t>(i) << 16 | static_cast<uint32_t>(i * 40503 % 65536));
  }
  ASSERT_EQ(run(kernel(), OMNI_DTYPE_F32, OMNI_DTYPE_F32, n, 1, gate_up),
            run(portable(), OMNI_DTYPE_F32, OMNI_DTYPE_F32, n, 1, gate_up));
  ASSERT_EQ(run(kernel(), OMNI_DTYPE_F32, OMNI_DTYPE_BF16, n, 1, gate_up),
            run(portable(), OMNI_DTYPE_F32, OMNI_DTYPE_BF16, n, 1, gate_up));
}

// Against the function itself: a few ulp where it is not tiny, and never more than PyTorch's cancellation would allow.
TEST_P(Gated, IsTheExactFunction) {
  std::vector<float> gates;
  for (float x = -12.0F; x < 12.0F; x += 0.00037F) gates.push_back(x);
  for (int exponent = -126; exponent < -3; ++exponent) {
    gates.push_back(std::ldexp(1.3F, exponent));
    gates.push_back(-std::ldexp(1.7F, exponent));
  }
  const auto n = static_cast<int64_t>(gates.size());
  std::vector<float> gate_up = gates;
  gate_up.resize(static_cast<size_t>(2 * n), 1.0F);
  const std::vector<uint32_t> y = run(kernel(), OMNI_DTYPE_F32, OMNI_DTYPE_F32, n, 1, gate_up);
  for (size_t i = 0; i < gates.size(); ++i) {
    const double gate = static_cast<double>(gates[i]), expected = geglu() ? exact_gelu(gate) : exact_silu(gate);
    const double error = std::fabs(static_cast<double>(from_bits(y[i])) - expected);
    if (geglu() && gates[i] < -3.18F) {
      ASSERT_LE(error, 2e-8) << gates[i];
    } else {
      int exponent;
      std::frexp(expected, &exponent);
      ASSERT_LE(error, std::ldexp(geglu() ? 4.2 : 2.5, std::max(exponent, -125) - 24)) << gates[i];
    }
  }
}

TEST_P(Gated, SpecialValues) {
  const float infinity = from_bits(0x7F800000), nan = from_bits(0xFFC00123);
  const std::vector<float> gates = {0.0F, -0.0F, infinity, -infinity, nan, 1e38F, -1e38F, -7.0F, 1.0F, 1.0F};
  const std::vector<float> ups = {1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F, 1.0F, nan, infinity};
  std::vector<float> gate_up = gates;
  gate_up.insert(gate_up.end(), ups.begin(), ups.end());
  const std::vector<uint32_t> y = run(kernel(), OMNI_DTYPE_F32, OMNI_DTYPE_F32, 10, 1, gate_up);
  EXPECT_EQ(y[0], 0U);
  EXPECT_EQ(y[1], 0x80000000U);
  EXPECT_EQ(y[2], 0x7F800000U);
  EXPECT_EQ(y[3], geglu() ? kF32NaN : 0x80000000U);  // GELU: -Inf * 0, as in PyTorch
  EXPECT_EQ(y[4], kF32NaN);
  EXPECT_EQ(from_bits(y[5]), 1e38F);
  EXPECT_EQ(y[6], 0x80000000U);
  if (geglu()) {
    EXPECT_EQ(y[7], 0x80000000U);
  } else {
    EXPECT_NEAR(from_bits(y[7]), -6.377e-3F, 1e-6F);
  }
  EXPECT_EQ(y[8], kF32NaN);
  EXPECT_EQ(y[9], 0x7F800000U);
}

TEST_P(Gated, BatchesAndThreadsChangeNothing) {
  std::mt19937_64 random(5);
  for (int round = 0; round < 4; ++round) {
    const uint32_t m = 2 + static_cast<uint32_t>(random() % 30);
    const int64_t n = 1 + static_cast<int64_t>(random() % 2500), extra = static_cast<int64_t>(random() % 50);
    std::vector<float> gate_up(static_cast<size_t>(2 * n * m));
    for (float& value : gate_up) value = random_value(random, -4, 2);
    const std::vector<uint32_t> whole = run(kernel(), OMNI_DTYPE_BF16, OMNI_DTYPE_BF16, n, m, gate_up, extra);
    for (const uint32_t threads : {1U, 3U}) {
      const omni_parallel parallel = threads == 1 ? backwards(4) : fresh_threads(&threads);
      ASSERT_EQ(run(kernel(), OMNI_DTYPE_BF16, OMNI_DTYPE_BF16, n, m, gate_up, 0, Flush::kFront, &parallel), whole);
    }
    const uint32_t r = static_cast<uint32_t>(random() % m);
    const std::vector<float> one(gate_up.begin() + 2 * n * r, gate_up.begin() + 2 * n * (r + 1));
    const std::vector<uint32_t> alone = run(kernel(), OMNI_DTYPE_BF16, OMNI_DTYPE_BF16, n, 1, one);
    ASSERT_TRUE(std::equal(alone.begin(), alone.end(), whole.begin() + n * r));
  }
}

// y may be gate_up.
TEST_P(Gated, InPlace) {
  constexpr int64_t n = 77;
  std::mt19937_64 random(9);
  std::vector<float> gate_up(2 * n * 2);
  for (float& value : gate_up) value = random_value(random, -4, 2);
  const std::vector<uint32_t> expected = run(kernel(), OMNI_DTYPE_F32, OMNI_DTYPE_F32, n, 2, gate_up);
  const OwnedPlan plan = make_plan(OMNI_DTYPE_F32, OMNI_DTYPE_F32, n, kernel());
  ASSERT_EQ(run_plan(kernel(), plan, 2, gate_up.data(), 2 * n, gate_up.data(), 2 * n, nullptr), OMNI_OK);
  for (int64_t i = 0; i < 2 * n; ++i) {
    ASSERT_EQ(std::bit_cast<uint32_t>(gate_up[static_cast<size_t>(i / n * 2 * n + i % n)]), expected[static_cast<size_t>(i)]);
  }
}

TEST_P(Gated, KeepsTheCallersState) {
  for (const Types types : kTypes) {
    float gate[50] = {}, up[50] = {}, y[50];
    const GatedRow argument = {gate, up, y, 50};
    const GatedKernel& tier = geglu() ? row().as<Op::kGeglu>() : row().as<Op::kSwiglu>();
    EXPECT_EQ(AbiTrampoline::call(tier.row_for(types.x, types.y), &argument), "");
  }
}

INSTANTIATE_TEST_SUITE_P(Geglu, Gated, testing::ValuesIn(kernels_of(Op::kGeglu)), kernel_test_name);
INSTANTIATE_TEST_SUITE_P(Swiglu, Gated, testing::ValuesIn(kernels_of(Op::kSwiglu)), kernel_test_name);

template <typename OpType>
class GatedArguments : public testing::Test {};
using Ops = testing::Types<Geglu, Swiglu>;
TYPED_TEST_SUITE(GatedArguments, Ops);

TYPED_TEST(GatedArguments, BadOnesAreRefusedAndTouchNothing) {
  const std::string word(op_name(TypeParam::kOp)), avx2 = word + "_avx2";
  const typename TypeParam::Query query = {sizeof query, OMNI_DTYPE_BF16, OMNI_DTYPE_BF16, 64, nullptr, nullptr};
  omni_plan* made = nullptr;
  const auto select = [&](const auto& change) {
    auto changed = query;
    change(changed);
    const omni_status status = TypeParam::select(&changed, &made);
    EXPECT_NE(std::string(omni_last_error()), "");
    return status;
  };
  EXPECT_EQ(TypeParam::select(nullptr, &made), OMNI_ERR_NULL);
  EXPECT_EQ(TypeParam::select(&query, nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(select([](auto& q) { q.size = 4; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(select([](auto& q) { q.x_type = OMNI_DTYPE_F16; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.y_type = OMNI_DTYPE_S8; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.n = -1; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.n = INT64_MAX; }), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(select([&](auto& q) { q.kernel = word.c_str(); }), OMNI_ERR_UNKNOWN_NAME);
  EXPECT_EQ(select([&](auto& q) { q.kernel = avx2.c_str(), q.max_isa = "portable"; }), OMNI_ERR_NO_KERNEL);
  EXPECT_EQ(made, nullptr);

  const OwnedPlan plan = make_plan(OMNI_DTYPE_BF16, OMNI_DTYPE_BF16, 64, word + "_portable");
  std::vector<uint16_t> x(257, 0x3F80), y(129, 0x1234);
  const typename TypeParam::Args good = {sizeof good, 2, x.data(), 128, y.data(), 64, nullptr};
  const auto run_changed = [&](const auto& change) {
    auto args = good;
    change(args);
    const omni_status status = TypeParam::run(plan.get(), &args);
    EXPECT_TRUE(status == OMNI_OK || omni_last_error()[0] != '\0');
    EXPECT_EQ(y, std::vector<uint16_t>(129, 0x1234));
    return status;
  };
  const OwnedPlan other = make_plan(OMNI_DTYPE_BF16, OMNI_DTYPE_BF16, 64, word == "geglu" ? "swiglu_portable" : "geglu_portable");
  EXPECT_EQ(TypeParam::run(other.get(), &good), OMNI_ERR_TYPE);
  EXPECT_EQ(TypeParam::run(nullptr, &good), OMNI_ERR_NULL);
  EXPECT_EQ(TypeParam::run(plan.get(), nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.size = 8; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(run_changed([](auto& a) { a.gate_up = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.y = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.ld_gate_up = 127; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(run_changed([](auto& a) { a.ldy = 63; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(run_changed([](auto& a) { a.ldy = INT64_MAX / 2; }), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(run_changed([](auto& a) { a.gate_up = static_cast<const char*>(a.gate_up) + 1; }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([](auto& a) { a.y = static_cast<char*>(a.y) + 1; }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([](auto& a) { a.m = 0, a.gate_up = nullptr, a.y = nullptr; }), OMNI_OK);
}

}  // namespace
}  // namespace okl::test
