// SPDX-License-Identifier: Apache-2.0
// exp, sigmoid, SiLU and Phi on every tier: the same bits, within the stated ulp of the exact functions; and the stores.
#include <gtest/gtest.h>

#include <cmath>

#if defined(OMNI_HAVE_SLEEF)
#include <sleef.h>
#endif

#include "kernels/activation/lanes_probe.h"
#include "tests/support/row_kernels.h"

namespace okl::test {
namespace {

struct Tier {
  const char* name;
  const LanesProbe& probe;
  IsaMask required;
};
const Tier kTiers[] = {{"portable", lanes_probe_portable, 0},
                       {"avx2", lanes_probe_avx2, kIsaAvx2Tier},
                       {"avx512", lanes_probe_avx512, kIsaAvx512Tier},
                       {"avx512bf16", lanes_probe_avx512bf16, kIsaAvx512Tier | OMNI_ISA_AVX512BF16}};

class Lanes : public testing::TestWithParam<Tier> {
 protected:
  void SetUp() override {
    if (const IsaMask missing = GetParam().required & ~hardware_isa(); missing != 0)
      GTEST_SKIP() << "needs " << isa_to_text(missing);
  }
  const LanesProbe& probe() const { return GetParam().probe; }
};

// Sixteen neighbours at a time: all exponents with a stride, each step of it at another mantissa.
template <typename Visit>
void for_many_floats(const Visit& visit) {
  float x[16];
  for (uint64_t bits = 0; bits < uint64_t{1} << 32; bits += 16 * 8191) {
    for (uint32_t i = 0; i < 16; ++i) x[i] = from_bits(static_cast<uint32_t>(bits) + i);
    visit(x);
  }
}

// Units in the last place of an fp32 with the magnitude of `exact`.
double ulps(double error, double exact) {
  int exponent;
  std::frexp(exact, &exponent);
  return std::fabs(error) / std::ldexp(1.0, std::max(exponent, -125) - 24);
}

double exact_exp(double x) {
#if defined(OMNI_HAVE_SLEEF)
  return Sleef_exp_u10(x);
#else
  return std::exp(x);
#endif
}
double exact_phi(double x) {
#if defined(OMNI_HAVE_SLEEF)
  return 0.5 * Sleef_erfc_u15(-x / std::sqrt(2.0));
#else
  return 0.5 * std::erfc(-x / std::sqrt(2.0));
#endif
}

TEST_P(Lanes, HaveTheBitsOfThePortableTier) {
  for_many_floats([&](const float* x) {
    for (const auto function :
         {&LanesProbe::exp, &LanesProbe::sigmoid, &LanesProbe::silu, &LanesProbe::phi, &LanesProbe::round_to_bf16}) {
      float y[16], expected[16];
      (probe().*function)(x, y);
      (lanes_probe_portable.*function)(x, expected);
      for (int i = 0; i < 16; ++i) {
        const bool same = same_bits(y[i], expected[i]) || (std::isnan(y[i]) && std::isnan(expected[i]));
        ASSERT_TRUE(same) << std::hexfloat << x[i] << ": " << y[i] << ", expected " << expected[i];
      }
    }
  });
}

TEST_P(Lanes, ExpIsWithinItsUlps) {
  for_many_floats([&](const float* x) {
    float y[16];
    probe().exp(x, y);
    for (int i = 0; i < 16; ++i) {
      if (std::isnan(x[i])) {
        ASSERT_TRUE(std::isnan(y[i]));
        continue;
      }
      const double exact = exact_exp(static_cast<double>(x[i]));
      if (exact < 0x1p-126) {
        ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), 0U) << x[i];
      } else if (exact > 0x1.fffffep127) {
        ASSERT_EQ(std::bit_cast<uint32_t>(y[i]), 0x7F800000U) << x[i];
      } else {
        ASSERT_LE(ulps(static_cast<double>(y[i]) - exact, exact), 0.9) << x[i];
      }
    }
  });
}

