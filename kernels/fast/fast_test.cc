// SPDX-License-Identifier: Apache-2.0
// The kernels of class fast against the exact sum and its bound, on a processor with AMX or in the software model of one.
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "kernels/cpu/settings.h"
#include "kernels/dispatch/kernel.h"
#include "kernels/fast/fast_kernel.h"
#include "tests/support/abi_check.h"
#include "tests/support/fast_case.h"
#include "tests/support/linear_case.h"
#include "tests/support/linear_run.h"
#include "tests/support/modelled_cpu.h"
#include "tests/support/threads.h"

namespace okl::test {
namespace {

class FastRow : public ::testing::TestWithParam<omni_format> {
 protected:
  void SetUp() override {
    if ((hardware_isa() & kIsaAmxBf16Tier & ~ModelledCpu::kModelled) != (kIsaAmxBf16Tier & ~ModelledCpu::kModelled)) {
      GTEST_SKIP() << "not run: unpacking and folding need AVX-512 with VBMI";
    }
  }
  bool w4() const { return GetParam() == OMNI_FORMAT_TG4; }
  const char* name() const { return w4() ? "gemm_fast_bf16_tg4_16x64_amxbf16" : "gemm_fast_bf16_w16_16x64_amxbf16"; }
  FastShape base() const {
    FastShape shape;
    shape.weights = GetParam();
    return shape;
  }
  PlanPointer plan_for(const FastCase& problem, const char* kernel = nullptr) const {
    const omni_linear_query query = problem.query(kernel);
    omni_plan* plan = nullptr;
    EXPECT_EQ(omni_select(&query, &plan), OMNI_OK) << omni_last_error();
    return PlanPointer(plan);
  }
  void run(FastCase& problem, const omni_parallel& parallel = serial_parallel()) const {
    const PlanPointer plan = plan_for(problem);
    ASSERT_NE(plan, nullptr);
    omni_plan_info info{};
    info.size = sizeof info;
    ASSERT_EQ(omni_plan_get_info(plan.get(), &info), OMNI_OK);
    EXPECT_STREQ(info.kernel, name());
    GuardedBuffer workspace = make_workspace(*plan, problem.shape.m, problem.shape.flush);
    problem.clear_y();
    omni_linear_args args = problem.args();
    args.workspace = workspace.data();
    args.workspace_bytes = workspace.size();
    args.parallel = &parallel;
    ASSERT_EQ(omni_run(plan.get(), &args), OMNI_OK) << omni_last_error();
    EXPECT_FALSE(cpu_.models_tiles() && amx_model::this_thread_tiles().configured()) << "tiles were not released";
  }
  void check(const FastShape& shape, uint64_t seed) const {
    FastCase problem(shape, seed);
    run(problem);
    EXPECT_EQ(problem.first_violation(), "") << shape.text();
  }

