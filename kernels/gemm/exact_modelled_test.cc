// SPDX-License-Identifier: Apache-2.0
// The rows of class exact that most processors cannot run (AMX, AVX-VNNI) against the contract, bit for bit: on a processor that
// has the instructions, else in the software model of them. A trap costs 11 us, so shapes are small.
#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/dispatch/kernel.h"
#include "kernels/gemm/exact_kernel.h"
#include "tests/support/abi_check.h"
#include "tests/support/exact_case.h"
#include "tests/support/linear_case.h"
#include "tests/support/modelled_cpu.h"
#include "tests/support/threads.h"

namespace okl::test {
namespace {

class ModelledRow : public ::testing::TestWithParam<const KernelRow*> {
 protected:
  void SetUp() override {
    const IsaMask missing = row().required & ~hardware_isa();
    if (missing != 0) GTEST_SKIP() << "not run: this processor lacks " << isa_to_text(missing) << ", which the model does not have";
  }
  const KernelRow& row() const { return *GetParam(); }
  const char* name() const { return row().name.data(); }
  bool w4() const { return row().weights == OMNI_FORMAT_W4S; }
  bool many() const { return row().op == Op::kGemm; }

  ExactShape base() const {
    ExactShape shape;
    shape.weights = row().weights;
    return shape;
  }
  void check(const ExactShape& shape, uint64_t seed, const omni_parallel& parallel = serial_parallel()) const {
    ExactCase problem(shape, seed);
    expect_exact(problem, problem.expected(), name(), &parallel);
    EXPECT_FALSE(cpu_.models_tiles() && amx_model::this_thread_tiles().configured()) << "tiles were not released";
  }

