// SPDX-License-Identifier: Apache-2.0
// Every row of the dense family against the contract, bit for bit: shapes, tails, types, epilogues, splits, guard pages.
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "tests/support/dense_case.h"

namespace okl::test {
namespace {

std::vector<const KernelRow*> dense_rows() {
  std::vector<const KernelRow*> rows;
  for (const KernelRow& row : registry()) {
    if (row.op != Op::kGemv && row.op != Op::kGemm) continue;
    if (row.numerics == Numerics::kDense || (row.numerics == Numerics::kGroup && row.weights == OMNI_FORMAT_W8S))
      rows.push_back(&row);
  }
  return rows;
}

class DenseRow : public ::testing::TestWithParam<const KernelRow*> {
 protected:
  void SetUp() override {
    if (!row_runs_here(row())) GTEST_SKIP() << "not run: this processor lacks " << isa_to_text(row().required & ~hardware_isa());
  }
  const KernelRow& row() const { return *GetParam(); }
  const char* name() const { return row().name.data(); }
  uint32_t rows_up_to(uint32_t m) const { return row().op == Op::kGemv ? 1 : m; }
  // Groups to try; others have none.
  std::vector<uint32_t> groups() const {
    if (row().weights != OMNI_FORMAT_W8S) return {0};
    return {0, 32, 64, 128, 256};
  }
  DenseShape base() const {
    DenseShape shape;
    shape.weights = row().weights;
    shape.x_type = row().activation;
    return shape;
  }
  void check(const DenseShape& shape, uint64_t seed) {
    DenseCase problem(shape, seed);
    expect_contract(problem, problem.expected(), name());
  }
};

INSTANTIATE_TEST_SUITE_P(Registry, DenseRow, ::testing::ValuesIn(dense_rows()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST_P(DenseRow, EveryChannelTail) {
  for (const int64_t n : {1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 79, 80, 96, 112, 113, 127, 128, 129, 192}) {
    for (const Flush flush : {Flush::kFront, Flush::kBack}) {
      for (const uint32_t m : {1U, 3U, 8U}) {
        DenseShape shape = base();
        shape.n = n;
        shape.k = 97;
        shape.m = rows_up_to(m);
        shape.group = n % 2 == 0 && shape.w8s() ? 32 : 0;
        shape.flush = flush;
        shape.x_padding = 24;
        shape.y_padding = n % 3;
        check(shape, static_cast<uint64_t>(n));
      }
    }
  }
}

TEST_P(DenseRow, EveryInputTailAndGroup) {
  for (const int64_t k : {1, 2, 3, 4, 5, 31, 32, 33, 63, 64, 65, 80, 95, 96, 127, 128, 129, 131, 160, 255, 256, 257, 320, 513}) {
    for (const uint32_t group : groups()) {
      for (const uint32_t m : {1U, 2U, 7U, 13U}) {
        DenseShape shape = base();
        shape.n = 80;
        shape.k = k;
        shape.group = group;
        shape.m = rows_up_to(m);
        shape.flush = k % 3 == 0 ? Flush::kFront : Flush::kBack;
        check(shape, static_cast<uint64_t>(k) * 1000 + group);
      }
    }
  }
}

TEST_P(DenseRow, EveryRowCount) {
  for (uint32_t m = 1; m <= rows_up_to(40); ++m) {
    DenseShape shape = base();
    shape.n = 144;
    shape.k = 161;
    shape.group = shape.w8s() && m % 2 == 0 ? 64 : 0;
    shape.m = m;
    shape.y_padding = 5;
    check(shape, m);
  }
}

// Rows whose sums do not fit the scratch at once, several chunks, every group.
TEST_P(DenseRow, LargeBatches) {
  if (row().op == Op::kGemv) GTEST_SKIP() << "serves one row";
  for (const uint32_t group : groups()) {
    DenseShape shape = base();
    shape.n = 70;
    shape.k = 300;
    shape.group = group;
    shape.m = 131;
    check(shape, 1);
  }
  DenseShape shape = base();
  shape.n = 65;
  shape.k = 140;
  shape.m = 1601;
  shape.y_type = OMNI_DTYPE_BF16;
  check(shape, 2);
}

TEST_P(DenseRow, EveryTypeAndEpilogue) {
  for (const omni_dtype scale : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    if (row().weights != OMNI_FORMAT_W8S && scale == OMNI_DTYPE_BF16) continue;
    for (const omni_dtype y : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
      for (uint32_t epilogue = 0; epilogue < 4; ++epilogue) {
        for (const omni_dtype residual : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
          const bool has_residual = (epilogue & OMNI_EPILOGUE_RESIDUAL) != 0;
          if (!has_residual && residual == OMNI_DTYPE_F32) continue;
          for (const int64_t n : {23, 64, 75, 176}) {
            DenseShape shape = base();
            shape.n = n;
            shape.k = 150;
            shape.m = rows_up_to(n == 64 ? 5 : 9);
            shape.group = shape.w8s() && n % 2 == 0 ? 32 : 0;
            shape.scale_type = scale;
            shape.y_type = y;
            shape.epilogue = epilogue;
            shape.residual_type = has_residual ? residual : OMNI_DTYPE_NONE;
            shape.flush = n % 2 == 0 ? Flush::kFront : Flush::kBack;
            shape.y_padding = 3;
            check(shape, static_cast<uint64_t>(n) + epilogue);
          }
        }
      }
    }
  }
}

TEST_P(DenseRow, RandomShapes) {
  std::mt19937_64 random(std::hash<std::string_view>()(row().name));
  const auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  for (int i = 0; i < 40; ++i) {
    DenseShape shape = base();
    shape.n = pick(1, 300);
    shape.k = pick(1, 400);
    shape.m = static_cast<uint32_t>(pick(1, rows_up_to(33)));
    shape.group = groups()[static_cast<size_t>(pick(0, static_cast<int64_t>(groups().size()) - 1))];
    shape.y_type = pick(0, 1) == 0 ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32;
    if (shape.w8s() && pick(0, 1) == 0) shape.scale_type = OMNI_DTYPE_BF16;
    shape.epilogue = static_cast<uint32_t>(pick(0, 3));
    if (shape.epilogue & OMNI_EPILOGUE_RESIDUAL) shape.residual_type = pick(0, 1) == 0 ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32;
    shape.x_padding = pick(0, 9);
    shape.y_padding = pick(0, 9);
    shape.flush = pick(0, 1) == 0 ? Flush::kFront : Flush::kBack;
    check(shape, static_cast<uint64_t>(i));
  }
}

// Any split of N, in any order, gives the bits of one call; channels outside a portion are not touched.
TEST_P(DenseRow, EverySplitOfChannels) {
  DenseShape shape = base();
  shape.n = 213;
  shape.k = 160;
  shape.m = rows_up_to(9);
  shape.group = shape.w8s() ? 64 : 0;
  shape.y_type = OMNI_DTYPE_BF16;
  DenseCase problem(shape, 7);
  const std::vector<uint32_t> expected = problem.expected();
  const PlanPointer plan = make_plan(problem, name());
  ASSERT_NE(plan, nullptr);
  GuardedBuffer workspace = make_workspace(*plan, shape.m, Flush::kBack);
  size_t scratch_bytes = 0;
  ASSERT_EQ(omni_scratch_size(plan.get(), shape.m, &scratch_bytes), OMNI_OK);
  EXPECT_LE(scratch_bytes, size_t{256} << 10);
  GuardedBuffer scratch(scratch_bytes, Flush::kBack, 64, 0xFF);
  omni_linear_args args = problem.args();
  args.workspace = workspace.data();
  args.workspace_bytes = workspace.size();
  args.scratch = scratch.data();
  args.scratch_bytes = scratch.size();
  ASSERT_EQ(omni_prepare(plan.get(), &args), OMNI_OK) << omni_last_error();
  std::mt19937_64 random(11);
  for (int round = 0; round < 30; ++round) {
    std::vector<int64_t> cuts = {0, shape.n};
    for (int i = 0; i < round % 9; ++i) cuts.push_back(static_cast<int64_t>(random() % (shape.n + 1)));
    std::sort(cuts.begin(), cuts.end());
    std::vector<size_t> order(cuts.size() - 1);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), random);
    problem.clear_y();
    for (const size_t i : order) {
      ASSERT_EQ(omni_run_portion(plan.get(), &args, cuts[i], cuts[i + 1]), OMNI_OK) << omni_last_error();
    }
    ASSERT_EQ(problem.difference(expected), "") << name() << " round " << round;
  }
  problem.clear_y();
  ASSERT_EQ(omni_run_portion(plan.get(), &args, 70, 75), OMNI_OK);
  for (uint32_t m = 0; m < shape.m; ++m) {
    for (int64_t n = 0; n < shape.n; ++n) {
      EXPECT_EQ(problem.actual(m, n), n >= 70 && n < 75 ? expected[m * shape.n + n] : 0x5A5AU) << m << " " << n;
    }
  }
}

// Threads and the tasks that they take never show: a pool that runs tasks backwards, with more threads than blocks.
TEST_P(DenseRow, ThreadsDoNotChangeTheBits) {
  for (const int64_t n : {48, 400}) {
    DenseShape shape = base();
    shape.n = n;
    shape.k = 200;
    shape.m = rows_up_to(29);
    shape.group = shape.w8s() ? 32 : 0;
    DenseCase problem(shape, 5);
    const std::vector<uint32_t> expected = problem.expected();
    for (const uint32_t threads : {2U, 3U, 8U}) {
      omni_linear_query query = problem.query(name());
      query.max_threads = threads;
      omni_plan* plan = nullptr;
      ASSERT_EQ(omni_select(&query, &plan), OMNI_OK) << omni_last_error();
      const PlanPointer owner(plan);
      GuardedBuffer workspace = make_workspace(*plan, shape.m, Flush::kBack);
      omni_parallel backwards = serial_parallel();
      backwards.threads = threads;
      backwards.parallel_for = [](void*, int64_t count, omni_task task, void* context) {
        for (int64_t i = count; i-- > 0;) task(context, i);
      };
      omni_linear_args args = problem.args();
      args.workspace = workspace.data();
      args.workspace_bytes = workspace.size();
      args.parallel = &backwards;
      problem.clear_y();
      ASSERT_EQ(omni_run(plan, &args), OMNI_OK) << omni_last_error();
      EXPECT_EQ(problem.difference(expected), "") << name() << " " << threads;
    }
  }
}

// A row of a batch has the bits that it has alone.
TEST_P(DenseRow, BatchesNeverChangeARow) {
  DenseShape shape = base();
  shape.n = 96;
  shape.k = 270;
  shape.m = rows_up_to(23);
  DenseCase batch(shape, 13);
  const PlanPointer plan = make_plan(batch, name());
  ASSERT_NE(plan, nullptr);
  omni_parallel serial = serial_parallel();
  const std::vector<uint32_t> expected = batch.expected();
  for (uint32_t row = 0; row < shape.m; ++row) {
    GuardedBuffer workspace = make_workspace(*plan, 1, Flush::kBack);
    batch.clear_y();
    omni_linear_args args = batch.args();
    args.m = 1;
    const int64_t x_bytes = shape.x_type == OMNI_DTYPE_F32 ? 4 : 2;
    args.x = batch.x.data() + row * batch.ldx() * x_bytes;
    args.y = batch.y.as<float>() + row * batch.ldy();
    args.workspace = workspace.data();
    args.workspace_bytes = workspace.size();
    args.parallel = &serial;
    ASSERT_EQ(omni_run(plan.get(), &args), OMNI_OK) << omni_last_error();
    for (int64_t n = 0; n < shape.n; ++n) ASSERT_EQ(batch.actual(row, n), expected[row * shape.n + n]) << row << " " << n;
  }
}

// NaN, infinities, subnormals and values around the scrub thresholds stay in their row.
TEST_P(DenseRow, EdgeValues) {
  constexpr uint16_t kEdges[] = {0x0000, 0x8000, 0x0001, 0x03FF, 0x0400, 0x83FF, 0x8400, 0x237F, 0x2380,
                                 0xA37F, 0xA380, 0x0480, 0x7B80, 0xFB80, 0x3F80, 0xBF80, 0x0080, 0x4049};
  for (const omni_dtype y : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    for (const uint32_t m : {1U, 6U, 20U}) {
      DenseShape shape = base();
      shape.n = 80;
      shape.k = 150;
      shape.m = rows_up_to(m);
      shape.y_type = y;
      DenseCase problem(shape, 3);
      if (!shape.w8s()) {
        std::vector<float> weights;
        for (int64_t i = 0; i < shape.n * shape.k; ++i) {
          const uint16_t bits = kEdges[(i * 5 + i / shape.k) % std::size(kEdges)];
          const float value = bf16_to_float(bits);
          const bool scrubbed = shape.pairs() && std::fabs(value) < 0x1p-56F;
          weights.push_back(scrubbed ? 0.0F : shape.weights == OMNI_FORMAT_W32 && i % 9 == 0 ? 0x1.2345p-140F : value);
        }
        problem.set_weights(weights);
      } else {
        for (int64_t c = 0; c < shape.n; ++c) problem.set_scale(0, c, c % 7 == 0 ? 0x1p-130F : c % 11 == 0 ? -0.0F : 0x1p100F);
        problem.set_scale(0, 18, std::numeric_limits<float>::infinity());
      }
      for (uint32_t row = 0; row < shape.m; ++row) {
        for (int64_t i = 0; i < shape.k; ++i) {
          problem.set_x(row, i, bf16_to_float(kEdges[(i * 7 + row) % std::size(kEdges)]));
        }
      }
      if (shape.m > 3) {
        problem.set_x(1, 5, std::numeric_limits<float>::infinity());
        problem.set_x(2, 90, std::numeric_limits<float>::quiet_NaN());
        problem.set_x(3, shape.k - 1, -std::numeric_limits<float>::infinity());
      }
      expect_contract(problem, problem.expected(), name());
    }
  }
}

// Tiles must not leak a NaN row or the NaN beyond K into other rows, whatever K is (uxlfoundation/oneDNN#5717).
TEST_P(DenseRow, NaNStaysInItsRowForRaggedK) {
  for (const int64_t k : {40, 48, 80, 97}) {
    DenseShape shape = base();
    shape.n = 32;
    shape.k = k;
    shape.m = rows_up_to(16);
    shape.x_padding = 24;
    DenseCase problem(shape, 1);
    problem.set_weights(std::vector<float>(static_cast<size_t>(shape.n * k), 1.0F));
    if (shape.w8s()) {
      for (int64_t c = 0; c < shape.n; ++c) problem.set_scale(0, c, 1.0F);
    }
    for (uint32_t row = 0; row < shape.m; ++row) {
      for (int64_t i = 0; i < k; ++i) problem.set_x(row, i, row == 3 ? std::numeric_limits<float>::quiet_NaN() : 1.0F);
    }
    std::vector<uint32_t> expected;
    for (uint32_t row = 0; row < shape.m; ++row) {
      for (int64_t n = 0; n < shape.n; ++n) expected.push_back(row == 3 ? kF32NaN : std::bit_cast<uint32_t>(static_cast<float>(k)));
    }
    expect_contract(problem, expected, name());
  }
}

// Inputs of act-order checkpoints are gathered.
TEST_P(DenseRow, Permutation) {
  DenseShape shape = base();
  shape.n = 64;
  shape.k = 601;
  shape.m = rows_up_to(8);
  DenseCase problem(shape, 21);
  const std::vector<uint32_t> expected = problem.expected();
  std::vector<int32_t> permutation(static_cast<size_t>(shape.k));
  std::iota(permutation.begin(), permutation.end(), 0);
  std::shuffle(permutation.begin(), permutation.end(), std::mt19937_64(4));
  const int64_t bytes = shape.x_type == OMNI_DTYPE_F32 ? 4 : 2;
  GuardedBuffer shuffled(problem.x.size(), Flush::kBack, static_cast<size_t>(bytes));
  for (uint32_t row = 0; row < shape.m; ++row) {
    for (int64_t i = 0; i < shape.k; ++i) {
      std::memcpy(shuffled.data() + (row * shape.k + permutation[static_cast<size_t>(i)]) * bytes,
                  problem.x.data() + (row * shape.k + i) * bytes, static_cast<size_t>(bytes));
    }
  }
  const PlanPointer plan = make_plan(problem, name());
  ASSERT_NE(plan, nullptr);
  GuardedBuffer workspace = make_workspace(*plan, shape.m, Flush::kBack);
  omni_parallel serial = serial_parallel();
  omni_linear_args args = problem.args();
  args.x = shuffled.data();
  args.k_permutation = permutation.data();
  args.workspace = workspace.data();
  args.workspace_bytes = workspace.size();
  args.parallel = &serial;
  ASSERT_EQ(omni_run(plan.get(), &args), OMNI_OK) << omni_last_error();
  EXPECT_EQ(problem.difference(expected), "") << name();
}

TEST(DensePlan, RefusesUnscrubbedWeightsForBf16Rows) {
  omni_linear_query query{};
  query.size = sizeof query;
  query.numerics = OMNI_NUMERICS_DENSE;
  query.x_type = OMNI_DTYPE_BF16;
  query.y_type = OMNI_DTYPE_F32;
  query.max_m = 1;
  ASSERT_EQ(omni_layout_init(&query.weights, OMNI_FORMAT_W16, 64, 64, 64, OMNI_DTYPE_NONE), OMNI_OK);
  omni_plan* plan = nullptr;
  EXPECT_EQ(omni_select(&query, &plan), OMNI_ERR_LAYOUT);
  EXPECT_NE(std::string(omni_last_error()).find("OMNI_LAYOUT_SCRUBBED"), std::string::npos) << omni_last_error();
  EXPECT_EQ(plan, nullptr);
  query.x_type = OMNI_DTYPE_F32;
  EXPECT_EQ(omni_select(&query, &plan), OMNI_OK) << omni_last_error();
  omni_plan_destroy(plan);
}

TEST(DensePlan, NeedsNoScalesAndRefusesMissingOnesOfW8s) {
  for (const omni_format format : {OMNI_FORMAT_W16, OMNI_FORMAT_W8S}) {
    DenseShape shape;
    shape.weights = format;
    DenseCase problem(shape, 1);
    const PlanPointer plan = make_plan(problem, nullptr);
    ASSERT_NE(plan, nullptr);
    GuardedBuffer workspace = make_workspace(*plan, 1, Flush::kBack);
    omni_parallel serial = serial_parallel();
    omni_linear_args args = problem.args();
    args.scales = nullptr;
    args.workspace = workspace.data();
    args.workspace_bytes = workspace.size();
    args.parallel = &serial;
    EXPECT_EQ(omni_run(plan.get(), &args), format == OMNI_FORMAT_W16 ? OMNI_OK : OMNI_ERR_NULL) << omni_last_error();
  }
}

}  // namespace
}  // namespace okl::test