  const ModelledCpu cpu_;
};

INSTANTIATE_TEST_SUITE_P(Formats, FastRow, ::testing::Values(OMNI_FORMAT_TG4, OMNI_FORMAT_W16),
                         [](const auto& info) { return std::string(info.param == OMNI_FORMAT_TG4 ? "tg4" : "w16"); });

TEST_P(FastRow, EveryChannelTail) {
  for (int64_t n : {1, 15, 16, 17, 31, 32, 33, 48, 49, 63, 64, 65, 80, 97, 113, 128, 129}) {
    for (const Flush flush : {Flush::kFront, Flush::kBack}) {
      FastShape shape = base();
      shape.n = n;
      shape.k = 96;
      shape.m = 3;
      shape.flush = flush;
      shape.x_padding = 24;
      shape.y_padding = n % 3;
      check(shape, static_cast<uint64_t>(n));
    }
  }
}

TEST_P(FastRow, EveryInputTailAndGroup) {
  for (int64_t k : {1, 2, 31, 32, 33, 64, 80, 95, 127, 128, 129, 160, 257, 600}) {
    for (uint32_t group : {32U, 64U, 128U, 256U, static_cast<uint32_t>(k)}) {
      if (!w4() && group != k) continue;
      FastShape shape = base();
      shape.n = 48;
      shape.k = k;
      shape.group = group;
      shape.m = k % 2 == 0 ? 1 : 5;
      shape.permuted = k % 3 == 0;
      shape.flush = k % 3 == 0 ? Flush::kFront : Flush::kBack;
      check(shape, static_cast<uint64_t>(k) * 1000 + group);
    }
  }
}

TEST_P(FastRow, EveryRowCount) {
  for (uint32_t m : {1, 2, 7, 15, 16, 17, 18, 31, 32, 33, 40, 47, 128, 129, 150}) {
    FastShape shape = base();
    shape.n = 64;
    shape.k = 64;
    shape.m = m;
    shape.y_padding = 5;
    check(shape, m);
  }
}

TEST_P(FastRow, EveryTypeAndEpilogue) {
  for (const omni_dtype scale : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    for (const omni_dtype y : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
      for (uint32_t epilogue = 0; epilogue < 4; ++epilogue) {
        for (const omni_dtype residual : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
          const bool has_residual = (epilogue & OMNI_EPILOGUE_RESIDUAL) != 0;
          if (!has_residual && residual == OMNI_DTYPE_F32) continue;
          for (int64_t n : {23, 64, 139}) {
            FastShape shape = base();
            shape.n = n;
            shape.k = 100;
            shape.m = 5;
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

TEST_P(FastRow, AnySplitOfChannelsAndAnyThreads) {
  FastShape shape = base();
  shape.n = 213;
  shape.k = 96;
  shape.m = 19;
  FastCase problem(shape, 7);
  const PlanPointer plan = plan_for(problem);
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
  const int64_t cuts[] = {0, 1, 70, 75, 128, 200, 213};
  for (size_t i = std::size(cuts) - 1; i-- > 0;) {
    ASSERT_EQ(omni_run_portion(plan.get(), &args, cuts[i], cuts[i + 1]), OMNI_OK) << omni_last_error();
  }
  EXPECT_EQ(problem.first_violation(), "");
  problem.clear_y();
  ASSERT_EQ(omni_run_portion(plan.get(), &args, 70, 75), OMNI_OK);
  for (int64_t channel : {69, 75}) EXPECT_EQ(std::bit_cast<uint32_t>(static_cast<float>(problem.actual(0, channel))), 0x5A5A5A5AU);
  for (const uint32_t threads : {2U, 8U}) {
    FastCase threaded(shape, threads);
    run(threaded, fresh_threads(&threads));
    EXPECT_EQ(threaded.first_violation(), "") << threads << " threads";
  }
}

// AC-003: a NaN row, NaN columns beyond K, and K no multiple of 32. Other rows are exact, for the sums are small integers.
TEST_P(FastRow, NaNStaysInItsRow) {
  for (int64_t k : {40, 48, 80}) {
    for (const Flush flush : {Flush::kFront, Flush::kBack}) {
      FastShape shape = base();
      shape.n = 32;
      shape.k = k;
      shape.group = static_cast<uint32_t>(k);
      shape.x_padding = 24;
      shape.flush = flush;
      FastCase problem(shape, 1);
      std::fill(problem.weights.begin(), problem.weights.end(), w4() ? uint16_t{9} : uint16_t{0x3F80});
      problem.pack();
      if (w4()) problem.set_scales(1, 0);
      for (uint32_t row = 0; row < shape.m; ++row) {
        for (int64_t i = 0; i < k; ++i) problem.x_at(row, i) = row == 3 ? 0x7FC0 : 0x3F80;
      }
      run(problem);
      for (uint32_t row = 0; row < shape.m; ++row) {
        for (int64_t channel = 0; channel < shape.n; ++channel) {
          if (row == 3) {
            EXPECT_EQ(problem.y.as<uint32_t>()[row * shape.n + channel], kF32NaN);
          } else {
            EXPECT_EQ(problem.actual(row, channel), static_cast<double>(k)) << row << " " << channel;
          }
        }
      }
    }
  }
}

TEST_P(FastRow, InfinitiesAndSmallValues) {
  FastShape shape = base();
  shape.n = 32;
  shape.k = 64;
  shape.m = 6;
  FastCase problem(shape, 9);
  // Weights above zero, whose parts with and without the zero agree in sign: an infinity stays one.
  for (auto& weight : problem.weights)
    weight = w4() ? static_cast<uint16_t>(9 + weight % 7) : static_cast<uint16_t>(weight & 0x7FFF);
  problem.pack();
  if (w4()) problem.set_scales(1, 1);
  problem.x_at(1, 5) = 0x7F80;
  problem.x_at(2, 63) = 0xFF80;
  for (int64_t i = 0; i < shape.k; ++i) problem.x_at(4, i) = 0x0001;  // subnormal
  run(problem);
  EXPECT_EQ(problem.first_violation(), "");
}

TEST_P(FastRow, KeepsTheAbi) {
  const KernelRow* row = find_kernel(name());
  ASSERT_NE(row, nullptr);
  FastConfig config{};
  config.k = config.group = config.block = 64;
  config.weights = GetParam();
  config.scale_type = OMNI_DTYPE_F32;
  config.y_type = OMNI_DTYPE_F32;
  config.rows = 5;
  config.block_width = 64;
  const auto& kernel = row->as<Op::kGemm, Numerics::kFast>();
  const FastCode code = kernel.make(config, row->name);
  ASSERT_NE(code.run, nullptr);
  alignas(64) static uint8_t codes[64 * 64 * 2], scratch[64 << 10];
  alignas(64) uint16_t x[5][96] = {};
  float scales[128] = {}, sums[5] = {}, y[5 * 64] = {};
  FastTile tile{};
  tile.codes = codes;
  tile.scales = reinterpret_cast<const uint8_t*>(scales);
  tile.scale_stride = sizeof scales;
  tile.x = x[0];
  tile.x_stride = sizeof x[0];
  tile.sums = sums;
  tile.y = reinterpret_cast<uint8_t*>(y);
  tile.ldy = 256;
  tile.channels = ~uint64_t{0};
  tile.blocks = 1;
  tile.rows = 5;
  tile.scratch = scratch;
  ASSERT_LE(kernel.scratch_bytes(config), sizeof scratch);
  EXPECT_EQ(AbiTrampoline::call(code.run, static_cast<const FastTile*>(&tile)), "");
}

// Without AMX, and where permission is refused, class fast is served by class group, and says so.
TEST(FastClass, IsServedByClassGroupWithoutAmx) {
  for (const Permission permission : {Permission::kInvalid, Permission::kMaskedCpuid}) {
    const ModelledCpu cpu(permission);
    FastShape shape;
    shape.m = 20;
    const FastCase problem(shape, 1);
    const omni_linear_query query = problem.query();
    omni_plan* made = nullptr;
    ASSERT_EQ(omni_select(&query, &made), OMNI_OK) << omni_last_error();
    const PlanPointer plan(made);
    omni_plan_info info{};
    info.size = sizeof info;
    ASSERT_EQ(omni_plan_get_info(plan.get(), &info), OMNI_OK);
    const std::string kernel = info.kernel_rows, reason = info.reason_rows;
    EXPECT_NE(kernel.find("_group_bf16_tg4_"), std::string::npos) << kernel;
    EXPECT_NE(reason.find("class fast is served by class group"), std::string::npos) << reason;
    EXPECT_NE(reason.find(permission == Permission::kInvalid ? "EINVAL" : "no AMX"), std::string::npos) << reason;
  }
}

TEST(FastClass, AKernelOfItsOwnThatCannotRunIsAnError) {
  const ModelledCpu cpu(Permission::kForbidden);
  const FastCase problem(FastShape{}, 1);
  const omni_linear_query query = problem.query("gemm_fast_bf16_tg4_16x64_amxbf16");
  omni_plan* plan = nullptr;
  EXPECT_EQ(omni_select(&query, &plan), OMNI_ERR_NO_KERNEL);
  EXPECT_NE(std::string(omni_last_error()).find("EPERM"), std::string::npos) << omni_last_error();
}

// A class with a promise is never served by class fast.
TEST(FastClass, IsNotChosenUnasked) {
  const ModelledCpu cpu;
  const FastCase problem(FastShape{}, 1);
  omni_linear_query query = problem.query();
  query.numerics = OMNI_NUMERICS_GROUP;
  omni_plan* made = nullptr;
  ASSERT_EQ(omni_select(&query, &made), OMNI_OK) << omni_last_error();
  const PlanPointer plan(made);
  omni_plan_info info{};
  info.size = sizeof info;
  ASSERT_EQ(omni_plan_get_info(plan.get(), &info), OMNI_OK);
  EXPECT_EQ(info.isa_required & kIsaAmxBits, 0U) << info.kernel_rows;
}

}  // namespace
}  // namespace okl::test
