// SPDX-License-Identifier: Apache-2.0
// Large batches of every linear row on tg4 weights: the contract for any number of rows, and that neither the batch, nor how it is
// cut, nor threads change a bit.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/gemv/tg4_plan.h"
#include "tests/support/linear_run.h"

namespace okl::test {
namespace {

class LinearBatchRow : public ::testing::TestWithParam<const KernelRow*> {
 protected:
  void SetUp() override {
    if (!row_runs_here(row())) GTEST_SKIP() << "not run: this processor lacks " << isa_to_text(row().required & ~hardware_isa());
  }
  const KernelRow& row() const { return *GetParam(); }
  const char* name() const { return row().name.data(); }
  LinearShape base(int64_t n, int64_t k, uint32_t group, uint32_t m) const {
    LinearShape shape;
    shape.n = n;
    shape.k = k;
    shape.group = group;
    shape.m = m;
    shape.numerics = static_cast<omni_numerics>(row().numerics);
    shape.x_type = row().activation;
    shape.scale_type = row().activation == OMNI_DTYPE_F32 ? OMNI_DTYPE_F32 : OMNI_DTYPE_BF16;
    return shape;
  }
  void check_random_splits(uint32_t group);
};

std::vector<const KernelRow*> rows_for_batches() {
  std::vector<const KernelRow*> rows;
  for (const KernelRow& row : registry()) {
    if (row.op == Op::kGemm && row.weights == OMNI_FORMAT_TG4 && row.numerics != Numerics::kFast) rows.push_back(&row);
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Registry, LinearBatchRow, ::testing::ValuesIn(rows_for_batches()),
                         [](const auto& info) { return std::string(info.param->name); });

// Around every change of tile sizes and of kernels, with groups shorter and longer than a chunk, and chunks that end early.
TEST_P(LinearBatchRow, AnyNumberOfRows) {
  constexpr std::pair<int64_t, uint32_t> kInputs[] = {{160, 32}, {300, 64}, {257, 128}, {600, 256}, {333, 333}};
  size_t next = 0;
  for (const uint32_t m : {17, 18, 23, 24, 25, 30, 31, 35, 36, 37, 48, 49, 50, 54, 97, 128, 199}) {
    const auto& [k, group] = kInputs[next++ % std::size(kInputs)];
    LinearShape shape = base(m % 2 == 0 ? 80 : 64 + m % 49, k, group, m);
    shape.y_padding = m % 3;
    shape.x_padding = m % 5;
    shape.flush = m % 2 == 0 ? Flush::kFront : Flush::kBack;
    LinearCase problem(shape, m);
    expect_contract(problem, problem.expected(), name());
  }
}

TEST_P(LinearBatchRow, EveryTailWidthAndEpilogue) {
  for (const int64_t n : {1, 15, 16, 31, 48, 63, 64, 113}) {
    for (uint32_t epilogue = 0; epilogue < 4; ++epilogue) {
      LinearShape shape = base(n, 193, 64, 51);
      shape.epilogue = epilogue;
      if ((epilogue & OMNI_EPILOGUE_RESIDUAL) != 0) shape.residual_type = n % 2 == 0 ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32;
      shape.y_type = n % 3 == 0 ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32;
      if (shape.numerics == OMNI_NUMERICS_GROUP && epilogue % 2 == 0) shape.scale_type = OMNI_DTYPE_F32;
      LinearCase problem(shape, static_cast<uint64_t>(n) + epilogue);
      expect_contract(problem, problem.expected(), name());
    }
  }
}

// NaN and Inf stay in their row; subnormal outputs and signed zeros as the contract says.
TEST_P(LinearBatchRow, EdgeValues) {
  LinearShape shape = base(80, 160, 32, 53);
  if (row().activation != OMNI_DTYPE_BF16) GTEST_SKIP() << "values are those of bf16";
  shape.y_type = OMNI_DTYPE_BF16;
  LinearCase problem(shape, 3);
  constexpr uint16_t kEdges[] = {0x0000, 0x8000, 0x0001, 0x03FF, 0x0400, 0x83FF, 0x8400, 0x0480, 0x7B80, 0xFB80, 0x3F80, 0xBF80};
  std::vector<uint16_t> x(static_cast<size_t>(shape.m) * shape.k);
  for (size_t i = 0; i < x.size(); ++i) x[i] = kEdges[(i * 7 + i / shape.k) % std::size(kEdges)];
  x[7 * shape.k + 5] = 0x7F80;
  x[20 * shape.k + 90] = 0x7FC0;
  problem.set_x(x);
  expect_contract(problem, problem.expected(), name());
}

// Any cut of rows into runs and of channels into portions, each portion with scratch of its own between guards.
void LinearBatchRow::check_random_splits(uint32_t group) {
  const LinearShape shape = base(150, 320, group, 131);
  LinearCase problem(shape, 5);
  const PlanPointer plan = make_plan(problem, name());
  ASSERT_NE(plan, nullptr);
  GuardedBuffer workspace = make_workspace(*plan, shape.m, Flush::kBack);
  const omni_parallel serial = serial_parallel();
  omni_linear_args args = problem.args();
  args.workspace = workspace.data();
  args.workspace_bytes = workspace.size();
  args.parallel = &serial;
  ASSERT_EQ(omni_run(plan.get(), &args), OMNI_OK) << omni_last_error();
  const std::vector<uint32_t> together = problem.actual();
  const int64_t x_bytes = problem.ldx() * (shape.x_type == OMNI_DTYPE_F32 ? 4 : 2);
  std::mt19937_64 random(13);
  for (int round = 0; round < 6; ++round) {
    problem.clear_y();
    for (uint32_t row = 0; row < shape.m;) {
      args.m = std::min<uint32_t>(1 + static_cast<uint32_t>(random() % (round < 3 ? 9 : 90)), shape.m - row);
      args.x = problem.x.data() + row * x_bytes;
      args.y = problem.y.as<float>() + row * problem.ldy();
      GuardedBuffer own_workspace = make_workspace(*plan, args.m, round % 2 == 0 ? Flush::kBack : Flush::kFront);
      args.workspace = own_workspace.data();
      args.workspace_bytes = own_workspace.size();
      ASSERT_EQ(omni_prepare(plan.get(), &args), OMNI_OK) << omni_last_error();
      for (int64_t n0 = 0; n0 < shape.n;) {
        const int64_t n1 = std::min<int64_t>(n0 + 1 + static_cast<int64_t>(random() % 100), shape.n);
        GuardedBuffer scratch = make_scratch(*plan, args.m, round % 3 == 0 ? Flush::kFront : Flush::kBack);
        args.scratch = scratch.data();
        args.scratch_bytes = scratch.size();
        ASSERT_EQ(omni_run_portion(plan.get(), &args, n0, n1), OMNI_OK) << omni_last_error();
        ASSERT_TRUE(scratch.intact());
        n0 = n1;
      }
      ASSERT_TRUE(own_workspace.intact());
      row += args.m;
    }
    ASSERT_EQ(first_difference(problem, together), "") << name() << " round " << round;
  }
}

TEST_P(LinearBatchRow, RandomSplitsOfABatch) {
  for (const uint32_t group : {64U, 256U, 320U}) check_random_splits(group);  // the longer ones need more scratch
}

TEST_P(LinearBatchRow, Threads) {
  for (const int64_t n : {48, 200}) {
    const LinearShape shape = base(n, 256, 32, 75);
    LinearCase problem(shape, 6);
    const std::vector<uint32_t> expected = problem.expected();
    for (const uint32_t threads : {1, 2, 3, 8}) {
      omni_pool* pool = nullptr;
      ASSERT_EQ(omni_pool_create(threads, &pool), OMNI_OK);
      omni_parallel parallel{};
      parallel.size = sizeof parallel;
      ASSERT_EQ(omni_pool_parallel(pool, &parallel), OMNI_OK);
      expect_contract(problem, expected, name(), parallel);
      omni_pool_destroy(pool);
    }
  }
}

// What the rows of a model see: 512 rows of a gate_up layer, some of them compared with the row alone.
TEST(LinearBatch, RowsOfARealShape) {
  for (const omni_numerics numerics : {OMNI_NUMERICS_GROUP, OMNI_NUMERICS_TORCH}) {
    LinearShape shape;
    shape.n = 1088;
    shape.k = 2048;
    shape.group = 128;
    shape.m = 512;
    shape.numerics = numerics;
    shape.y_type = OMNI_DTYPE_BF16;
    LinearCase problem(shape, 8);
    const PlanPointer plan = make_plan(problem, nullptr);
    ASSERT_NE(plan, nullptr);
    GuardedBuffer workspace = make_workspace(*plan, shape.m, Flush::kBack);
    omni_linear_args args = problem.args();
    args.workspace = workspace.data();
    args.workspace_bytes = workspace.size();
    ASSERT_EQ(omni_run(plan.get(), &args), OMNI_OK);
    const std::vector<uint32_t> together = problem.actual();
    args.m = 1;
    for (const uint32_t row : {0U, 1U, 5U, 6U, 255U, 256U, 400U, 491U, 492U, 511U}) {
      args.x = problem.x.as<uint16_t>() + row * problem.ldx();
      args.y = problem.y.as<uint16_t>() + row * problem.ldy();
      std::memset(args.y, 0x5A, static_cast<size_t>(shape.n) * 2);
      ASSERT_EQ(omni_run(plan.get(), &args), OMNI_OK);
    }
    EXPECT_EQ(problem.actual(), together);
  }
}

// More rows than one span of tiles holds, with and without groups that a chunk cuts.
TEST(LinearBatch, SeveralSpans) {
  for (const uint32_t group : {128U, 256U}) {
    LinearShape shape;
    shape.n = 16;
    shape.k = 512;
    shape.group = group;
    shape.m = 1201;
    LinearCase problem(shape, 4);
    expect_contract(problem, problem.expected(), nullptr);
  }
}

// What omni/linear.h promises: scratch of at most 256 KiB, workspace of the prepared rows and 1 MiB for each thread.
TEST(LinearBatch, WorkspaceAndScratchStayInBounds) {
  for (const omni_numerics numerics : {OMNI_NUMERICS_GROUP, OMNI_NUMERICS_TORCH}) {
    for (const uint32_t group : {32U, 128U, 256U, 4304U}) {
      LinearShape shape;
      shape.n = 64;
      shape.k = 4304;
      shape.group = group;
      shape.numerics = numerics;
      const LinearCase problem(shape, 1);
      omni_linear_query query = problem.query();
      query.max_m = OMNI_LINEAR_MOST_ROWS;
      query.max_threads = 3;
      omni_plan* selected = nullptr;
      ASSERT_EQ(omni_select(&query, &selected), OMNI_OK);
      const PlanPointer plan(selected);
      for (const uint32_t m : {1U, 6U, 7U, 100U, 512U, 5000U, OMNI_LINEAR_MOST_ROWS}) {
        size_t scratch = 0, workspace = 0;
        ASSERT_EQ(omni_scratch_size(plan.get(), m, &scratch), OMNI_OK);
        ASSERT_EQ(omni_workspace_size(plan.get(), m, &workspace), OMNI_OK);
        EXPECT_LE(scratch, size_t{256} << 10) << m;
        EXPECT_EQ(scratch % 64, 0U);
        const size_t row = (4304 + 127) / 128 * 128 * 4 + (4304 + group - 1) / group * 4;
        EXPECT_LE(workspace, row * m + 64 + (size_t{3} << 20)) << m;
      }
    }
  }
}

TEST(RowTiles, CoverTheRowsLargeTilesFirst) {
  for (uint32_t m = 0; m <= 200; ++m) {
    for (uint32_t most = 1; most <= 16; ++most) {
      const RowTiles tiles(m, most);
      uint32_t row = 0;
      for (uint32_t tile = 0; tile < tiles.tiles; ++tile) {
        EXPECT_EQ(tiles.first(tile), row);
        EXPECT_TRUE(tiles.rows(tile) >= 1 && tiles.rows(tile) <= most) << m << " " << most;
        EXPECT_EQ(tiles.rows(tile), tile < tiles.large ? tiles.largest() : tiles.largest() - 1);
        row += tiles.rows(tile);
      }
      EXPECT_EQ(row, m);
    }
  }
}

}  // namespace
}  // namespace okl::test