TEST_P(Lanes, ExpIsExactWhereItMustBe) {
  float x[16] = {
      0.0F,           -0.0F,          from_bits(0xFF800000), from_bits(0x7F800000), 1.0F,   -0x1.5d589ep+6F, -0x1.5d58a0p+6F,
      0x1.62e42ep+6F, 0x1.62e430p+6F, from_bits(1),          from_bits(0x80000001), -1e38F, 1e38F,           from_bits(0x7FFFFFFF),
      -103.0F,        0x1p-24F};
  float y[16];
  probe().exp(x, y);
  EXPECT_EQ(std::bit_cast<uint32_t>(y[0]), 0x3F800000U);
  EXPECT_EQ(std::bit_cast<uint32_t>(y[1]), 0x3F800000U);
  EXPECT_EQ(std::bit_cast<uint32_t>(y[2]), 0U);
  EXPECT_EQ(std::bit_cast<uint32_t>(y[3]), 0x7F800000U);
  EXPECT_GE(y[5], 0x1p-126F);
  EXPECT_EQ(std::bit_cast<uint32_t>(y[6]), 0U);
  EXPECT_LE(y[7], 0x1.fffffep127F);
  EXPECT_EQ(y[8], from_bits(0x7F800000));
  EXPECT_EQ(y[9], 1.0F);
  EXPECT_EQ(y[10], 1.0F);
  EXPECT_EQ(std::bit_cast<uint32_t>(y[11]), 0U);
  EXPECT_EQ(y[12], from_bits(0x7F800000));
  EXPECT_TRUE(std::isnan(y[13]));
  EXPECT_EQ(std::bit_cast<uint32_t>(y[14]), 0U);
}

TEST_P(Lanes, SigmoidAndSiluAreWithinTheirUlps) {
  for_many_floats([&](const float* x) {
    float sigmoid[16], silu[16];
    probe().sigmoid(x, sigmoid);
    probe().silu(x, silu);
    for (int i = 0; i < 16; ++i) {
      if (!(std::fabs(x[i]) < 80.0F)) continue;
      const double wide = static_cast<double>(x[i]), exact = 1.0 / (1.0 + exact_exp(-wide));
      ASSERT_LE(ulps(static_cast<double>(sigmoid[i]) - exact, exact), 2.5) << x[i];
      ASSERT_LE(ulps(static_cast<double>(silu[i]) - wide * exact, wide * exact), 2.5) << x[i];
    }
  });
}

TEST_P(Lanes, PhiIsWithinItsUlps) {
  for_many_floats([&](const float* x) {
    float y[16];
    probe().phi(x, y);
    for (int i = 0; i < 16; ++i) {
      if (std::isnan(x[i])) {
        ASSERT_TRUE(std::isnan(y[i]));
        continue;
      }
      const double exact = exact_phi(static_cast<double>(x[i])), error = static_cast<double>(y[i]) - exact;
      if (x[i] < -3.18F) {
        ASSERT_LE(std::fabs(error), 3.4e-9) << x[i];
      } else {
        ASSERT_LE(ulps(error, exact), x[i] > 0 ? 1.1 : 3.2) << x[i];
      }
    }
  });
}

// AC-009: ties, carries, overflow to infinity, signed zeros, subnormals, one NaN.
TEST_P(Lanes, StoresRoundAsTheScalarConversion) {
  const uint32_t bits[16] = {0x3E89CCD5, 0x3F808000, 0x3F818000, 0x7F7FFFFF, 0x80000000, 0x00000001, 0x807FFFFF, 0x007FFFFF,
                             0x00800000, 0x7F800000, 0xFF800000, 0x7F800001, 0xFFC12345, 0x3F807FFF, 0x3F808001, 0xBF818001};
  float x[16], reversed[16];
  for (int i = 0; i < 16; ++i) x[i] = from_bits(bits[i]), reversed[i] = from_bits(bits[15 - i]);
  uint16_t ordered[16], split[32];
  float back[16];
  probe().store_bf16(x, ordered);
  probe().store_bf16_split(x, reversed, split);
  probe().round_to_bf16(x, back);
  for (int i = 0; i < 16; ++i) {
    const uint16_t expected = bf16_round_group(x[i]);
    EXPECT_EQ(ordered[i], expected) << std::hex << bits[i];
    EXPECT_EQ(split[2 * i], expected) << std::hex << bits[i];
    EXPECT_EQ(split[2 * i + 1], bf16_round_group(reversed[i])) << std::hex << bits[i];
    EXPECT_TRUE(same_bits(back[i], bf16_to_float(expected))) << std::hex << bits[i];
  }
}

TEST_P(Lanes, StoresOfCodesRoundTiesToEven) {
  const float x[16] = {-127, 127,   0.5F,   1.5F,    2.5F,        -0.5F, -1.5F,      -2.5F,
                       0,    -0.0F, 126.5F, -126.5F, 0.49999997F, -128,  3.4999998F, 63.5F};
  float reversed[16];
  for (int i = 0; i < 16; ++i) reversed[i] = x[15 - i];
  int8_t y[32];
  probe().store_s8_split(x, reversed, y);
  for (int i = 0; i < 16; ++i) {
    EXPECT_EQ(y[2 * i], static_cast<int>(std::nearbyint(x[i])));
    EXPECT_EQ(y[2 * i + 1], static_cast<int>(std::nearbyint(reversed[i])));
  }
}

INSTANTIATE_TEST_SUITE_P(Tiers, Lanes, testing::ValuesIn(kTiers), [](const auto& info) { return std::string(info.param.name); });

}  // namespace
}  // namespace okl::test
