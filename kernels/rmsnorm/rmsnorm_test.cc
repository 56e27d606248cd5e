// SPDX-License-Identifier: Apache-2.0
// RMSNorm on every tier against the contract in scalar form, bit for bit.
#include "kernels/rmsnorm/rmsnorm_kernel.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "tests/support/abi_check.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/row_kernels.h"
#include "tests/support/threads.h"

namespace okl::test {
namespace {

struct Case {
  omni_rmsnorm_query query = {};
  uint32_t m = 1;
  int64_t extra = 0;  // columns behind each row, NaN
  std::vector<float> x, weight, residual;

  Case() {
    query.size = sizeof query;
    query.x_type = query.y_type = query.weight_type = OMNI_DTYPE_BF16;
    query.n = 64;
    query.eps = 1e-6F;
  }
  void fill(uint64_t seed) {
    std::mt19937_64 random(seed);
    const auto count = static_cast<size_t>(m * query.n);
    x.resize(count), residual.resize(count), weight.resize(static_cast<size_t>(query.n));
    for (float& value : x) value = random_value(random, -6, 3);
    for (float& value : residual) value = random_value(random, -6, 3);
    for (float& value : weight) value = random_value(random, -2, 1);
  }
};

float rounded(float value, uint16_t type) {
  if (type == OMNI_DTYPE_BF16) return bf16_to_float(bf16_round_group(value));
  return std::isnan(value) ? from_bits(kF32NaN) : value;
}

struct Row {
  std::vector<float> h, y;  // as stored; y before quantisation
  std::vector<int8_t> codes;
  float scale = 0;
};

// docs/numerics.md, "Element-wise", element by element.
Row reference(const Case& c, size_t r) {
  const auto n = static_cast<size_t>(c.query.n);
  const auto operand = [](float value, uint16_t type) {
    return type == OMNI_DTYPE_BF16 ? bf16_to_float(bf16_round_ieee(value)) : value;
  };
  Row row{std::vector<float>(n), std::vector<float>(n), std::vector<int8_t>(n)};
  float lanes[64] = {};
  for (size_t i = 0; i < n; ++i) {
    row.h[i] = operand(c.x[r * n + i], c.query.x_type);
    if (c.query.residual_type != OMNI_DTYPE_NONE) {
      row.h[i] = rounded(operand(c.residual[r * n + i], c.query.residual_type) + row.h[i], c.query.residual_type);
    }
    lanes[i % 64] = std::fma(row.h[i], row.h[i], lanes[i % 64]);
  }
  for (int half = 32; half > 0; half /= 2) {
    for (int i = 0; i < half; ++i) lanes[i] += lanes[i + half];
  }
  const float inverse = 1.0F / std::sqrt(lanes[0] / static_cast<float>(n) + c.query.eps);
  float amax = 1e-7F;
  bool finite = true;
  for (size_t i = 0; i < n; ++i) {
    float y = row.h[i] * inverse;
    if (c.query.rounding == OMNI_RMSNORM_TWO_ROUNDINGS) y = rounded(y, OMNI_DTYPE_BF16);
    if (c.query.weight_type != OMNI_DTYPE_NONE) y = y * operand(c.weight[i], c.query.weight_type);
    row.y[i] = rounded(y, c.query.y_type == OMNI_DTYPE_S8 ? c.query.code_source : c.query.y_type);
    finite = finite && std::isfinite(row.y[i]);
    amax = std::fmax(amax, std::fabs(row.y[i]));
  }
  row.scale = finite ? amax / 127.0F : from_bits(kF32NaN);
  for (size_t i = 0; finite && i < n; ++i) row.codes[i] = static_cast<int8_t>(std::nearbyint(row.y[i] * (127.0F / amax)));
  return row;
}

struct Output {
  std::vector<uint32_t> y, h;  // bits
  std::vector<float> scales;
};

OwnedPlan make_plan(const omni_rmsnorm_query& query, const char* kernel) {
  omni_rmsnorm_query named = query;
  named.kernel = kernel;
  omni_plan* plan = nullptr;
  EXPECT_EQ(omni_rmsnorm_select(&named, &plan), OMNI_OK) << omni_last_error();
  return OwnedPlan(plan);
}

// Operands between guards; what lies behind a row must be neither read into a result nor written.
Output run(const Case& c, const char* kernel, Flush flush = Flush::kBack, const omni_parallel* parallel = nullptr) {
  const omni_rmsnorm_query& q = c.query;
  const int64_t n = q.n, ld = n + c.extra, m = c.m;
  const auto bytes = [&](uint16_t type) { return static_cast<size_t>((m - 1) * ld + n) * bytes_of_type(type); };
  const bool adds = q.residual_type != OMNI_DTYPE_NONE, weighs = q.weight_type != OMNI_DTYPE_NONE;
  GuardedBuffer x(bytes(q.x_type), flush, bytes_of_type(q.x_type), 0xFF), y(bytes(q.y_type), flush, bytes_of_type(q.y_type));
  GuardedBuffer residual(adds ? bytes(q.residual_type) : 4, flush, adds ? bytes_of_type(q.residual_type) : 4, 0xFF);
  GuardedBuffer weight(weighs ? static_cast<size_t>(n) * bytes_of_type(q.weight_type) : 4, flush,
                       weighs ? bytes_of_type(q.weight_type) : 4);
  GuardedBuffer scales(static_cast<size_t>(m) * 4, flush, 4);
  for (int64_t i = 0; i < m * n; ++i) {
    const int64_t at = i / n * ld + i % n;
    put(x.data(), q.x_type, at, c.x[static_cast<size_t>(i)]);
    if (adds) put(residual.data(), q.residual_type, at, c.residual[static_cast<size_t>(i)]);
    if (weighs && i < n) put(weight.data(), q.weight_type, i, c.weight[static_cast<size_t>(i)]);
  }
  x.make_read_only();
  weight.make_read_only();
  const OwnedPlan plan = make_plan(q, kernel);
  omni_rmsnorm_args args = {};
  args.size = sizeof args;
  args.m = c.m;
  args.x = x.data(), args.ldx = ld;
  args.weight = weighs ? weight.data() : nullptr;
  args.residual = adds ? residual.data() : nullptr, args.ld_residual = ld;
  args.y = y.data(), args.ldy = ld;
  args.scales = q.y_type == OMNI_DTYPE_S8 ? scales.as<float>() : nullptr;
  args.parallel = parallel;
  EXPECT_EQ(omni_rmsnorm_run(plan.get(), &args), OMNI_OK) << omni_last_error();
  Output out;
  for (int64_t i = 0; i < m * n; ++i) {
    const int64_t at = i / n * ld + i % n;
    out.y.push_back(get_bits(y.data(), q.y_type, at));
    if (adds) out.h.push_back(get_bits(residual.data(), q.residual_type, at));
  }
  out.scales.assign(scales.as<float>(), scales.as<float>() + (q.y_type == OMNI_DTYPE_S8 ? m : 0));
  EXPECT_TRUE(y.intact() && x.intact() && weight.intact() && residual.intact() && scales.intact()) << kernel;
  for (int64_t r = 0; r + 1 < m; ++r) {
    for (int64_t i = n; i < ld; ++i) {
      EXPECT_EQ(get_bits(y.data(), q.y_type, r * ld + i), get_bits(y.data(), q.y_type, n)) << "padding of y was written";
      if (adds) {
        EXPECT_EQ(get_bits(residual.data(), q.residual_type, r * ld + i), q.residual_type == OMNI_DTYPE_F32 ? ~0U : 0xFFFFU);
      }
    }
  }
  return out;
}

uint32_t bits_as(uint16_t type, float value) {
  if (type == OMNI_DTYPE_F32) return std::bit_cast<uint32_t>(value);
  return std::bit_cast<uint32_t>(value) >> 16;
}

std::string describe(const Case& c) {
  char text[200];
  std::snprintf(text, sizeof text, "n=%ld m=%u x=%u w=%u h=%u y=%u source=%u rounding=%u", static_cast<long>(c.query.n), c.m,
                c.query.x_type, c.query.weight_type, c.query.residual_type, c.query.y_type, c.query.code_source, c.query.rounding);
  return text;
}

void expect_reference(const Case& c, const Output& out, const char* kernel) {
  const auto n = static_cast<size_t>(c.query.n);
  for (size_t r = 0; r < c.m; ++r) {
    const Row row = reference(c, r);
    for (size_t i = 0; i < n; ++i) {
      const bool codes = c.query.y_type == OMNI_DTYPE_S8;
      const uint32_t expected = codes ? static_cast<uint8_t>(row.codes[i]) : bits_as(c.query.y_type, row.y[i]);
      ASSERT_EQ(out.y[r * n + i], expected) << kernel << " " << describe(c) << " row " << r << " element " << i;
      if (!out.h.empty()) {
        ASSERT_EQ(out.h[r * n + i], bits_as(c.query.residual_type, row.h[i])) << kernel << " " << describe(c) << " h " << i;
      }
    }
    if (c.query.y_type == OMNI_DTYPE_S8) {
      ASSERT_TRUE(same_bits(out.scales[r], row.scale)) << kernel << " " << describe(c) << " row " << r;
    }
  }
}

class Rmsnorm : public KernelTest {};

template <typename Visit>
void for_every_form(const Visit& visit) {
  for (const uint16_t x : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    for (const uint16_t weight : {OMNI_DTYPE_NONE, OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
      for (const uint16_t residual : {OMNI_DTYPE_NONE, OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
        for (const auto& [y, source] : {std::pair<uint16_t, uint16_t>{OMNI_DTYPE_BF16, OMNI_DTYPE_NONE},
                                        {OMNI_DTYPE_F32, OMNI_DTYPE_NONE},
                                        {OMNI_DTYPE_S8, OMNI_DTYPE_F32},
                                        {OMNI_DTYPE_S8, OMNI_DTYPE_BF16}}) {
          for (const uint16_t rounding : {OMNI_RMSNORM_ONE_ROUNDING, OMNI_RMSNORM_TWO_ROUNDINGS}) {
            Case c;
            c.query.x_type = x, c.query.weight_type = weight, c.query.residual_type = residual, c.query.y_type = y;
            c.query.code_source = source, c.query.rounding = rounding;
            visit(c);
            if (testing::Test::HasFatalFailure()) return;
          }
        }
      }
    }
  }
}

TEST_P(Rmsnorm, EveryFormIsTheContract) {
  for_every_form([&](Case& c) {
    for (const int64_t n : {1, 2, 31, 33, 63, 64, 65, 100, 128, 191, 320}) {
      c.query.n = n;
      c.m = 1 + static_cast<uint32_t>(n % 2);
      c.extra = n % 3;
      c.fill(static_cast<uint64_t>(n));
      expect_reference(c, run(c, kernel(), n % 2 == 0 ? Flush::kBack : Flush::kFront), kernel());
      if (HasFatalFailure()) return;
    }
  });
}

// Codes of rows too long for the stack are made in another way.
TEST_P(Rmsnorm, LongRowsOfCodes) {
  for (const uint16_t type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    for (const uint16_t source : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
      for (const int64_t n : {4095, 4096, 4097, 4160, 5000}) {
        Case c;
        c.query.x_type = c.query.weight_type = type;
        c.query.y_type = OMNI_DTYPE_S8, c.query.code_source = source;
        c.query.rounding = n % 2 == 0 ? OMNI_RMSNORM_ONE_ROUNDING : OMNI_RMSNORM_TWO_ROUNDINGS;
        c.query.n = n;
        c.fill(static_cast<uint64_t>(n) + source);
        expect_reference(c, run(c, kernel()), kernel());
        for (const float special : {from_bits(0x7FC12300), from_bits(0xFF800000), 0.0F}) {
          c.x[static_cast<size_t>(n - 3)] = special;
          if (special == 0.0F) std::fill(c.x.begin(), c.x.end(), -0.0F);
          expect_reference(c, run(c, kernel()), kernel());
        }
        if (HasFatalFailure()) return;
      }
    }
  }
}

TEST_P(Rmsnorm, EveryLengthIsTheContract) {
  for (const uint16_t type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    for (int64_t n = 1; n < 260; ++n) {
      Case c;
      c.query.x_type = c.query.weight_type = c.query.y_type = type;
      c.query.n = n;
      c.fill(static_cast<uint64_t>(n) * 3 + type);
      expect_reference(c, run(c, kernel()), kernel());
      if (HasFatalFailure()) return;
    }
  }
}

// AC-083: the reciprocal root in fp32, eps from the query.
TEST_P(Rmsnorm, NeitherRoundsTheReciprocalNorFixesEps) {
  Case c;
  c.fill(1);
  for (size_t i = 0; i < 64; ++i) c.x[i] = i % 2 == 0 ? 3.4375F : 9.875F, c.weight[i] = 1;
  Output out = run(c, kernel());
  EXPECT_EQ(bf16_to_float(static_cast<uint16_t>(out.y[0])), 0.46484375F);
  EXPECT_EQ(bf16_to_float(static_cast<uint16_t>(out.y[1])), 1.3359375F);
  for (float& value : c.x) value = 0.1F;
  c.query.eps = 1e-2F;
  out = run(c, kernel());
  EXPECT_EQ(bf16_to_float(static_cast<uint16_t>(out.y[0])), 0.70703125F);
}

// AC-084: values near zero and not finite, in the middle row of three.
TEST_P(Rmsnorm, SpecialRowsLeaveTheOthersAlone) {
  for_every_form([&](Case& c) {
    if (c.query.residual_type != OMNI_DTYPE_NONE && c.query.x_type == OMNI_DTYPE_F32) return;  // sums of both make no new case
    c.m = 3;
    c.query.n = 96;
    c.fill(5);
    if (c.query.residual_type != OMNI_DTYPE_NONE) std::fill(c.residual.begin() + 96, c.residual.begin() + 192, -0.0F);
    struct Special {
      float all, one;
    };
    for (const Special special : {Special{0, 0},
                                  {-0.0F, -0.0F},
                                  {1e-30F, 1e-30F},
                                  {1e-40F, -1e-40F},
                                  {1.0F, from_bits(0x7F800000)},
                                  {1.0F, from_bits(0xFF800000)},
                                  {1.0F, from_bits(0xFFC12345)},
                                  {3e38F, -3e38F}}) {
      std::fill(c.x.begin() + 96, c.x.begin() + 192, special.all);
      c.x[96 + 70] = special.one;
      expect_reference(c, run(c, kernel()), kernel());
      if (HasFatalFailure()) return;
    }
  });
  Case c;
  c.query.x_type = c.query.y_type = c.query.weight_type = OMNI_DTYPE_F32;
  c.fill(1);
  std::fill(c.weight.begin(), c.weight.end(), 1.0F);
  std::fill(c.x.begin(), c.x.end(), -0.0F);
  EXPECT_EQ(run(c, kernel()).y[7], 0x80000000U);
  std::fill(c.x.begin(), c.x.end(), 1e-30F);
  EXPECT_NEAR(from_bits(run(c, kernel()).y[7]), 1e-27F, 1e-33F);
}

// A weight that is not finite: the store still has one NaN only.
TEST_P(Rmsnorm, WeightsThatAreNotFinite) {
  for (const uint16_t y : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    Case c;
    c.query.y_type = y;
    c.query.n = 128;
    c.fill(2);
    c.x[9] = 0;
    c.weight[3] = from_bits(0xFFC10000), c.weight[9] = from_bits(0x7F800000), c.weight[101] = from_bits(0xFF800000);
    expect_reference(c, run(c, kernel()), kernel());
  }
}

TEST_P(Rmsnorm, BatchesAndThreadsChangeNothing) {
  std::mt19937_64 random(11);
  for (int round = 0; round < 6; ++round) {
    Case c;
    c.m = 3 + static_cast<uint32_t>(random() % 40);
    c.query.n = 1 + static_cast<int64_t>(random() % 3000);
    c.query.residual_type = round % 3 == 0 ? OMNI_DTYPE_NONE : round % 3 == 1 ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32;
    c.extra = static_cast<int64_t>(random() % 70);
    c.fill(random());
    const Output whole = run(c, kernel());
    for (const uint32_t threads : {1U, 2U, 5U}) {
      const omni_parallel parallel = threads == 1 ? backwards(4) : fresh_threads(&threads);
      const Output other = run(c, kernel(), Flush::kFront, &parallel);
      ASSERT_EQ(other.y, whole.y) << describe(c);
      ASSERT_EQ(other.h, whole.h) << describe(c);
    }
    const size_t r = random() % c.m, n = static_cast<size_t>(c.query.n);
    Case one = c;
    one.m = 1;
    one.x.assign(c.x.begin() + static_cast<int64_t>(r * n), c.x.begin() + static_cast<int64_t>((r + 1) * n));
    one.residual.assign(c.residual.begin() + static_cast<int64_t>(r * n), c.residual.begin() + static_cast<int64_t>((r + 1) * n));
    const Output alone = run(one, kernel());
    ASSERT_TRUE(std::equal(alone.y.begin(), alone.y.end(), whole.y.begin() + static_cast<int64_t>(r * n))) << describe(c);
  }
}

// y may be x.
TEST_P(Rmsnorm, InPlace) {
  Case c;
  c.query.n = 200;
  c.m = 2;
  c.fill(4);
  const Output expected = run(c, kernel());
  std::vector<uint16_t> x(400), weight(200);
  for (size_t i = 0; i < 400; ++i) x[i] = bf16_round_ieee(c.x[i]);
  for (size_t i = 0; i < 200; ++i) weight[i] = bf16_round_ieee(c.weight[i]);
  const OwnedPlan plan = make_plan(c.query, kernel());
  omni_rmsnorm_args args = {};
  args.size = sizeof args;
  args.m = 2;
  args.x = args.y = x.data(), args.ldx = args.ldy = 200;
  args.weight = weight.data();
  ASSERT_EQ(omni_rmsnorm_run(plan.get(), &args), OMNI_OK);
  for (size_t i = 0; i < 400; ++i) EXPECT_EQ(x[i], expected.y[i]);
}

TEST_P(Rmsnorm, KeepsTheCallersState) {
  for_every_form([&](Case& c) {
    const RmsnormConfig config = {c.query.x_type, c.query.weight_type, c.query.residual_type,
                                  c.query.y_type, c.query.code_source, c.query.rounding};
    const RmsnormSteps steps = row().as<Op::kRmsnorm>().steps(config);
    float x[100] = {}, weight[100] = {}, residual[100] = {}, y[100], scale;
    RmsnormRow argument = {&config, x,     weight, config.residual_type != OMNI_DTYPE_NONE ? residual : nullptr, y, &scale,
                           100,     1e-6F, 1};
    EXPECT_EQ(AbiTrampoline::call(reinterpret_cast<void (*)(const RmsnormRow*)>(steps.measure), &argument), "");
    EXPECT_EQ(AbiTrampoline::call(steps.scale, &argument), "");
  });
}

INSTANTIATE_TEST_SUITE_P(Kernels, Rmsnorm, testing::ValuesIn(kernels_of(Op::kRmsnorm)), kernel_test_name);

TEST(RmsnormArguments, BadQueriesAreRefused) {
  Case c;
  omni_plan* made = nullptr;
  const auto select = [&](const auto& change) {
    omni_rmsnorm_query changed = c.query;
    change(changed);
    const omni_status status = omni_rmsnorm_select(&changed, &made);
    EXPECT_NE(std::string(omni_last_error()), "");
    return status;
  };
  EXPECT_EQ(omni_rmsnorm_select(nullptr, &made), OMNI_ERR_NULL);
  EXPECT_EQ(omni_rmsnorm_select(&c.query, nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(select([](auto& q) { q.size = 4; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(select([](auto& q) { q.x_type = OMNI_DTYPE_NONE; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.weight_type = OMNI_DTYPE_F16; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.residual_type = OMNI_DTYPE_S8; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.y_type = OMNI_DTYPE_U8; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.y_type = OMNI_DTYPE_S8; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.code_source = OMNI_DTYPE_F32; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.rounding = 2; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.reserved = 1; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.n = 0; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.eps = -1e-6F; }), OMNI_ERR_RANGE);
  EXPECT_EQ(select([](auto& q) { q.eps = from_bits(0x7FC00000); }), OMNI_ERR_RANGE);
  EXPECT_EQ(select([](auto& q) { q.eps = from_bits(0x7F800000); }), OMNI_ERR_RANGE);
  EXPECT_EQ(select([](auto& q) { q.kernel = "rmsnorm_mmx"; }), OMNI_ERR_UNKNOWN_NAME);
  EXPECT_EQ(select([](auto& q) { q.kernel = "quantize_portable"; }), OMNI_ERR_NO_KERNEL);
  EXPECT_EQ(made, nullptr);
}

TEST(RmsnormArguments, BadRunsTouchNothing) {
  Case c;
  c.query.residual_type = OMNI_DTYPE_F32, c.query.y_type = OMNI_DTYPE_S8, c.query.code_source = OMNI_DTYPE_F32;
  const OwnedPlan plan = make_plan(c.query, nullptr);
  std::vector<uint16_t> x(130, 0x3F80), weight(65, 0x3F80);
  std::vector<float> residual(130, 1.0F), scales(2, 5.0F);
  std::vector<int8_t> y(130, 77);
  omni_rmsnorm_args good = {};
  good.size = sizeof good;
  good.m = 2;
  good.x = x.data(), good.ldx = 64;
  good.weight = weight.data();
  good.residual = residual.data(), good.ld_residual = 64;
  good.y = y.data(), good.ldy = 64;
  good.scales = scales.data();
  const auto run_changed = [&](const auto& change) {
    omni_rmsnorm_args args = good;
    change(args);
    const omni_status status = omni_rmsnorm_run(plan.get(), &args);
    EXPECT_TRUE(status == OMNI_OK || omni_last_error()[0] != '\0');
    EXPECT_EQ(y, std::vector<int8_t>(130, 77));
    EXPECT_EQ(residual, std::vector<float>(130, 1.0F));
    EXPECT_EQ(scales[0], 5);
    return status;
  };
  const auto odd = [](auto* pointer) { return reinterpret_cast<decltype(pointer)>(reinterpret_cast<uintptr_t>(pointer) + 1); };
  EXPECT_EQ(omni_rmsnorm_run(nullptr, &good), OMNI_ERR_NULL);
  EXPECT_EQ(omni_rmsnorm_run(plan.get(), nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.size = 8; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(run_changed([](auto& a) { a.x = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.weight = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.residual = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.y = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.scales = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run_changed([](auto& a) { a.ldx = 63; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(run_changed([](auto& a) { a.ldy = 63; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(run_changed([](auto& a) { a.ld_residual = 63; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(run_changed([](auto& a) { a.ld_residual = INT64_MAX / 2; }), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(run_changed([&](auto& a) { a.x = odd(a.x); }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([&](auto& a) { a.weight = odd(a.weight); }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([&](auto& a) { a.residual = odd(a.residual); }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([&](auto& a) { a.scales = odd(a.scales); }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run_changed([](auto& a) { a.m = 0, a.x = nullptr; }), OMNI_OK);
  const OwnedPlan other = [] {
    omni_quantize_query query = {sizeof query, OMNI_DTYPE_BF16, 0, 64, nullptr, nullptr};
    omni_plan* plan = nullptr;
    EXPECT_EQ(omni_quantize_select(&query, &plan), OMNI_OK);
    return OwnedPlan(plan);
  }();
  EXPECT_EQ(omni_rmsnorm_run(other.get(), &good), OMNI_ERR_TYPE);
}

}  // namespace
}  // namespace okl::test
