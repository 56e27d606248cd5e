// SPDX-License-Identifier: Apache-2.0
#include "kernels/format/bf16.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>

namespace okl {
namespace {

float from_bits(uint32_t bits) { return std::bit_cast<float>(bits); }

struct Vector {
  uint32_t f32;
  uint16_t bf16;
};
// Truncation gives 0x3E89, 0x3F80, 0x3F81 and 0x7F7F for the first four.
constexpr Vector vectors[] = {{0x3E89CCD5, 0x3E8A}, {0x3F808000, 0x3F80}, {0x3F818000, 0x3F82}, {0x7F7FFFFF, 0x7F80},
                              {0x80000000, 0x8000}, {0x3F808001, 0x3F81}, {0xFF800000, 0xFF80}, {0xFF7F8000, 0xFF80}};

TEST(Bf16, RoundsToNearestEven) {
  for (const Vector& v : vectors) {
    EXPECT_EQ(bf16_round_ieee(from_bits(v.f32)), v.bf16) << std::hex << v.f32;
    EXPECT_EQ(bf16_round_group(from_bits(v.f32)), v.bf16) << std::hex << v.f32;
    EXPECT_EQ(bf16_round_torch(from_bits(v.f32)), v.bf16) << std::hex << v.f32;
  }
}

TEST(Bf16, SubnormalsAndNaN) {
  for (const uint32_t sign : {0u, 0x80000000u}) {
    const uint16_t sign16 = static_cast<uint16_t>(sign >> 16);
    EXPECT_EQ(bf16_round_ieee(from_bits(sign | 0x00218000)), sign16 | 0x0022);
    EXPECT_EQ(bf16_round_torch(from_bits(sign | 0x00218000)), sign16 | 0x0022);
    EXPECT_EQ(bf16_round_group(from_bits(sign | 0x00218000)), sign16);
    EXPECT_EQ(bf16_round_group(from_bits(sign | 0x007FFFFF)), sign16);  // would round up to the least normal number
    EXPECT_EQ(bf16_round_ieee(from_bits(sign | 0x007FFFFF)), sign16 | 0x0080);
    for (const uint32_t nan : {0x7F800001u, 0x7FC00000u, 0x7FFFFFFFu, 0x7F80FFFFu}) {
      EXPECT_EQ(bf16_round_ieee(from_bits(sign | nan)), 0x7FC0);
      EXPECT_EQ(bf16_round_group(from_bits(sign | nan)), 0x7FC0);
      EXPECT_EQ(bf16_round_torch(from_bits(sign | nan)), 0xFFFF);
    }
  }
}

TEST(Bf16, EveryValueSurvivesTheRoundTrip) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const float value = bf16_to_float(static_cast<uint16_t>(bits));
    if (std::isnan(value)) continue;
    EXPECT_EQ(bf16_round_ieee(value), bits);
    EXPECT_EQ(bf16_round_torch(value), bits);
  }
}

}  // namespace
}  // namespace okl
