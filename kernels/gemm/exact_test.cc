// SPDX-License-Identifier: Apache-2.0
// Every row of class exact against the contract, bit for bit: shapes, tails, types, epilogues, splits, guard pages.
#include <algorithm>

#include "kernels/cpu/machine.h"
#include "kernels/dispatch/kernel.h"
#include "tests/support/exact_case.h"
#include "tests/support/linear_case.h"

namespace okl::test {
namespace {

class ExactRow : public ::testing::TestWithParam<const KernelRow*> {
 protected:
  void SetUp() override {
    const IsaMask missing = row().required & ~hardware_isa();
    if (missing != 0) GTEST_SKIP() << "not run: this processor lacks " << isa_to_text(missing);
  }
  const KernelRow& row() const { return *GetParam(); }
  const char* name() const { return row().name.data(); }
  uint32_t max_m() const { return row().op == Op::kGemv ? 1 : 40; }
  bool w4() const { return row().weights == OMNI_FORMAT_W4S; }

  ExactShape base() const {
    ExactShape shape;
    shape.weights = row().weights;
    return shape;
  }
  void check(const ExactShape& shape, uint64_t seed) {
    const omni_parallel serial = serial_parallel();
    ExactCase problem(shape, seed);
    expect_exact(problem, problem.expected(), name(), &serial);
  }
};

std::vector<const KernelRow*> exact_rows() {
  std::vector<const KernelRow*> rows;
  for (const KernelRow& row : registry()) {
    if (row.numerics == Numerics::kExact) rows.push_back(&row);
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Registry, ExactRow, ::testing::ValuesIn(exact_rows()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST_P(ExactRow, EveryChannelTail) {
  for (int64_t n : {1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 79, 80, 81, 96, 97, 112, 113, 127, 128, 129, 192}) {
    for (const Flush flush : {Flush::kFront, Flush::kBack}) {
      ExactShape shape = base();
      shape.n = n;
      shape.k = 96;
      shape.m = std::min<uint32_t>(max_m(), 3);
      shape.flush = flush;
      shape.x_padding = 24;
      shape.y_padding = n % 3;
      shape.zeros = w4() && n % 2 == 0;
      check(shape, static_cast<uint64_t>(n));
    }
  }
}

TEST_P(ExactRow, EveryInputTailAndGroup) {
  for (int64_t k : {1, 2, 3, 4, 5, 31, 32, 33, 63, 64, 65, 80, 95, 96, 127, 128, 129, 160, 200, 255, 256, 257, 320, 513}) {
    for (uint32_t group : {32U, 64U, 128U, 256U, static_cast<uint32_t>(k)}) {
      for (const bool zeros : {false, true}) {
        if (zeros && !w4()) continue;
        ExactShape shape = base();
        shape.n = 80;
        shape.k = k;
        shape.group = group;
        shape.m = k % 2 == 0 ? 1 : std::min<uint32_t>(max_m(), 17);
        shape.zeros = zeros;
        shape.flush = k % 3 == 0 ? Flush::kFront : Flush::kBack;
        check(shape, static_cast<uint64_t>(k) * 1000 + group);
      }
    }
  }
}

TEST_P(ExactRow, EveryRowCount) {
  for (uint32_t m = 1; m <= max_m(); ++m) {
    ExactShape shape = base();
    shape.n = 144;
    shape.k = 160;
    shape.group = 64;
    shape.m = m;
    shape.y_padding = 5;
    shape.zeros = w4() && m % 2 == 0;
    check(shape, m);
  }
  if (max_m() == 1) return;
  for (const uint32_t m : {63U, 96U, 97U, 130U, 200U}) {
    ExactShape shape = base();
    shape.n = 80;
    shape.k = 96;
    shape.m = m;
    shape.zeros = w4() && m % 2 == 0;
    check(shape, m);
  }
}

TEST_P(ExactRow, EveryTypeAndEpilogue) {
  for (const omni_dtype x : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32, OMNI_DTYPE_S8}) {
    for (const omni_dtype scale : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
      for (const omni_dtype y : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
        for (uint32_t epilogue = 0; epilogue < 4; ++epilogue) {
          for (const omni_dtype residual : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
            const bool has_residual = (epilogue & OMNI_EPILOGUE_RESIDUAL) != 0;
            if (!has_residual && residual == OMNI_DTYPE_F32) continue;
            for (int64_t n : {23, 75, 176}) {
              ExactShape shape = base();
              shape.n = n;
              shape.k = 100;
              shape.x_type = x;
              shape.m = n == 176 ? std::min<uint32_t>(max_m(), 33) : std::min<uint32_t>(max_m(), 5);
              shape.scale_type = scale;
              shape.y_type = y;
              shape.epilogue = epilogue;
              shape.residual_type = has_residual ? residual : OMNI_DTYPE_NONE;
              shape.flush = n % 2 == 0 ? Flush::kFront : Flush::kBack;
              shape.y_padding = 3;
              shape.zeros = w4() && n == 75;
              check(shape, static_cast<uint64_t>(n) + epilogue);
            }
          }
        }
      }
    }
  }
}

TEST_P(ExactRow, RandomShapes) {
  std::mt19937_64 random(std::hash<std::string_view>()(row().name));
  const auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  for (int i = 0; i < 60; ++i) {
    ExactShape shape = base();
    shape.n = pick(1, 300);
    shape.k = pick(1, 400);
    const uint32_t groups[] = {32, 64, 128, 256, static_cast<uint32_t>(shape.k)};
    shape.group = groups[pick(0, 4)];
    shape.m = static_cast<uint32_t>(pick(1, pick(0, 3) == 0 && max_m() > 1 ? 130 : max_m()));
    const omni_dtype types[] = {OMNI_DTYPE_BF16, OMNI_DTYPE_F32, OMNI_DTYPE_S8};
    shape.x_type = types[pick(0, 2)];
    shape.y_type = types[pick(0, 1)];
    shape.scale_type = types[pick(0, 1)];
    shape.epilogue = static_cast<uint32_t>(pick(0, 3));
    if (shape.epilogue & OMNI_EPILOGUE_RESIDUAL) shape.residual_type = types[pick(0, 1)];
    shape.zeros = w4() && pick(0, 1) == 0;
    shape.permuted = pick(0, 2) == 0;
    shape.x_padding = pick(0, 9);
    shape.y_padding = pick(0, 9);
    shape.flush = pick(0, 1) == 0 ? Flush::kFront : Flush::kBack;
    check(shape, static_cast<uint64_t>(i));
  }
}

// Any split of N and of the rows, in any order, gives the bits of one call; channels outside a portion are not touched.
TEST_P(ExactRow, EverySplit) {
  std::mt19937_64 random(11);
  for (const uint32_t m : {1U, 7U, 37U}) {
    if (m > max_m()) continue;
    ExactShape shape = base();
    shape.n = 213;
    shape.k = 160;
    shape.group = 64;
    shape.m = m;
    shape.x_type = OMNI_DTYPE_BF16;
    shape.y_type = OMNI_DTYPE_BF16;
    shape.zeros = w4();
    ExactCase problem(shape, 7);
    const std::vector<uint32_t> expected = problem.expected();
    const ExactPlanPointer plan = make_exact_plan(problem, name());
    ASSERT_NE(plan, nullptr);
    for (int round = 0; round < 6; ++round) {
      problem.clear_y();
      std::vector<uint32_t> row_cuts = {0, m};
      std::vector<int64_t> cuts = {0, shape.n};
      for (int i = 0; i < round; ++i) {
        cuts.push_back(std::uniform_int_distribution<int64_t>(0, shape.n)(random));
        row_cuts.push_back(std::uniform_int_distribution<uint32_t>(0, m)(random));
      }
      std::sort(cuts.begin(), cuts.end());
      std::sort(row_cuts.begin(), row_cuts.end());
      for (size_t r = 0; r + 1 < row_cuts.size(); ++r) {
        const uint32_t rows = row_cuts[r + 1] - row_cuts[r];
        if (rows == 0) continue;
        size_t bytes = 0, scratch_bytes = 0;
        ASSERT_EQ(omni_workspace_size(plan.get(), rows, &bytes), OMNI_OK);
        ASSERT_EQ(omni_scratch_size(plan.get(), rows, &scratch_bytes), OMNI_OK);
        GuardedBuffer workspace(bytes, Flush::kBack, 64, 0xFF), scratch(scratch_bytes, Flush::kBack, 64, 0xFF);
        omni_linear_args args = problem.args();
        args.m = rows;
        args.x = static_cast<const uint16_t*>(args.x) + row_cuts[r] * args.ldx;
        args.y = static_cast<uint16_t*>(args.y) + row_cuts[r] * args.ldy;
        args.workspace = workspace.data();
        args.workspace_bytes = workspace.size();
        args.scratch = scratch.data();
        args.scratch_bytes = scratch.size();
        ASSERT_EQ(omni_prepare(plan.get(), &args), OMNI_OK) << omni_last_error();
        for (size_t i = cuts.size() - 1; i > 0; --i) {
          ASSERT_EQ(omni_run_portion(plan.get(), &args, cuts[i - 1], cuts[i]), OMNI_OK) << omni_last_error();
        }
      }
      EXPECT_EQ(problem.difference(expected), "") << name() << " m=" << m << " round " << round;
    }
  }
}

// Threads, and shapes with fewer blocks than threads, where rows are cut as well.
TEST_P(ExactRow, EveryThreadCount) {
  for (const uint32_t threads : {2U, 5U}) {
    for (const int64_t n : {40, 300}) {
      ExactShape shape = base();
      shape.n = n;
      shape.k = 200;
      shape.m = max_m() == 1 ? 1 : 70;
      shape.x_type = OMNI_DTYPE_F32;
      ExactCase problem(shape, 3);
      const std::vector<uint32_t> expected = problem.expected();
      omni_pool* pool = nullptr;
      ASSERT_EQ(omni_pool_create(threads, &pool), OMNI_OK) << omni_last_error();
      omni_parallel parallel{};
      parallel.size = sizeof parallel;
      ASSERT_EQ(omni_pool_parallel(pool, &parallel), OMNI_OK) << omni_last_error();
      omni_linear_query query = problem.query(name());
      query.max_threads = threads;
      omni_plan* made = nullptr;
      ASSERT_EQ(omni_select(&query, &made), OMNI_OK) << omni_last_error();
      const ExactPlanPointer plan(made);
      size_t bytes = 0;
      ASSERT_EQ(omni_workspace_size(plan.get(), shape.m, &bytes), OMNI_OK);
      GuardedBuffer workspace(bytes, Flush::kBack, 64, 0xFF);
      omni_linear_args args = problem.args();
      args.workspace = workspace.data();
      args.workspace_bytes = workspace.size();
      args.parallel = &parallel;
      ASSERT_EQ(omni_run(plan.get(), &args), OMNI_OK) << omni_last_error();
      EXPECT_EQ(problem.difference(expected), "") << name() << " threads=" << threads << " n=" << n;
      omni_pool_destroy(pool);
    }
  }
}

}  // namespace
}  // namespace okl::test
