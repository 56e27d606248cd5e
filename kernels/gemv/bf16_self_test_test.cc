// SPDX-License-Identifier: Apache-2.0
// The start-up self-test accepts the contract and refuses processors that depart from it in the ways they might.
#include "kernels/gemv/bf16_self_test.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "kernels/cpu/machine.h"
#include "kernels/format/bf16.h"

namespace okl {
namespace {

float high(uint32_t pair) { return bf16_to_float(static_cast<uint16_t>(pair >> 16)); }
float low(uint32_t pair) { return bf16_to_float(static_cast<uint16_t>(pair)); }

void contract(const uint32_t* a, const uint32_t* b, float* d) {
  for (int i = 0; i < 16; ++i) d[i] = std::fma(low(a[i]), low(b[i]), std::fma(high(a[i]), high(b[i]), d[i]));
}
void even_first(const uint32_t* a, const uint32_t* b, float* d) {
  for (int i = 0; i < 16; ++i) d[i] = std::fma(high(a[i]), high(b[i]), std::fma(low(a[i]), low(b[i]), d[i]));
}
void pair_summed_first(const uint32_t* a, const uint32_t* b, float* d) {
  for (int i = 0; i < 16; ++i) d[i] = d[i] + std::fma(low(a[i]), low(b[i]), high(a[i]) * high(b[i]));
}
void flushes_small_normals(const uint32_t* a, const uint32_t* b, float* d) {
  contract(a, b, d);
  for (int i = 0; i < 16; ++i) {
    if (std::fabs(d[i]) < 0x1p-118F) d[i] = 0.0F;
  }
}
void one_lane_wrong(const uint32_t* a, const uint32_t* b, float* d) {
  const float before = d[13];
  contract(a, b, d);
  d[13] = std::nextafter(before, d[13]);
}

TEST(Bf16SelfTest, AcceptsTheContract) { EXPECT_TRUE(bf16_dot_agrees(&contract)); }

TEST(Bf16SelfTest, RefusesDepartures) {
  EXPECT_FALSE(bf16_dot_agrees(&even_first));
  EXPECT_FALSE(bf16_dot_agrees(&pair_summed_first));
  EXPECT_FALSE(bf16_dot_agrees(&flushes_small_normals));
  EXPECT_FALSE(bf16_dot_agrees(&one_lane_wrong));
}

TEST(Bf16SelfTest, DemotionTakesTheTierAway) {
  if ((hardware_isa() & OMNI_ISA_AVX512BF16) == 0) GTEST_SKIP() << "not run: no AVX-512 BF16 here";
  ensure_bf16_dot_tested();
  EXPECT_NE(current_machine().isa & OMNI_ISA_AVX512BF16, 0U);
  set_bf16_dot_demoted(true);
  const omni_machine demoted = current_machine();
  set_bf16_dot_demoted(false);
  EXPECT_EQ(demoted.isa & OMNI_ISA_AVX512BF16, 0U);
  EXPECT_NE(demoted.traits & OMNI_TRAIT_BF16_DOT_DEMOTED, 0U);
}

}  // namespace
}  // namespace okl