  const ModelledCpu cpu_;
};

std::vector<const KernelRow*> modelled_rows() {
  std::vector<const KernelRow*> rows;
  for (const KernelRow& row : registry()) {
    if (row.numerics == Numerics::kExact && (row.required & ModelledCpu::kModelled) != 0) rows.push_back(&row);
  }
  return rows;
}

INSTANTIATE_TEST_SUITE_P(Registry, ModelledRow, ::testing::ValuesIn(modelled_rows()),
                         [](const auto& info) { return std::string(info.param->name); });

TEST_P(ModelledRow, EveryChannelTail) {
  for (int64_t n : {1, 15, 16, 17, 31, 32, 33, 47, 48, 49, 63, 64, 65, 81, 97, 113, 128, 129}) {
    for (const Flush flush : {Flush::kFront, Flush::kBack}) {
      ExactShape shape = base();
      shape.n = n;
      shape.k = 96;
      shape.m = many() ? 3 : 1;
      shape.flush = flush;
      shape.x_padding = 24;
      shape.y_padding = n % 3;
      shape.zeros = w4() && n % 2 != 0;
      check(shape, static_cast<uint64_t>(n));
    }
  }
}

TEST_P(ModelledRow, EveryInputTailAndGroup) {
  for (int64_t k : {1, 3, 4, 31, 32, 33, 64, 95, 96, 127, 128, 129, 160, 257, 600}) {
    for (uint32_t group : {32U, 64U, 128U, 256U, static_cast<uint32_t>(k)}) {
      ExactShape shape = base();
      shape.n = 33;
      shape.k = k;
      shape.group = group;
      shape.m = many() && k % 2 != 0 ? 5 : 1;
      shape.zeros = w4() && k % 4 != 0;
      shape.flush = k % 3 == 0 ? Flush::kFront : Flush::kBack;
      check(shape, static_cast<uint64_t>(k) * 1000 + group);
    }
  }
}

TEST_P(ModelledRow, EveryRowCount) {
  if (!many()) return;
  for (uint32_t m : {1, 2, 7, 15, 16, 17, 18, 31, 32, 33, 47, 128, 129, 150}) {
    ExactShape shape = base();
    shape.n = 64;
    shape.k = 96;
    shape.m = m;
    shape.y_padding = 5;
    shape.zeros = w4() && m % 2 == 0;
    check(shape, m);
  }
}

TEST_P(ModelledRow, EveryTypeAndEpilogue) {
  for (const omni_dtype scale : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    for (const omni_dtype y : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
      for (uint32_t epilogue = 0; epilogue < 4; ++epilogue) {
        for (const omni_dtype residual : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
          const bool has_residual = (epilogue & OMNI_EPILOGUE_RESIDUAL) != 0;
          if (!has_residual && residual == OMNI_DTYPE_F32) continue;
          for (int64_t n : {23, 139}) {
            ExactShape shape = base();
            shape.n = n;
            shape.k = 100;
            shape.x_type = y;
            shape.m = many() ? 5 : 1;
            shape.scale_type = scale;
            shape.y_type = y;
            shape.epilogue = epilogue;
            shape.residual_type = has_residual ? residual : OMNI_DTYPE_NONE;
            shape.flush = epilogue % 2 == 0 ? Flush::kFront : Flush::kBack;
            shape.y_padding = 3;
            shape.zeros = w4() && n == 23;
            check(shape, static_cast<uint64_t>(n) + epilogue);
          }
        }
      }
    }
  }
}

TEST_P(ModelledRow, RandomShapes) {
  std::mt19937_64 random(std::hash<std::string_view>()(row().name));
  const auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  const omni_dtype types[] = {OMNI_DTYPE_BF16, OMNI_DTYPE_F32, OMNI_DTYPE_S8};
  for (int i = 0; i < 30; ++i) {
    ExactShape shape = base();
    shape.n = pick(1, 200);
    shape.k = pick(1, 300);
    const uint32_t groups[] = {32, 64, 128, 256, static_cast<uint32_t>(shape.k)};
    shape.group = groups[pick(0, 4)];
    shape.m = many() ? static_cast<uint32_t>(pick(1, 40)) : 1;
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

TEST_P(ModelledRow, EveryThreadCount) {
  for (const uint32_t threads : {2U, 8U}) {
    ExactShape shape = base();
    shape.n = 213;
    shape.k = 96;
    shape.m = many() ? 19 : 1;
    shape.zeros = w4();
    check(shape, threads, fresh_threads(&threads));
  }
}

// The largest products: s8 tiles neither saturate nor wrap. -128 is a code that a caller's own rows may hold.
TEST_P(ModelledRow, ExtremeProducts) {
  for (const int32_t weight : {w4() ? 0 : -128, w4() ? 15 : 127}) {
    for (const int8_t value : {int8_t{127}, int8_t{-128}}) {
      ExactShape shape = base();
      shape.n = 17;
      shape.k = 256;
      shape.group = 256;
      shape.m = many() ? 2 : 1;
      shape.zeros = w4();
      ExactCase problem(shape, 1);
      std::fill(problem.weights.begin(), problem.weights.end(), weight);
      problem.pack();
      std::fill_n(problem.x.as<int8_t>(), shape.m * shape.ldx(), value);
      const omni_parallel serial = serial_parallel();
      expect_exact(problem, problem.expected(), name(), &serial);
    }
  }
}

// AC-003: a row that is not a number stays alone, columns beyond K never count, and a batch gives each row what it gets alone.
TEST_P(ModelledRow, NaNStaysInItsRow) {
  for (int64_t k : {96, 160}) {
    ExactShape shape = base();
    shape.n = 32;
    shape.k = k;
    shape.m = many() ? 16 : 1;
    shape.x_padding = 24;
    ExactCase problem(shape, 5);
    for (uint32_t row = 0; row < shape.m; ++row) {
      for (int64_t i = k; i < shape.ldx(); ++i) problem.x.as<int8_t>()[row * shape.ldx() + i] = 127;
    }
    if (shape.m > 3) problem.x_scales.as<float>()[3] = std::numeric_limits<float>::quiet_NaN();
    const omni_parallel serial = serial_parallel();
    expect_exact(problem, problem.expected(), name(), &serial);
    for (uint32_t row = 0; row < shape.m; ++row) {
      for (int64_t n = 0; n < shape.n; ++n) {
        EXPECT_EQ(std::isnan(problem.y.as<float>()[row * shape.n + n]), row == 3 && shape.m > 3) << row << " " << n;
      }
    }
  }
}

TEST_P(ModelledRow, KeepsTheAbi) {
  if ((row().required & OMNI_ISA_AMX_TILE) == 0) GTEST_SKIP() << "called through the driver only";
  ExactConfig config{};
  config.k = config.group = 64;
  config.block = 64;
  config.weights = row().weights;
  config.scale_type = OMNI_DTYPE_F32;
  config.y_type = OMNI_DTYPE_F32;
  config.rows = many() ? 5 : 1;
  config.block_width = 64;
  const auto& kernel = row().as<Op::kGemm, Numerics::kExact>();
  config.rows = std::min(config.rows, kernel.direct_rows);
  const ExactCode code = kernel.make(config, row().name);
  ASSERT_NE(code.run, nullptr);
  alignas(64) static uint8_t codes[64 * 64], scratch[256 << 10];
  alignas(64) static int8_t x[5][192];
  float scales[64] = {}, x_scales[5] = {}, y[5 * 64] = {};
  ExactTile tile{};
  tile.codes = codes;
  tile.scales = reinterpret_cast<const uint8_t*>(scales);
  tile.scale_stride = sizeof scales;
  tile.x = x[0];
  tile.x_stride = sizeof x[0];
  tile.x_scales = x_scales;
  tile.y = reinterpret_cast<uint8_t*>(y);
  tile.ldy = 256;
  tile.channels = ~uint64_t{0};
  tile.blocks = 1;
  tile.rows = config.rows;
  tile.scratch = scratch;
  tile.config = &config;
  EXPECT_EQ(AbiTrampoline::call(code.run, static_cast<const ExactTile*>(&tile)), "");
}

}  // namespace
}  // namespace okl::test
