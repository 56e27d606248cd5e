// SPDX-License-Identifier: Apache-2.0
// Every linear row of the registry against the contract, bit for bit: shapes, tails, types, epilogues, splits, guard pages.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/linear_run.h"

namespace okl::test {
namespace {

class LinearRow : public ::testing::TestWithParam<const KernelRow*> {
 protected:
  void SetUp() override {
    if (!row_runs_here(row())) GTEST_SKIP() << "not run: this processor lacks " << isa_to_text(row().required & ~hardware_isa());
  }
  const KernelRow& row() const { return *GetParam(); }
  const char* name() const { return row().name.data(); }
  uint32_t max_m() const { return row().op == Op::kGemv ? 1 : 16; }

  LinearShape base() const {
    LinearShape shape;
    shape.numerics = static_cast<omni_numerics>(row().numerics);
    shape.x_type = row().activation;
    shape.scale_type = row().activation == OMNI_DTYPE_F32 ? OMNI_DTYPE_F32 : OMNI_DTYPE_BF16;
    return shape;
  }
  void check(const LinearShape& shape, uint64_t seed) {
    LinearCase problem(shape, seed);
    expect_contract(problem, problem.expected(), name());
  }
};

std::vector<const KernelRow*> linear_rows() {
  std::vector<const KernelRow*> rows;
  for (const KernelRow& row : registry()) {
    if ((row.op == Op::kGemv || row.op == Op::kGemm) && row.weights == OMNI_FORMAT_TG4 && row.numerics != Numerics::kFast) {
      rows.push_back(&row);
    }
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Registry, LinearRow, ::testing::ValuesIn(linear_rows()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST_P(LinearRow, EveryChannelTail) {
  for (int64_t n : {1, 2, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 79, 80, 96, 112, 113, 127, 128, 129, 192}) {
    for (const Flush flush : {Flush::kFront, Flush::kBack}) {
      LinearShape shape = base();
      shape.n = n;
      shape.k = 96;
      shape.m = std::min<uint32_t>(max_m(), 3);
      shape.flush = flush;
      shape.x_padding = 24;
      shape.y_padding = n % 3;
      check(shape, static_cast<uint64_t>(n));
    }
  }
}

TEST_P(LinearRow, EveryInputTailAndGroup) {
  for (int64_t k : {1, 2, 3, 31, 32, 33, 63, 64, 65, 80, 95, 96, 127, 128, 129, 160, 255, 256, 257, 320, 513}) {
    for (uint32_t group : {32U, 64U, 128U, 256U, static_cast<uint32_t>(k)}) {
      LinearShape shape = base();
      shape.n = 80;
      shape.k = k;
      shape.group = group;
      shape.m = k % 2 == 0 ? 1 : max_m();
      shape.flush = k % 3 == 0 ? Flush::kFront : Flush::kBack;
      check(shape, static_cast<uint64_t>(k) * 1000 + group);
    }
  }
}

TEST_P(LinearRow, EveryRowCount) {
  for (uint32_t m = 1; m <= max_m(); ++m) {
    LinearShape shape = base();
    shape.n = 144;
    shape.k = 160;
    shape.group = 64;
    shape.m = m;
    shape.y_padding = 5;
    check(shape, m);
  }
}

TEST_P(LinearRow, EveryTypeAndEpilogue) {
  for (const omni_dtype scale : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    if (row().numerics == Numerics::kTorch && scale != row().activation) continue;
    for (const omni_dtype y : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
      for (uint32_t epilogue = 0; epilogue < 4; ++epilogue) {
        for (const omni_dtype residual : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
          const bool has_residual = (epilogue & OMNI_EPILOGUE_RESIDUAL) != 0;
          if (!has_residual && residual == OMNI_DTYPE_F32) continue;
          for (int64_t n : {23, 64, 75, 176}) {
            LinearShape shape = base();
            shape.n = n;
            shape.k = 100;
            shape.m = std::min<uint32_t>(max_m(), 5);
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

TEST_P(LinearRow, RandomShapes) {
  std::mt19937_64 random(std::hash<std::string_view>()(row().name));
  const auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  for (int i = 0; i < 40; ++i) {
    LinearShape shape = base();
    shape.n = pick(1, 300);
    shape.k = pick(1, 400);
    const uint32_t groups[] = {32, 64, 128, 256, static_cast<uint32_t>(shape.k)};
    shape.group = groups[pick(0, 4)];
    shape.m = static_cast<uint32_t>(pick(1, max_m()));
    shape.y_type = pick(0, 1) == 0 ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32;
    if (row().numerics == Numerics::kGroup && pick(0, 1) == 0) shape.scale_type = OMNI_DTYPE_F32;
    shape.epilogue = static_cast<uint32_t>(pick(0, 3));
    if (shape.epilogue & OMNI_EPILOGUE_RESIDUAL) shape.residual_type = pick(0, 1) == 0 ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32;
    shape.x_padding = pick(0, 9);
    shape.y_padding = pick(0, 9);
    shape.flush = pick(0, 1) == 0 ? Flush::kFront : Flush::kBack;
    check(shape, static_cast<uint64_t>(i));
  }
}

// Any split of N, in any order, gives the bits of one call; channels outside a portion are not touched.
TEST_P(LinearRow, EverySplitOfChannels) {
  LinearShape shape = base();
  shape.n = 213;
  shape.k = 96;
  shape.m = std::min<uint32_t>(max_m(), 7);
  shape.y_type = OMNI_DTYPE_BF16;
  LinearCase problem(shape, 7);
  const std::vector<uint32_t> expected = problem.expected();
  const PlanPointer plan = make_plan(problem, name());
  ASSERT_NE(plan, nullptr);
  GuardedBuffer workspace = make_workspace(*plan, shape.m, Flush::kBack), scratch = make_scratch(*plan, shape.m, Flush::kBack);
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
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    std::shuffle(order.begin(), order.end(), random);
    problem.clear_y();
    for (const size_t i : order) {
      ASSERT_EQ(omni_run_portion(plan.get(), &args, cuts[i], cuts[i + 1]), OMNI_OK) << omni_last_error();
    }
    ASSERT_EQ(first_difference(problem, expected), "") << name() << " round " << round;
  }
  problem.clear_y();
  ASSERT_EQ(omni_run_portion(plan.get(), &args, 70, 75), OMNI_OK);
  const std::vector<uint32_t> actual = problem.actual();
  for (uint32_t m = 0; m < shape.m; ++m) {
    for (int64_t n = 0; n < shape.n; ++n) {
      EXPECT_EQ(actual[m * shape.n + n], n >= 70 && n < 75 ? expected[m * shape.n + n] : 0x5A5AU) << m << " " << n;
    }
  }
}

// NaN, infinities, subnormals and values around the scrub threshold in x; infinite and subnormal scales and zeros.
TEST_P(LinearRow, EdgeValues) {
  for (const omni_dtype y : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    LinearShape shape = base();
    shape.n = 80;
    shape.k = 96;
    shape.m = std::min<uint32_t>(max_m(), 12);
    shape.y_type = y;
    if (row().numerics == Numerics::kGroup) shape.scale_type = OMNI_DTYPE_F32;
    LinearCase problem(shape, 3);
    if (row().activation == OMNI_DTYPE_BF16) {
      std::vector<uint16_t> x(static_cast<size_t>(shape.m) * shape.k);
      constexpr uint16_t kEdges[] = {0x0000, 0x8000, 0x0001, 0x03FF, 0x0400, 0x83FF,
                                     0x8400, 0x0480, 0x7B80, 0xFB80, 0x3F80, 0xBF80};
      for (size_t i = 0; i < x.size(); ++i) x[i] = kEdges[(i * 7 + i / shape.k) % std::size(kEdges)];
      if (shape.m > 1) {
        x[shape.k + 5] = 0x7F80;
        x[2 * shape.k + 90] = 0x7FC0;
      }
      problem.set_x(x);
    }
    std::vector<float> scales(static_cast<size_t>(shape.groups() * shape.n * 2), 0.5F);
    for (size_t i = 0; i < scales.size(); i += 7) scales[i] = 0x1p-130F;
    for (size_t i = 3; i < scales.size(); i += 31) scales[i] = -0.0F;
    scales[18] = std::numeric_limits<float>::infinity();
    problem.set_scales(scales);
    expect_contract(problem, problem.expected(), name());
  }
}

// Nothing but values around the scrub threshold 2^-119, and scales that make them visible.
TEST_P(LinearRow, ScrubThreshold) {
  if (row().activation != OMNI_DTYPE_BF16) GTEST_SKIP() << "bf16 only";
  for (const int64_t k : {50, 96}) {
    LinearShape shape = base();
    shape.n = 80;
    shape.k = k;
    shape.m = std::min<uint32_t>(max_m(), 9);
    if (row().numerics == Numerics::kGroup) shape.scale_type = OMNI_DTYPE_F32;
    LinearCase problem(shape, 4);
    constexpr uint16_t kSmall[] = {0x03FF, 0x0400, 0x0001, 0x83FF, 0x0401, 0x0480, 0x8400, 0x0080};
    std::vector<uint16_t> x(static_cast<size_t>(shape.m) * shape.k);
    for (size_t i = 0; i < x.size(); ++i) x[i] = kSmall[(i * 5 + i / shape.k) % std::size(kSmall)];
    problem.set_x(x);
    problem.set_scales(std::vector<float>(static_cast<size_t>(shape.groups() * shape.n * 2), 0x1p100F));
    expect_contract(problem, problem.expected(), name());
  }
}

// K's padding is no input: an infinite zero would make a NaN of it.
TEST_P(LinearRow, StopsAtTheLastInput) {
  for (const int64_t k : {33, 37, 100, 159}) {
    for (const uint32_t m : {1U, max_m()}) {
      LinearShape shape = base();
      shape.n = 80;
      shape.k = k;
      shape.m = m;
      LinearCase problem(shape, 5);
      problem.set_x_everywhere(1.0F);
      std::vector<float> scales(static_cast<size_t>(shape.groups() * shape.n * 2), 0.5F);
      for (int64_t channel = 3; channel < shape.n; channel += 7) {
        scales[static_cast<size_t>(((shape.groups() - 1) * shape.n + channel) * 2 + 1)] = std::numeric_limits<float>::infinity();
      }
      problem.set_scales(scales);
      expect_contract(problem, problem.expected(), name());
    }
  }
}

// Scales are taken by their own group: a kernel that divides wrongly uses group 0 for every input.
TEST_P(LinearRow, GroupIndex) {
  const std::pair<uint32_t, float> cases[] = {{32, 1152.0F}, {64, 640.0F}, {128, 384.0F}, {256, 256.0F}};
  for (const auto& [group, sum] : cases) {
    for (const omni_dtype y : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
      LinearShape shape = base();
      shape.k = 256;
      shape.group = group;
      shape.y_type = y;
      LinearCase problem(shape, 1);
      problem.set_codes(std::vector<uint8_t>(static_cast<size_t>(shape.n * shape.k), 9));
      problem.set_x_everywhere(1.0F);
      std::vector<float> scales;
      for (int64_t g = 0; g < shape.groups(); ++g) {
        for (int64_t n = 0; n < shape.n; ++n) {
          scales.push_back(static_cast<float>(g + 1));
          scales.push_back(0.0F);
        }
      }
      problem.set_scales(scales);
      const uint32_t bits = y == OMNI_DTYPE_F32 ? std::bit_cast<uint32_t>(sum) : bf16_round_ieee(sum);
      expect_contract(problem, std::vector<uint32_t>(static_cast<size_t>(shape.n), bits), name());
    }
  }
}

}  // namespace
}  // namespace okl::test
