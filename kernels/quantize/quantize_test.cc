// SPDX-License-Identifier: Apache-2.0
// The row quantiser against its formula, the goldens of vLLM's operator, and the edges of its input.
#include "kernels/quantize/quantize.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/support/abi_check.h"
#include "tests/support/golden_file.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/row_kernels.h"
#include "tests/support/threads.h"
#include "tools/common/safetensors.h"

namespace okl::test {
namespace {

struct Quantised {
  std::vector<int8_t> codes;
  float scale;
};

// The formula as it stands in docs/numerics.md.
Quantised reference(const std::vector<float>& x) {
  Quantised result{std::vector<int8_t>(x.size()), 0};
  float amax = 1e-7F;
  for (const float value : x) {
    if (!std::isfinite(value)) {
      result.scale = from_bits(0x7FC00000);
      return result;
    }
    amax = std::fmax(amax, std::fabs(value));
  }
  result.scale = amax / 127.0F;
  for (size_t i = 0; i < x.size(); ++i) result.codes[i] = static_cast<int8_t>(std::nearbyint(x[i] * (127.0F / amax)));
  return result;
}

OwnedPlan make_plan(uint16_t x_type, int64_t k, const char* kernel) {
  omni_quantize_query query = {};
  query.size = sizeof query;
  query.x_type = x_type;
  query.k = k;
  query.kernel = kernel;
  omni_plan* plan = nullptr;
  EXPECT_EQ(omni_quantize_select(&query, &plan), OMNI_OK) << omni_last_error();
  return OwnedPlan(plan);
}

class Quantize : public KernelTest {};

// One row through the plan, between guards, the columns behind it NaN.
void check_row(const char* kernel, uint16_t x_type, const std::vector<float>& values, Flush flush) {
  const auto k = static_cast<int64_t>(values.size());
  const OwnedPlan plan = make_plan(x_type, k, kernel);
  GuardedBuffer x(static_cast<size_t>(k) * bytes_of_type(x_type), flush, bytes_of_type(x_type)),
      codes(static_cast<size_t>(k), flush), scale(4, flush, 4);
  std::vector<float> stored(values.size());
  for (int64_t i = 0; i < k; ++i) {
    put(x.data(), x_type, i, values[static_cast<size_t>(i)]);
    stored[static_cast<size_t>(i)] = get(x.data(), x_type, i);
  }
  x.make_read_only();
  omni_quantize_args args = {};
  args.size = sizeof args;
  args.m = 1;
  args.x = x.data();
  args.ldx = k;
  args.codes = codes.as<int8_t>();
  args.ld_codes = k;
  args.scales = scale.as<float>();
  ASSERT_EQ(omni_quantize_run(plan.get(), &args), OMNI_OK) << omni_last_error();
  const Quantised expected = reference(stored);
  ASSERT_TRUE(same_bits(*scale.as<float>(), expected.scale)) << kernel << " k=" << k << ": " << *scale.as<float>();
  for (int64_t i = 0; i < k; ++i) {
    ASSERT_EQ(codes.as<int8_t>()[i], expected.codes[static_cast<size_t>(i)]) << kernel << " k=" << k << " element " << i;
  }
  EXPECT_TRUE(codes.intact() && scale.intact()) << kernel << " k=" << k;
}

TEST_P(Quantize, EqualsTheFormulaForEveryLength) {
  std::mt19937_64 random(1);
  for (const uint16_t type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    for (int64_t k = 0; k < 300; k = k < 140 ? k + 1 : k + 37) {
      std::vector<float> values(static_cast<size_t>(k));
      for (float& value : values) value = random_value(random, -8, 3);
      check_row(kernel(), type, values, k % 2 == 0 ? Flush::kBack : Flush::kFront);
      if (HasFatalFailure()) return;
    }
  }
}

// Every position of the largest element and of one that is not finite: none is missed.
TEST_P(Quantize, FindsTheLargestWhereverItStands) {
  for (const uint16_t type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    for (size_t at = 0; at < 133; ++at) {
      std::vector<float> values(133, 0.25F);
      for (const float special : {-8.0F, 8.0F, from_bits(0x7F800000), from_bits(0xFF800000), from_bits(0x7FC00001), -1e38F}) {
        values[at] = special;
        check_row(kernel(), type, values, Flush::kBack);
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Quantize, Edges) {
  const auto values = [](std::initializer_list<float> first, size_t count = 64) {
    std::vector<float> row(first);
    row.resize(count);
    return row;
  };
  for (const uint16_t type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    check_row(kernel(), type, values({-1.0F, 0.5F}), Flush::kBack);
    check_row(kernel(), type, std::vector<float>(64, -0.0F), Flush::kBack);
    check_row(kernel(), type, values({1e-30F, -1e-30F, from_bits(1)}), Flush::kBack);
    check_row(kernel(), type, values({1e-7F, -1e-7F, 5e-8F}), Flush::kBack);
    check_row(kernel(), type, values({3.4028235e38F, -3.4028235e38F, 1e38F, 1.0F}), Flush::kBack);
    // Ties: with amax 127 the product is x itself.
    check_row(kernel(), type, values({127.0F, 0.5F, 1.5F, 2.5F, -0.5F, -1.5F, -2.5F, 63.5F, 64.5F, -126.5F}), Flush::kBack);
  }
}

// AC-007: the extreme value is -127, never -128.  AC-008: zeros give scale 1e-7 / 127 and codes 0.
TEST_P(Quantize, TheExtremeIsMinus127AndZerosAreZeros) {
  const OwnedPlan plan = make_plan(OMNI_DTYPE_F32, 4, kernel());
  const float x[8] = {-1.0F, 0.5F, 0.0F, 0.0F, 0.0F, -0.0F, 0.0F, -0.0F};
  int8_t codes[8];
  float scales[2];
  omni_quantize_args args = {sizeof args, 2, x, 4, codes, 4, scales, nullptr};
  ASSERT_EQ(omni_quantize_run(plan.get(), &args), OMNI_OK);
  EXPECT_EQ(codes[0], -127);
  EXPECT_EQ(codes[1], 64);  // 63.5 to even
  EXPECT_EQ(scales[1], 1e-7F / 127.0F);
  for (int i = 4; i < 8; ++i) EXPECT_EQ(codes[i], 0);
}

TEST_P(Quantize, GoldensOfTheOperatorThatItFollows) {
  int files = 0;
  for (const char* name : {"w4a8_128x512_g128", "w4a8_64x256_g128", "w4a8_64x512_g256", "w4a8_96x256_g64_asym", "w8a8_48x200_g128",
                           "w8a8_64x256_perchannel"}) {
    const std::string path = golden_path("int4", std::string(name) + ".safetensors");
    if (path.empty()) continue;
    ++files;
    const auto file = omni_files::SafetensorsFile::open(path);
    const std::vector<int64_t> shape = file.at("act_bf16").shape;
    const auto x = file.at("act_bf16").as<uint16_t>();
    const auto expected_codes = file.at("act_s8").as<int8_t>();
    const auto expected_scales = file.at("act_scale_f32").as<float>();
    const OwnedPlan plan = make_plan(OMNI_DTYPE_BF16, shape[1], kernel());
    std::vector<int8_t> codes(expected_codes.size());
    std::vector<float> scales(expected_scales.size());
    omni_quantize_args args = {
        sizeof args, static_cast<uint32_t>(shape[0]), x.data(), shape[1], codes.data(), shape[1], scales.data(), nullptr};
    ASSERT_EQ(omni_quantize_run(plan.get(), &args), OMNI_OK);
    EXPECT_EQ(codes, expected_codes) << name;
    EXPECT_EQ(std::memcmp(scales.data(), expected_scales.data(), scales.size() * 4), 0) << name;
  }
  if (files == 0) GTEST_SKIP() << "no golden file here: set OMNI_GOLDENS";
}

// Rows of a batch are the rows alone, whatever the leading dimensions and threads; padding is neither read nor written.
TEST_P(Quantize, RowsAreIndependent) {
  std::mt19937_64 random(7);
  const int64_t k = 200, ldx = 211, ld_codes = 205, m = 173;
  const OwnedPlan plan = make_plan(OMNI_DTYPE_BF16, k, kernel());
  std::vector<uint16_t> x(static_cast<size_t>(m * ldx), 0x7FC0);
  for (int64_t r = 0; r < m; ++r) {
    for (int64_t i = 0; i < k; ++i) x[static_cast<size_t>(r * ldx + i)] = bf16_round_ieee(random_value(random));
  }
  x[static_cast<size_t>(5 * ldx + 3)] = 0x7F80;  // row 5 is not finite, its neighbours are
  std::vector<int8_t> alone(static_cast<size_t>(m * ld_codes), 77);
  std::vector<float> alone_scales(static_cast<size_t>(m));
  for (int64_t r = 0; r < m; ++r) {
    omni_quantize_args args = {
        sizeof args, 1, x.data() + r * ldx, ldx, alone.data() + r * ld_codes, ld_codes, &alone_scales[static_cast<size_t>(r)],
        nullptr};
    ASSERT_EQ(omni_quantize_run(plan.get(), &args), OMNI_OK);
  }
  EXPECT_TRUE(std::isnan(alone_scales[5]));
  EXPECT_TRUE(std::isfinite(alone_scales[4]) && std::isfinite(alone_scales[6]));
  for (const uint32_t threads : {1U, 3U}) {
    std::vector<int8_t> codes(alone.size(), 77);
    std::vector<float> scales(alone_scales.size());
    const omni_parallel parallel = threads == 1 ? backwards(1) : fresh_threads(&threads);
    omni_quantize_args args = {sizeof args, m, x.data(), ldx, codes.data(), ld_codes, scales.data(), &parallel};
    ASSERT_EQ(omni_quantize_run(plan.get(), &args), OMNI_OK);
    EXPECT_EQ(codes, alone);
    EXPECT_EQ(std::memcmp(scales.data(), alone_scales.data(), scales.size() * 4), 0);
  }
}

TEST_P(Quantize, KeepsTheCallersState) {
  const QuantizeKernel& implementation = row().as<Op::kQuantize>();
  std::vector<float> x(100, 1.5F);
  int8_t codes[100];
  float scale;
  const QuantizeRow argument = {x.data(), 100, codes, &scale};
  EXPECT_EQ(AbiTrampoline::call(implementation.f32, &argument), "");
  EXPECT_EQ(AbiTrampoline::call(implementation.bf16, &argument), "");
}

INSTANTIATE_TEST_SUITE_P(Kernels, Quantize, testing::ValuesIn(kernels_of(Op::kQuantize)), kernel_test_name);

TEST(QuantizeArguments, BadOnesAreRefusedAndTouchNothing) {
  omni_quantize_query query = {sizeof query, OMNI_DTYPE_BF16, 0, 64, nullptr, nullptr};
  omni_plan* made = nullptr;
  const auto select = [&](const auto& change) {
    omni_quantize_query changed = query;
    change(changed);
    const omni_status status = omni_quantize_select(&changed, &made);
    EXPECT_NE(std::string(omni_last_error()), "");
    return status;
  };
  EXPECT_EQ(omni_quantize_select(nullptr, &made), OMNI_ERR_NULL);
  EXPECT_EQ(omni_quantize_select(&query, nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(select([](auto& q) { q.size = 4; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(select([](auto& q) { q.x_type = OMNI_DTYPE_F16; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.reserved = 1; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.k = -1; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.kernel = "quantize"; }), OMNI_ERR_UNKNOWN_NAME);
  EXPECT_EQ(select([](auto& q) { q.kernel = "pack_tg4_64x16_portable"; }), OMNI_ERR_NO_KERNEL);
  EXPECT_EQ(select([](auto& q) { q.kernel = "quantize_avx2", q.max_isa = "portable"; }), OMNI_ERR_NO_KERNEL);
  EXPECT_EQ(select([](auto& q) { q.max_isa = "avx3"; }), OMNI_ERR_UNKNOWN_NAME);
  EXPECT_EQ(made, nullptr);

  const OwnedPlan plan = make_plan(OMNI_DTYPE_BF16, 64, nullptr);
  std::vector<uint16_t> x(130, 0x3F80);
  std::vector<int8_t> codes(130, 77);
  float scales[2] = {5, 5};
  const omni_quantize_args good = {sizeof good, 2, x.data(), 64, codes.data(), 64, scales, nullptr};
  const auto run = [&](const auto& change) {
    omni_quantize_args args = good;
    change(args);
    const omni_status status = omni_quantize_run(plan.get(), &args);
    EXPECT_TRUE(status == OMNI_OK || omni_last_error()[0] != '\0');
    EXPECT_EQ(codes, std::vector<int8_t>(130, 77));
    EXPECT_EQ(scales[0], 5);
    return status;
  };
  EXPECT_EQ(omni_quantize_run(nullptr, &good), OMNI_ERR_NULL);
  EXPECT_EQ(omni_quantize_run(plan.get(), nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(run([](auto& a) { a.size = 8; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(run([](auto& a) { a.x = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run([](auto& a) { a.codes = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run([](auto& a) { a.scales = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run([](auto& a) { a.ldx = 63; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(run([](auto& a) { a.ld_codes = 63; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(run([](auto& a) { a.ldx = INT64_MAX; }), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(run([](auto& a) { a.x = reinterpret_cast<const char*>(a.x) + 1; }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run([](auto& a) { a.scales = reinterpret_cast<float*>(reinterpret_cast<char*>(a.scales) + 2); }), OMNI_ERR_ALIGNMENT);
  const omni_parallel broken = {4, 1, nullptr, nullptr};
  EXPECT_EQ(run([&](auto& a) { a.parallel = &broken; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(run([](auto& a) { a.m = 0, a.x = nullptr, a.codes = nullptr, a.scales = nullptr; }), OMNI_OK);
}

TEST(QuantizePlan, TellsItsKernel) {
  const OwnedPlan plan = make_plan(OMNI_DTYPE_BF16, 64, "quantize_portable");
  omni_plan_info info = {};
  info.size = sizeof info;
  ASSERT_EQ(omni_plan_get_info(plan.get(), &info), OMNI_OK);
  EXPECT_STREQ(info.kernel, "quantize_portable");
  EXPECT_STREQ(info.code, "compiled");
  EXPECT_STREQ(info.reason, "forced by name");
}

TEST(QuantizeRowFor, IsOfTheBestTier) {
  EXPECT_EQ(quantize_row_for(0, OMNI_DTYPE_F32), find_kernel("quantize_portable")->as<Op::kQuantize>().f32);
  EXPECT_EQ(quantize_row_for(kIsaAvx2Tier, OMNI_DTYPE_BF16), find_kernel("quantize_avx2")->as<Op::kQuantize>().bf16);
}

}  // namespace
}  // namespace okl::test
