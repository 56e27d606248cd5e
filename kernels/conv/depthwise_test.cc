// SPDX-License-Identifier: Apache-2.0
// Every row of depthwise convolution against the contract, bit for bit.
#include <algorithm>
#include <functional>

#include "kernels/conv/depthwise_kernel.h"
#include "tests/support/abi_check.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/row_kernels.h"
#include "tests/support/threads.h"

namespace okl::test {
namespace {

struct Case {
  omni_depthwise_query query = {sizeof query, OMNI_DTYPE_F32, OMNI_DTYPE_F32, 7, 1, 70, nullptr, nullptr};
  uint32_t m = 9;
  bool bias = true;
  int64_t x_padding = 0, y_padding = 0;
  Flush flush = Flush::kBack;

  int64_t ldx() const { return query.n + x_padding; }
  int64_t ldy() const { return query.n + y_padding; }
  int64_t input_rows() const { return int64_t{m} + int64_t{query.taps - 1} * query.dilation; }
};

struct Operands {
  GuardedBuffer x, weights, bias, y;

  Operands(const Case& c, uint64_t seed)
      : x(static_cast<size_t>(c.input_rows() * c.ldx() - c.x_padding) * bytes_of_type(c.query.x_type), c.flush,
          bytes_of_type(c.query.x_type), 0xFF),
        weights(static_cast<size_t>(c.query.taps * c.query.n) * 4, c.flush, 4),
        bias(static_cast<size_t>(c.query.n) * 4, c.flush, 4),
        y(static_cast<size_t>(c.m * c.ldy()) * bytes_of_type(c.query.y_type), c.flush, bytes_of_type(c.query.y_type), 0x5A) {
    std::mt19937_64 random(seed);
    for (int64_t row = 0; row < c.input_rows(); ++row) {
      for (int64_t i = 0; i < c.query.n; ++i) put(x.data(), c.query.x_type, row * c.ldx() + i, random_value(random));
    }
    for (float& value : weights.span<float>()) value = random_value(random);
    for (float& value : bias.span<float>()) value = random_value(random);
  }
};

uint32_t reference(const Case& c, const Operands& operands, int64_t row, int64_t channel) {
  float sum = 0.0F;
  for (int64_t tap = 0; tap < c.query.taps; ++tap) {
    const float x = get(operands.x.data(), c.query.x_type, (row + tap * c.query.dilation) * c.ldx() + channel);
    sum = std::fma(operands.weights.as<float>()[tap * c.query.n + channel], x, sum);
  }
  if (c.bias) sum = sum + operands.bias.as<float>()[channel];
  if (c.query.y_type == OMNI_DTYPE_BF16) return bf16_round_group(sum);
  return std::isnan(sum) ? 0x7FC00000 : std::bit_cast<uint32_t>(sum);
}

OwnedPlan make_plan(const Case& c, const char* kernel) {
  omni_depthwise_query query = c.query;
  query.kernel = kernel;
  omni_plan* plan = nullptr;
  EXPECT_EQ(omni_depthwise_select(&query, &plan), OMNI_OK) << omni_last_error();
  return OwnedPlan(plan);
}

omni_depthwise_args args_of(const Case& c, Operands& operands, const omni_parallel* parallel) {
  omni_depthwise_args args = {};
  args.size = sizeof args;
  args.m = c.m;
  args.x = operands.x.data(), args.ldx = c.ldx();
  args.weights = operands.weights.as<float>();
  args.bias = c.bias ? operands.bias.as<float>() : nullptr;
  args.y = operands.y.data(), args.ldy = c.ldy();
  args.parallel = parallel;
  return args;
}

std::string difference(const Case& c, const Operands& operands) {
  for (int64_t row = 0; row < c.m; ++row) {
    for (int64_t i = 0; i < c.ldy(); ++i) {
      const uint32_t actual = get_bits(operands.y.data(), c.query.y_type, row * c.ldy() + i);
      const uint32_t canary = c.query.y_type == OMNI_DTYPE_BF16 ? 0x5A5A : 0x5A5A5A5A;
      if (actual == (i < c.query.n ? reference(c, operands, row, i) : canary)) continue;
      return "row " + std::to_string(row) + " channel " + std::to_string(i) + " n " + std::to_string(c.query.n) + " taps " +
             std::to_string(c.query.taps);
    }
  }
  return operands.y.intact() ? "" : "memory around y was written";
}

class Depthwise : public KernelTest {
 protected:
  void check(const Case& c, uint64_t seed, const omni_parallel* parallel = nullptr) {
    Operands operands(c, seed);
    const OwnedPlan plan = make_plan(c, kernel());
    const omni_depthwise_args args = args_of(c, operands, parallel);
    ASSERT_EQ(omni_depthwise_run(plan.get(), &args), OMNI_OK) << omni_last_error();
    ASSERT_EQ(difference(c, operands), "") << kernel();
  }
};

TEST_P(Depthwise, EveryWidthTypeAndTap) {
  for (const uint16_t x : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    for (const uint16_t y : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
      for (const int64_t n : {1, 3, 15, 16, 17, 31, 32, 33, 64, 100, 130}) {
        for (const uint32_t taps : {1U, 2U, 7U, 64U}) {
          Case c;
          c.query.x_type = x, c.query.y_type = y, c.query.n = n, c.query.taps = taps;
          c.query.dilation = taps == 7 ? 3 : 1;
          c.bias = n % 2 == 0;
          c.m = 1 + static_cast<uint32_t>(n % 11);
          c.x_padding = n % 5, c.y_padding = n % 3;
          c.flush = n % 3 == 0 ? Flush::kFront : Flush::kBack;
          check(c, static_cast<uint64_t>(n) + taps);
          if (HasFatalFailure()) return;
        }
      }
    }
  }
}

TEST_P(Depthwise, ThreadsAndCutsNeverShow) {
  Case c;
  c.query.n = 1030;
  c.m = 75;
  for (const uint32_t threads : {1U, 2U, 5U}) {
    const omni_parallel parallel = fresh_threads(&threads);
    check(c, 4, &parallel);
  }
  Operands operands(c, 5);
  const OwnedPlan plan = make_plan(c, kernel());
  for (uint32_t first = 0; first < c.m; first += 10) {
    omni_depthwise_args args = args_of(c, operands, nullptr);
    args.m = std::min(10U, c.m - first);
    args.x = operands.x.as<float>() + first * c.ldx();
    args.y = operands.y.as<float>() + first * c.ldy();
    ASSERT_EQ(omni_depthwise_run(plan.get(), &args), OMNI_OK);
  }
  EXPECT_EQ(difference(c, operands), "");
}

TEST_P(Depthwise, EdgeValues) {
  for (const uint16_t y : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    Case c;
    c.query.y_type = y;
    c.bias = false;
    Operands operands(c, 6);
    const float edges[] = {-0.0F, from_bits(0x7F800000), from_bits(0xFF800000), from_bits(0xFFC12345), from_bits(1), 3e38F, -3e38F};
    for (int64_t i = 0; i < 7; ++i) operands.x.as<float>()[i * c.ldx() + i * 3] = edges[i];
    for (int64_t tap = 0; tap < 7; ++tap) operands.weights.as<float>()[tap * 70 + 40] = -0.0F;  // a sum of -0 products is +0
    const OwnedPlan plan = make_plan(c, kernel());
    const omni_depthwise_args args = args_of(c, operands, nullptr);
    ASSERT_EQ(omni_depthwise_run(plan.get(), &args), OMNI_OK);
    EXPECT_EQ(difference(c, operands), "");
  }
}

TEST_P(Depthwise, KeepsTheCallersState) {
  float x[7 * 40] = {}, weights[7 * 40] = {}, y[40];
  const DepthwiseRows rows = {x, 40, 40, weights, nullptr, y, 40, 1, 7, 40};
  const auto run = row().as<Op::kDepthwise>().steps({OMNI_DTYPE_F32, OMNI_DTYPE_F32});
  EXPECT_EQ(AbiTrampoline::call(run, &rows), "");
}

INSTANTIATE_TEST_SUITE_P(Kernels, Depthwise, testing::ValuesIn(kernels_of(Op::kDepthwise)), kernel_test_name);

TEST(DepthwiseArguments, BadQueriesAndRunsAreRefused) {
  Case c;
  omni_plan* made = nullptr;
  const auto select = [&](const auto& change) {
    omni_depthwise_query query = c.query;
    change(query);
    const omni_status status = omni_depthwise_select(&query, &made);
    EXPECT_NE(std::string(omni_last_error()), "");
    return status;
  };
  EXPECT_EQ(omni_depthwise_select(nullptr, &made), OMNI_ERR_NULL);
  EXPECT_EQ(select([](auto& q) { q.size = 4; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(select([](auto& q) { q.x_type = OMNI_DTYPE_S8; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.y_type = OMNI_DTYPE_NONE; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.taps = 0; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.taps = 65; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.dilation = 0; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.n = 0; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.n = INT64_MAX / 8; }), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(select([](auto& q) { q.kernel = "depthwise"; }), OMNI_ERR_UNKNOWN_NAME);
  EXPECT_EQ(select([](auto& q) { q.kernel = "quantize_portable"; }), OMNI_ERR_NO_KERNEL);
  EXPECT_EQ(made, nullptr);
  Operands operands(c, 1);
  const OwnedPlan plan = make_plan(c, nullptr);
  const auto run = [&](const auto& change) {
    omni_depthwise_args args = args_of(c, operands, nullptr);
    change(args);
    const omni_status status = omni_depthwise_run(plan.get(), &args);
    for (const float value : operands.y.span<float>()) EXPECT_TRUE(same_bits(value, from_bits(0x5A5A5A5A)));
    return status;
  };
  EXPECT_EQ(omni_depthwise_run(plan.get(), nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(run([](auto& a) { a.size = 8; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(run([](auto& a) { a.x = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run([](auto& a) { a.weights = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run([](auto& a) { a.y = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run([](auto& a) { a.ldx = 69; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(run([](auto& a) { a.ldy = 69; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(run([](auto& a) { a.ldx = INT64_MAX / 4; }), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(run([](auto& a) { a.bias = reinterpret_cast<const float*>(reinterpret_cast<uintptr_t>(a.bias) + 1); }),
            OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run([](auto& a) { a.m = 0, a.x = a.y = nullptr; }), OMNI_OK);
}

}  // namespace
}  // namespace okl::test
