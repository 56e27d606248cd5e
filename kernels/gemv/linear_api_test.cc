// SPDX-License-Identifier: Apache-2.0
// The linear entries as callers meet them: bad arguments, empty work, threads, the act-order gather, emulated machines.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <functional>
#include <numeric>

#include "tests/support/linear_run.h"

namespace okl::test {
namespace {

class LinearApi : public ::testing::Test {
 protected:
  LinearApi() : problem_(shape(), 1), plan_(make_plan(problem_, nullptr)), workspace_(make_workspace(*plan_, 2, Flush::kBack)) {}

  static LinearShape shape() {
    LinearShape s;
    s.n = 80;
    s.k = 64;
    s.m = 2;
    s.epilogue = OMNI_EPILOGUE_BIAS | OMNI_EPILOGUE_RESIDUAL;
    s.residual_type = OMNI_DTYPE_F32;
    return s;
  }
  omni_linear_args args() {
    omni_linear_args a = problem_.args();
    a.workspace = workspace_.data();
    a.workspace_bytes = workspace_.size();
    a.parallel = &serial_;
    return a;
  }
  // The status, a text that names `word`, and y untouched.
  void expect_refused(omni_status expected, const char* word, const std::function<void(omni_linear_args*)>& spoil) {
    problem_.clear_y();
    omni_linear_args a = args();
    spoil(&a);
    EXPECT_EQ(omni_run(plan_.get(), &a), expected) << word;
    EXPECT_NE(std::string(omni_last_error()).find(word), std::string::npos) << omni_last_error();
    for (size_t i = 0; i < problem_.y.size(); ++i) ASSERT_EQ(problem_.y.data()[i], 0x5A) << word;
  }

