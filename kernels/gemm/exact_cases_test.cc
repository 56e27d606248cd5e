// SPDX-License-Identifier: Apache-2.0
// Class exact at its edges: the largest sums, -128, rows of zeros, rows with NaN, tiny and huge scales, and what it refuses.
#include <algorithm>
#include <cstring>

#include "kernels/cpu/machine.h"
#include "kernels/dispatch/kernel.h"
#include "tests/support/exact_case.h"
#include "tests/support/linear_case.h"

namespace okl::test {
namespace {

class ExactEdge : public ::testing::TestWithParam<const KernelRow*> {
 protected:
  void SetUp() override {
    const IsaMask missing = row().required & ~hardware_isa();
    if (missing != 0) GTEST_SKIP() << "not run: this processor lacks " << isa_to_text(missing);
  }
  const KernelRow& row() const { return *GetParam(); }
  const char* name() const { return row().name.data(); }
  bool w4() const { return row().weights == OMNI_FORMAT_W4S; }
  std::vector<uint32_t> row_counts() const {
    return row().op == Op::kGemv ? std::vector<uint32_t>{1} : std::vector<uint32_t>{1, 3, 20};
  }
  ExactShape base() const {
    ExactShape shape;
    shape.weights = row().weights;
    return shape;
  }
  void check(ExactCase& problem) {
    const omni_parallel serial = serial_parallel();
    expect_exact(problem, problem.expected(), name(), &serial);
  }
  void check_all_equal(ExactCase& problem, float value) {
    const omni_parallel serial = serial_parallel();
    const size_t outputs = problem.shape.m * static_cast<size_t>(problem.shape.n);
    expect_exact(problem, std::vector<uint32_t>(outputs, std::bit_cast<uint32_t>(value)), name(), &serial);
  }
  // Scales 1, given codes in x and one weight everywhere.
  static void fill(ExactCase& problem, int x, int weight) {
    const ExactShape& shape = problem.shape;
    std::fill(problem.weights.begin(), problem.weights.end(), weight);
    problem.pack();
    for (int64_t g = 0; g < shape.groups(); ++g) {
      for (int64_t c = 0; c < shape.n; ++c) problem.set_scale(g, c, 1.0F);
    }
    for (uint32_t m = 0; m < shape.m; ++m) {
      problem.x_scales.as<float>()[m] = 1.0F;
      for (int64_t k = 0; k < shape.k; ++k) problem.set_input(m, k, static_cast<float>(x));
    }
  }
};

std::vector<const KernelRow*> exact_rows() {
  std::vector<const KernelRow*> rows;
  for (const KernelRow& row : registry()) {
    if (row.numerics == Numerics::kExact) rows.push_back(&row);
  }
  return rows;
}
INSTANTIATE_TEST_SUITE_P(Registry, ExactEdge, ::testing::ValuesIn(exact_rows()),
                         [](const auto& info) { return std::string(info.param->name); });

// A dot product that saturates at 16 bits gives 32767 for two products of 255 * 127.
TEST_P(ExactEdge, SumsThatSaturateSixteenBits) {
  for (const uint32_t m : row_counts()) {
    ExactShape shape = base();
    shape.k = 4096;
    shape.group = 4096;
    shape.m = m;
    ExactCase problem(shape, 1);
    fill(problem, 127, w4() ? 15 : 7);
    check_all_equal(problem, 3641344.0F);
    fill(problem, 127, w4() ? 0 : -8);
    check_all_equal(problem, -4161536.0F);
    if (w4()) continue;
    fill(problem, 127, 127);
    check_all_equal(problem, 66064384.0F);
    fill(problem, -128, -128);
    check_all_equal(problem, 67108864.0F);
    fill(problem, -128, 127);
    check_all_equal(problem, -66584576.0F);
  }
}

TEST_P(ExactEdge, MinusOneHundredAndTwentyEight) {
  for (const uint32_t m : row_counts()) {
    ExactShape shape = base();
    shape.group = 64;
    shape.m = m;
    ExactCase problem(shape, 1);
    fill(problem, -128, w4() ? 7 : -1);
    check_all_equal(problem, 8192.0F);
    fill(problem, -128, w4() ? 0 : -8);
    check_all_equal(problem, 65536.0F);
  }
}

// Zero points at both ends with codes at both ends and x at both ends.
TEST_P(ExactEdge, ExtremeZeroPoints) {
  if (!w4()) GTEST_SKIP() << "w8s has no zero points";
  for (const uint32_t m : row_counts()) {
    for (const int zero : {0, 8, 15, 16}) {
      for (const int weight : {0, 15}) {
        for (const int x : {-128, 127}) {
          ExactShape shape = base();
          shape.n = 96;
          shape.k = 256;
          shape.group = 256;
          shape.m = m;
          shape.zeros = true;
          ExactCase problem(shape, 1);
          problem.set_zeros(std::vector<uint8_t>(static_cast<size_t>(shape.n), static_cast<uint8_t>(zero)));
          fill(problem, x, weight);
          check_all_equal(problem, static_cast<float>(256 * x * (weight - zero)));
        }
      }
    }
  }
}

// float(sum) rounds to nearest even: sums above 2^24 of every low bit pattern.
TEST_P(ExactEdge, LargeSumsAreRoundedToNearestEven) {
  if (w4()) GTEST_SKIP() << "a sum of 128 inputs is below 2^24";
  for (const uint32_t m : row_counts()) {
    ExactShape shape = base();
    shape.n = 80;
    shape.k = 2000;
    shape.group = 2000;
    shape.m = m;
    ExactCase problem(shape, 9);
    fill(problem, 127, 126);
    for (int64_t c = 0; c < shape.n; ++c) {
      for (int64_t i = 0; i <= c; ++i) problem.weights[static_cast<size_t>(c * shape.k + i)] -= static_cast<int32_t>(c % 7);
    }
    problem.pack();
    for (uint32_t row = 0; row < m; ++row) problem.set_input(row, row, 3);
    check(problem);
  }
}

TEST_P(ExactEdge, LongestBlock) {
  if (w4()) GTEST_SKIP() << "blocks of w4s hold 128 inputs at most";
  ExactShape shape = base();
  shape.n = 16;
  shape.k = 131'071;
  shape.group = 131'071;
  ExactCase problem(shape, 1);
  fill(problem, -128, -128);
  check(problem);
  fill(problem, -128, 127);
  check(problem);
}

// K no multiple of 64, NaN and 127 in the padding columns, a row of NaN among others: rows keep to themselves.
TEST_P(ExactEdge, ARowWithNanStaysAlone) {
  for (const int64_t k : {96, 160}) {
    for (const uint32_t m : row_counts()) {
      for (const float poison : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                                 -std::numeric_limits<float>::infinity()}) {
        for (const omni_dtype x_type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
          ExactShape shape = base();
          shape.n = 32;
          shape.k = k;
          shape.m = m;
          shape.x_type = x_type;
          shape.x_padding = 24;
          ExactCase problem(shape, 4);
          const uint32_t bad = m / 2;
          problem.set_input(bad, k - 1, poison);
          const std::vector<uint32_t> expected = problem.expected();
          for (int64_t c = 0; c < shape.n; ++c) ASSERT_EQ(expected[bad * 32 + static_cast<size_t>(c)], kF32NaN);
          check(problem);
        }
      }
    }
  }
}

// Rows of +0 and of -0 give exactly +0, whatever stands beside them.
TEST_P(ExactEdge, RowsOfZeros) {
  for (const float zero : {0.0F, -0.0F}) {
    ExactShape shape = base();
    shape.k = 256;
    shape.m = row().op == Op::kGemv ? 1 : 3;
    shape.x_type = OMNI_DTYPE_BF16;
    ExactCase problem(shape, 4);
    const uint32_t row = shape.m / 2;
    for (int64_t k = 0; k < shape.k; ++k) problem.set_input(row, k, zero);
    const std::vector<uint32_t> expected = problem.expected();
    for (int64_t c = 0; c < shape.n; ++c) ASSERT_EQ(expected[row * static_cast<size_t>(shape.n) + static_cast<size_t>(c)], 0U);
    check(problem);
  }
}

// Scales of given rows may be anything: subnormal, tiny, huge, negative, zero, NaN.
TEST_P(ExactEdge, ScalesOfGivenRows) {
  for (const float scale : {0x1p-149F, 0x1.8p-130F, 0x1p-126F, 0x1.fffffep-123F, 0x1.fffffep120F, -0.5F, -0.0F, 0.0F,
                            std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    for (const uint32_t m : row_counts()) {
      for (const omni_dtype y : {OMNI_DTYPE_F32, OMNI_DTYPE_BF16}) {
        ExactShape shape = base();
        shape.n = 96;
        shape.k = 128;
        shape.m = m;
        shape.y_type = y;
        shape.zeros = w4() && m == 3;
        ExactCase problem(shape, 4);
        for (uint32_t i = 0; i < m; ++i) problem.x_scales.as<float>()[i] = i % 2 == 0 ? scale : 0.01F;
        check(problem);
      }
    }
  }
}

// Outputs of rows taken five at a time are those of one call.
TEST_P(ExactEdge, SlicesOfRows) {
  if (row().op == Op::kGemv) GTEST_SKIP() << "one row";
  for (uint32_t m = 1; m <= 33; ++m) {
    ExactShape shape = base();
    shape.n = 48;
    shape.k = 256;
    shape.m = m;
    shape.x_type = OMNI_DTYPE_BF16;
    ExactCase problem(shape, m);
    const std::vector<uint32_t> expected = problem.expected();
    const ExactPlanPointer plan = make_exact_plan(problem, name());
    ASSERT_NE(plan, nullptr);
    size_t bytes = 0;
    ASSERT_EQ(omni_workspace_size(plan.get(), m, &bytes), OMNI_OK);
    GuardedBuffer workspace(bytes, Flush::kBack, 64, 0xFF);
    for (uint32_t first = 0; first < m; first += 5) {
      omni_linear_args args = problem.args();
      args.m = std::min(5U, m - first);
      args.x = problem.x.as<uint16_t>() + first * shape.ldx();
      args.y = problem.y.as<float>() + first * shape.ldy();
      args.workspace = workspace.data();
      args.workspace_bytes = workspace.size();
      ASSERT_EQ(omni_run(plan.get(), &args), OMNI_OK) << omni_last_error();
    }
    EXPECT_EQ(problem.difference(expected), "") << name() << " m=" << m;
  }
}

TEST(ExactApi, RefusesABlockThatMightOverflow) {
  omni_linear_query query{};
  query.size = sizeof query;
  query.numerics = OMNI_NUMERICS_EXACT;
  query.x_type = OMNI_DTYPE_BF16;
  query.y_type = OMNI_DTYPE_F32;
  query.max_m = 1;
  ASSERT_EQ(omni_layout_init(&query.weights, OMNI_FORMAT_W8S, 16, 131'072, 131'072, OMNI_DTYPE_F32), OMNI_OK);
  omni_plan* plan = nullptr;
  EXPECT_EQ(omni_select(&query, &plan), OMNI_ERR_GROUP);
  EXPECT_NE(std::strstr(omni_last_error(), "131072"), nullptr) << omni_last_error();
  ASSERT_EQ(omni_layout_init(&query.weights, OMNI_FORMAT_W4S, 16, 131'072, 131'072, OMNI_DTYPE_F32), OMNI_OK);
  ASSERT_EQ(omni_select(&query, &plan), OMNI_OK) << omni_last_error();
  omni_plan_destroy(plan);
}

TEST(ExactApi, RefusesBadRows) {
  ExactShape shape;
  shape.m = 2;
  ExactCase problem(shape, 1);
  const ExactPlanPointer plan = make_exact_plan(problem, nullptr);
  ASSERT_NE(plan, nullptr);
  size_t bytes = 0;
  ASSERT_EQ(omni_workspace_size(plan.get(), 2, &bytes), OMNI_OK);
  GuardedBuffer workspace(bytes, Flush::kBack, 64);
  omni_linear_args args = problem.args();
  args.workspace = workspace.data();
  args.workspace_bytes = bytes;
  ASSERT_EQ(omni_run(plan.get(), &args), OMNI_OK) << omni_last_error();
  omni_linear_args bad = args;
  bad.x_scales = nullptr;
  EXPECT_EQ(omni_run(plan.get(), &bad), OMNI_ERR_NULL);
  bad = args;
  bad.x_scales = reinterpret_cast<const float*>(problem.x_scales.data() + 1);
  EXPECT_EQ(omni_run(plan.get(), &bad), OMNI_ERR_ALIGNMENT);
  bad = args;
  bad.ldx = shape.k - 1;
  EXPECT_EQ(omni_run(plan.get(), &bad), OMNI_ERR_STRIDE);
  bad = args;
  bad.workspace_bytes = bytes - 1;
  EXPECT_EQ(omni_run(plan.get(), &bad), OMNI_ERR_BUFFER_SIZE);
}

}  // namespace
}  // namespace okl::test