  LinearCase problem_;
  PlanPointer plan_;
  GuardedBuffer workspace_;
  omni_parallel serial_ = serial_parallel();
};

TEST_F(LinearApi, RefusesBadRunArguments) {
  expect_refused(OMNI_ERR_STRUCT_SIZE, "omni_linear_args.size", [](auto* a) { a->size = 8; });
  expect_refused(OMNI_ERR_SHAPE, "m 3", [](auto* a) { a->m = 3; });
  expect_refused(OMNI_ERR_NULL, "x is NULL", [](auto* a) { a->x = nullptr; });
  expect_refused(OMNI_ERR_NULL, "codes", [](auto* a) { a->codes = nullptr; });
  expect_refused(OMNI_ERR_NULL, "scales", [](auto* a) { a->scales = nullptr; });
  expect_refused(OMNI_ERR_NULL, "bias", [](auto* a) { a->bias = nullptr; });
  expect_refused(OMNI_ERR_NULL, "residual", [](auto* a) { a->residual = nullptr; });
  expect_refused(OMNI_ERR_NULL, "y is NULL", [](auto* a) { a->y = nullptr; });
  expect_refused(OMNI_ERR_NULL, "workspace", [](auto* a) { a->workspace = nullptr; });
  expect_refused(OMNI_ERR_STRIDE, "ldx 63", [](auto* a) { a->ldx = 63; });
  expect_refused(OMNI_ERR_STRIDE, "ldy 79", [](auto* a) { a->ldy = 79; });
  expect_refused(OMNI_ERR_STRIDE, "ld_residual -1", [](auto* a) { a->ld_residual = -1; });
  expect_refused(OMNI_ERR_OVERFLOW, "63 bits", [](auto* a) { a->ldx = INT64_MAX / 4; });
  expect_refused(OMNI_ERR_BUFFER_SIZE, "codes_bytes", [](auto* a) { a->codes_bytes -= 1; });
  expect_refused(OMNI_ERR_BUFFER_SIZE, "scales_bytes", [](auto* a) { a->scales_bytes = 80 * 4; });
  expect_refused(OMNI_ERR_BUFFER_SIZE, "workspace_bytes", [](auto* a) { a->workspace_bytes -= 1; });
  const auto shifted = [](const void* p, int by) { return static_cast<const uint8_t*>(p) + by; };
  expect_refused(OMNI_ERR_ALIGNMENT, "codes", [&](auto* a) { a->codes = shifted(a->codes, 8); });
  expect_refused(OMNI_ERR_ALIGNMENT, "x is", [&](auto* a) { a->x = shifted(a->x, 1); });
  expect_refused(OMNI_ERR_ALIGNMENT, "scales", [&](auto* a) { a->scales = shifted(a->scales, 1); });
  expect_refused(OMNI_ERR_ALIGNMENT, "residual", [&](auto* a) { a->residual = shifted(a->residual, 2); });
  expect_refused(OMNI_ERR_ALIGNMENT, "workspace", [](auto* a) { a->workspace = static_cast<uint8_t*>(a->workspace) + 32; });
  std::vector<int32_t> permutation(64);
  std::iota(permutation.begin(), permutation.end(), 0);
  permutation[7] = 64;
  expect_refused(OMNI_ERR_RANGE, "k_permutation[7] is 64", [&](auto* a) { a->k_permutation = permutation.data(); });
  permutation[7] = -1;
  expect_refused(OMNI_ERR_RANGE, "k_permutation[7] is -1", [&](auto* a) { a->k_permutation = permutation.data(); });
  omni_parallel broken = serial_;
  broken.parallel_for = nullptr;
  expect_refused(OMNI_ERR_NULL, "parallel_for", [&](auto* a) { a->parallel = &broken; });
  omni_parallel no_threads = serial_;
  no_threads.threads = 0;
  expect_refused(OMNI_ERR_RANGE, "threads is 0", [&](auto* a) { a->parallel = &no_threads; });
}

TEST_F(LinearApi, RefusesBadQueries) {
  const auto refused = [&](omni_status expected, const char* word, const std::function<void(omni_linear_query*)>& spoil) {
    omni_linear_query q = problem_.query();
    spoil(&q);
    omni_plan* plan = nullptr;
    EXPECT_EQ(omni_select(&q, &plan), expected) << word;
    EXPECT_NE(std::string(omni_last_error()).find(word), std::string::npos) << omni_last_error();
    EXPECT_EQ(plan, nullptr);
  };
  refused(OMNI_ERR_STRUCT_SIZE, "size is 4", [](auto* q) { q->size = 4; });
  refused(OMNI_ERR_GROUP, "48", [](auto* q) { q->weights.group = 48; });
  refused(OMNI_ERR_GROUP, "0", [](auto* q) { q->weights.group = 0; });
  refused(OMNI_ERR_SHAPE, "max_m 0", [](auto* q) { q->max_m = 0; });
  refused(OMNI_ERR_SHAPE, "max_m 1048577", [](auto* q) { q->max_m = OMNI_LINEAR_MOST_ROWS + 1; });
  refused(OMNI_ERR_TYPE, "x_type", [](auto* q) { q->x_type = OMNI_DTYPE_F32; });
  refused(OMNI_ERR_TYPE, "y_type", [](auto* q) { q->y_type = OMNI_DTYPE_F16; });
  refused(OMNI_ERR_TYPE, "numerics 9", [](auto* q) { q->numerics = 9; });
  refused(OMNI_ERR_TYPE, "numerics 257", [](auto* q) { q->numerics = 257; });
  refused(OMNI_ERR_TYPE, "epilogue 0x8", [](auto* q) { q->epilogue = 8; });
  refused(OMNI_ERR_TYPE, "residual_type", [](auto* q) { q->residual_type = OMNI_DTYPE_NONE; });
  refused(OMNI_ERR_LAYOUT, "version", [](auto* q) { q->weights.version = 2; });
  refused(OMNI_ERR_UNKNOWN_NAME, "gemv_nonsense", [](auto* q) { q->kernel = "gemv_nonsense"; });
  refused(OMNI_ERR_UNKNOWN_NAME, "sse9", [](auto* q) { q->max_isa = "sse9"; });
  refused(OMNI_ERR_NO_KERNEL, "does not compute", [](auto* q) { q->kernel = "gemv_group_bf16_tg4_1x64_avx2"; });
  EXPECT_EQ(omni_select(nullptr, nullptr), OMNI_ERR_NULL);
}

// Codes that another build of PyTorch or another format packed are refused by their tag, never read as tg4.
TEST_F(LinearApi, RefusesEveryOtherLayout) {
  for (const omni_format format :
       {OMNI_FORMAT_TORCH_AVX2, OMNI_FORMAT_TORCH_DEFAULT, OMNI_FORMAT_CODES_U8, OMNI_FORMAT_CODES_I32, OMNI_FORMAT_ROW_PAIRS,
        OMNI_FORMAT_ROW_HALVES, OMNI_FORMAT_GPTQ, OMNI_FORMAT_AWQ, OMNI_FORMAT_CT_PACKED}) {
    omni_linear_query query = problem_.query();
    ASSERT_EQ(omni_layout_init(&query.weights, format, 80, 64, 32, OMNI_DTYPE_BF16), OMNI_OK);
    omni_plan* plan = nullptr;
    EXPECT_EQ(omni_select(&query, &plan), OMNI_ERR_LAYOUT) << format;
    EXPECT_EQ(plan, nullptr);
  }
}

// Row-major source codes repacked into tg4 and run, x = 1, scale 1, zero 0, one tier.
std::vector<uint32_t> run_repacked(const LinearShape& shape, const char* tier, omni_repack_args repack) {
  LinearCase problem(shape, 1);
  problem.set_x_everywhere(1.0F);
  std::vector<float> scales(static_cast<size_t>(2 * shape.groups() * shape.n), 0.0F);
  for (size_t i = 0; i < scales.size(); i += 2) scales[i] = 1.0F;
  problem.set_scales(scales);
  omni_linear_query query = problem.query();
  query.max_isa = tier;
  omni_plan* selected = nullptr;
  EXPECT_EQ(omni_select(&query, &selected), OMNI_OK) << omni_last_error();
  const PlanPointer plan(selected);
  if (plan == nullptr) return {};
  GuardedBuffer workspace = make_workspace(*plan, 1, Flush::kBack);
  omni_linear_args args = problem.args();
  GuardedBuffer codes(args.codes_bytes, Flush::kBack, 16);
  repack.size = sizeof repack;
  repack.destination_format = OMNI_FORMAT_TG4;
  repack.n = shape.n;
  repack.k = shape.k;
  repack.destination = codes.data();
  repack.destination_bytes = codes.size();
  EXPECT_EQ(omni_repack(&repack), OMNI_OK) << omni_last_error();
  args.codes = codes.data();
  args.workspace = workspace.data();
  args.workspace_bytes = workspace.size();
  EXPECT_EQ(omni_run(plan.get(), &args), OMNI_OK) << omni_last_error();
  return problem.actual();
}

constexpr const char* kTiers[] = {"portable", "avx2", "avx512f", "avx512bf16"};
constexpr omni_numerics kClasses[] = {OMNI_NUMERICS_GROUP, OMNI_NUMERICS_TORCH};

// The last group is short and rows of the source are padded with code 15: a row of N must neither drift nor see the padding.
TEST(LinearShortGroup, PaddingOfSourceRowsIsNoWeight) {
  struct Shape {
    int64_t n, k;
  };
  for (const auto& [n, k] : {Shape{8, 80}, Shape{4, 4304}}) {
    const int64_t row_bytes = (k + 31) / 32 * 16;
    std::vector<uint8_t> rows(static_cast<size_t>(n * row_bytes), 0xFF);
    for (int64_t row = 0; row < n; ++row) {
      std::fill_n(rows.begin() + row * row_bytes, k / 2, static_cast<uint8_t>((8 + row) * 0x11));
    }
    omni_repack_args repack{};
    repack.source_format = OMNI_FORMAT_ROW_PAIRS;
    repack.source = rows.data();
    repack.source_bytes = rows.size();
    repack.source_ld = row_bytes;
    for (const char* tier : kTiers) {
      for (const omni_numerics numerics : kClasses) {
        LinearShape shape;
        shape.n = n;
        shape.k = k;
        shape.numerics = numerics;
        const std::vector<uint32_t> y = run_repacked(shape, tier, repack);
        ASSERT_EQ(y.size(), static_cast<size_t>(n));
        for (int64_t row = 0; row < n; ++row) {
          EXPECT_EQ(std::bit_cast<float>(y[static_cast<size_t>(row)]), static_cast<float>(k * row)) << tier << " " << numerics;
        }
      }
    }
  }
}

// AC-016: compressed-tensors pads every row to a 32-bit word; weight_shape [2, 12], codes 9 and 10, and other nibbles behind.
TEST(LinearShortGroup, WordsOfRowsEndInPadding) {
  constexpr uint32_t kWords[] = {0x99999999, 0xFFFF9999, 0xAAAAAAAA, 0x0000AAAA};
  omni_repack_args repack{};
  repack.source_format = OMNI_FORMAT_CT_PACKED;
  repack.source = kWords;
  repack.source_bytes = sizeof kWords;
  for (const char* tier : kTiers) {
    for (const omni_numerics numerics : kClasses) {
      LinearShape shape;
      shape.n = 2;
      shape.k = 12;
      shape.numerics = numerics;
      const std::vector<uint32_t> y = run_repacked(shape, tier, repack);
      ASSERT_EQ(y.size(), 2U);
      EXPECT_EQ(std::bit_cast<float>(y[0]), 12.0F) << tier << " " << numerics;
      EXPECT_EQ(std::bit_cast<float>(y[1]), 24.0F) << tier << " " << numerics;
    }
  }
}

TEST_F(LinearApi, EmptyWorkNeedsNothing) {
  omni_linear_args a{};
  a.size = sizeof a;
  EXPECT_EQ(omni_run(plan_.get(), &a), OMNI_OK) << omni_last_error();
  LinearShape none = shape();
  none.n = 0;
  none.epilogue = 0;
  none.residual_type = OMNI_DTYPE_NONE;
  LinearCase empty(none, 1);
  const PlanPointer plan = make_plan(empty, nullptr);
  ASSERT_NE(plan, nullptr);
  a.m = 2;
  EXPECT_EQ(omni_run(plan.get(), &a), OMNI_OK) << omni_last_error();
  EXPECT_EQ(omni_run_portion(plan_.get(), &a, 5, 5), OMNI_OK);
  EXPECT_EQ(omni_run_portion(plan_.get(), &a, 5, 81), OMNI_ERR_RANGE);
  EXPECT_EQ(omni_run_portion(plan_.get(), &a, -1, 5), OMNI_ERR_RANGE);
  EXPECT_EQ(omni_run_portion(plan_.get(), &a, 6, 5), OMNI_ERR_RANGE);
}

TEST_F(LinearApi, ResidualMayBeTheOutput) {
  omni_linear_args a = args();
  ASSERT_EQ(omni_run(plan_.get(), &a), OMNI_OK);
  const std::vector<uint32_t> expected = problem_.actual();
  std::memcpy(problem_.y.data(), problem_.residual.data(), problem_.y.size());
  a.residual = a.y;
  ASSERT_EQ(omni_run(plan_.get(), &a), OMNI_OK);
  EXPECT_EQ(problem_.actual(), expected);
}

// The gather of an act-order layer: position i multiplies x[permutation[i]].
TEST_F(LinearApi, GathersInputsThroughThePermutation) {
  std::vector<int32_t> permutation(64);
  std::iota(permutation.begin(), permutation.end(), 0);
  std::shuffle(permutation.begin(), permutation.end(), std::mt19937(4));
  omni_linear_args a = args();
  a.k_permutation = permutation.data();
  ASSERT_EQ(omni_run(plan_.get(), &a), OMNI_OK) << omni_last_error();
  const std::vector<uint32_t> gathered = problem_.actual();
  GuardedBuffer x(problem_.x.size(), Flush::kBack, 2);
  for (uint32_t row = 0; row < 2; ++row) {
    for (int64_t i = 0; i < 64; ++i) {
      x.as<uint16_t>()[row * 64 + i] = problem_.x.as<uint16_t>()[row * problem_.ldx() + permutation[static_cast<size_t>(i)]];
    }
  }
  a.k_permutation = nullptr;
  a.x = x.data();
  a.ldx = 64;
  ASSERT_EQ(omni_run(plan_.get(), &a), OMNI_OK);
  EXPECT_EQ(problem_.actual(), gathered);
}

// Any number of threads, more than there are blocks included, on every row: the bits of one thread.
TEST(LinearThreads, EveryThreadCount) {
  for (const int64_t n : {16, 64, 65, 640}) {
    LinearShape shape;
    shape.n = n;
    shape.k = 96;
    shape.m = 7;
    LinearCase problem(shape, 2);
    const std::vector<uint32_t> expected = problem.expected();
    const PlanPointer plan = make_plan(problem, nullptr);
    ASSERT_NE(plan, nullptr);
    GuardedBuffer workspace = make_workspace(*plan, shape.m, Flush::kFront);
    omni_linear_args args = problem.args();
    args.workspace = workspace.data();
    args.workspace_bytes = workspace.size();
    for (uint32_t threads = 1; threads <= 130; ++threads) {
      omni_pool* pool = nullptr;
      ASSERT_EQ(omni_pool_create(threads, &pool), OMNI_OK);
      omni_parallel parallel{};
      parallel.size = sizeof parallel;
      ASSERT_EQ(omni_pool_parallel(pool, &parallel), OMNI_OK);
      args.parallel = &parallel;
      for (int round = 0; round < (threads < 9 ? 5 : 1); ++round) {
        problem.clear_y();
        ASSERT_EQ(omni_run(plan.get(), &args), OMNI_OK);
        EXPECT_EQ(first_difference(problem, expected), "") << n << " channels, " << threads << " threads";
      }
      omni_pool_destroy(pool);
    }
  }
}

// A batch never changes a row: row r of m rows has the bits that it has alone, for the rows that serve one and many.
TEST(LinearBatch, RowsDoNotSeeEachOther) {
  for (const omni_numerics numerics : {OMNI_NUMERICS_GROUP, OMNI_NUMERICS_TORCH}) {
    LinearShape shape;
    shape.n = 144;
    shape.k = 256;
    shape.group = 128;
    shape.m = 16;
    shape.numerics = numerics;
    LinearCase problem(shape, 9);
    const PlanPointer plan = make_plan(problem, nullptr);
    ASSERT_NE(plan, nullptr);
    GuardedBuffer workspace = make_workspace(*plan, shape.m, Flush::kBack);
    const omni_parallel serial = serial_parallel();
    omni_linear_args args = problem.args();
    args.workspace = workspace.data();
    args.workspace_bytes = workspace.size();
    args.parallel = &serial;
    ASSERT_EQ(omni_run(plan.get(), &args), OMNI_OK);
    const std::vector<uint32_t> together = problem.actual();
    for (uint32_t m = 1; m < 16; ++m) {
      problem.clear_y();
      for (uint32_t row = 0; row < 16; row += m) {
        args.m = std::min(m, 16 - row);
        args.x = problem.x.as<uint16_t>() + row * problem.ldx();
        args.y = problem.y.as<float>() + row * problem.ldy();
        ASSERT_EQ(omni_run(plan.get(), &args), OMNI_OK);
      }
      ASSERT_EQ(problem.actual(), together) << "rows in batches of " << m;
    }
  }
}

TEST(LinearPlan, ConcurrentSelectionSharesOneKernel) {
  LinearShape shape;
  shape.n = 128;
  shape.k = 1184;  // a configuration that no other test makes
  const LinearCase problem(shape, 1);
  std::array<const char*, 8> names{};
  struct Context {
    const LinearCase& problem;
    std::array<const char*, 8>& names;
  } context{problem, names};
  omni_pool* pool = nullptr;
  ASSERT_EQ(omni_pool_create(8, &pool), OMNI_OK);
  omni_parallel parallel{};
  parallel.size = sizeof parallel;
  ASSERT_EQ(omni_pool_parallel(pool, &parallel), OMNI_OK);
  parallel.parallel_for(
      parallel.context, 8,
      [](void* p, int64_t i) {
        auto& c = *static_cast<Context*>(p);
        const omni_linear_query query = c.problem.query();
        omni_plan* plan = nullptr;
        if (omni_select(&query, &plan) != OMNI_OK) return;
        omni_plan_info info{};
        info.size = sizeof info;
        if (omni_plan_get_info(plan, &info) == OMNI_OK) c.names[static_cast<size_t>(i)] = info.kernel;
        omni_plan_destroy(plan);
      },
      &context);
  omni_pool_destroy(pool);
  for (const char* name : names) EXPECT_STREQ(name, names[0]);
  EXPECT_NE(names[0], nullptr);
}

TEST(LinearPlan, InfoNamesBothKernels) {
  LinearShape shape;
  shape.m = 4;
  const LinearCase problem(shape, 1);
  const PlanPointer plan = make_plan(problem, nullptr);
  omni_plan_info info{};
  info.size = sizeof info;
  ASSERT_EQ(omni_plan_get_info(plan.get(), &info), OMNI_OK);
  EXPECT_NE(find_kernel(info.kernel), nullptr);
  EXPECT_NE(find_kernel(info.kernel_rows), nullptr);
  EXPECT_STRNE(info.reason, "");
  info.size = 4;
  EXPECT_EQ(omni_plan_get_info(plan.get(), &info), OMNI_ERR_STRUCT_SIZE);
}

}  // namespace
}  // namespace okl::test
