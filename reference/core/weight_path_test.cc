// SPDX-License-Identifier: Apache-2.0
#include "reference/core/weight_path.h"

#include <gtest/gtest.h>

#include <cstring>

namespace ref {
namespace {

constexpr uint32_t kAvx2 = OMNI_ISA_AVX2 | OMNI_ISA_FMA | OMNI_ISA_F16C | OMNI_ISA_BMI2;
constexpr uint32_t kAvx512 = kAvx2 | OMNI_ISA_AVX512F | OMNI_ISA_AVX512BW | OMNI_ISA_AVX512DQ | OMNI_ISA_AVX512VL;
constexpr uint32_t kSapphireRapids =
    kAvx512 | OMNI_ISA_AVX512VBMI | OMNI_ISA_AVX512VNNI | OMNI_ISA_AVX512BF16 | OMNI_ISA_AMX_TILE | OMNI_ISA_AMX_INT8;

omni_machine machine(const char* vendor, uint32_t isa, uint32_t hardware) {
  omni_machine mock = {};
  mock.size = sizeof mock;
  mock.isa = isa;
  mock.isa_hardware = hardware;
  std::strcpy(mock.vendor, vendor);
  return mock;
}

// What both priorities choose.
void expect(const char* what, const omni_machine& mock, WeightType speed, WeightType fidelity, const char* word) {
  const WeightPath fast = choose_weight_path(mock, Priority::kSpeed), faithful = choose_weight_path(mock, Priority::kFidelity);
  EXPECT_EQ(fast.type, speed) << what;
  EXPECT_EQ(faithful.type, fidelity) << what;
  EXPECT_NE(fast.reason.find(word), std::string::npos) << what << ": " << fast.reason;
  EXPECT_EQ((fast.reason + faithful.reason).find('\n'), std::string::npos);
}

TEST(WeightPath, IsAFunctionOfTheMachine) {
  const auto a8 = WeightType::kW4A8, a16 = WeightType::kW4A16;
  expect("Sapphire Rapids", machine("GenuineIntel", kSapphireRapids, kSapphireRapids), a8, a8, "AMX");
  expect("Zen 4", machine("AuthenticAMD", kAvx512 | OMNI_ISA_AVX512VNNI, kAvx512 | OMNI_ISA_AVX512VNNI), a8, a16, "AVX-512 VNNI");
  expect("Alder Lake", machine("GenuineIntel", kAvx2 | OMNI_ISA_AVX_VNNI, kAvx2 | OMNI_ISA_AVX_VNNI), a8, a16, "AVX-VNNI");
  expect("Skylake-SP", machine("GenuineIntel", kAvx512, kAvx512), a16, a16, "no VNNI");
  expect("Haswell", machine("GenuineIntel", kAvx2, kAvx2), a16, a16, "no VNNI");
  expect("Nehalem", machine("GenuineIntel", 0, 0), a16, a16, "no VNNI");
  expect("ARM", machine("", 0, 0), a16, a16, "unverified");
}

// A cap, and a refusal of AMX by the system, count as the machine that is left.
TEST(WeightPath, GoesByWhatMayRun) {
  expect("AMX refused", machine("GenuineIntel", kSapphireRapids & ~(OMNI_ISA_AMX_TILE | OMNI_ISA_AMX_INT8), kSapphireRapids),
         WeightType::kW4A8, WeightType::kW4A16, "AVX-512 VNNI");
  expect("capped to avx2", machine("GenuineIntel", kAvx2, kSapphireRapids), WeightType::kW4A16, WeightType::kW4A16, "no VNNI");
  expect("capped to portable", machine("GenuineIntel", 0, kSapphireRapids), WeightType::kW4A16, WeightType::kW4A16, "no VNNI");
  // Half of a tier is no tier.
  expect("VNNI without VL", machine("GenuineIntel", (kAvx512 | OMNI_ISA_AVX512VNNI) & ~OMNI_ISA_AVX512VL, kSapphireRapids),
         WeightType::kW4A16, WeightType::kW4A16, "no VNNI");
  expect("tiles without int8", machine("GenuineIntel", kAvx2 | OMNI_ISA_AMX_TILE, kAvx2), WeightType::kW4A16, WeightType::kW4A16,
         "no VNNI");
}

TEST(WeightPath, SpeechHasEightBitsUnlessAsked) {
  EXPECT_EQ(choose_speech_path().type, WeightType::kW8A8);
  EXPECT_EQ(choose_predictor(WeightType::kW4A8), WeightType::kW8A8);
  EXPECT_EQ(choose_predictor(WeightType::kW4A16), WeightType::kW8A8);
  for (const WeightType type : {WeightType::kW8A8, WeightType::kBf16, WeightType::kKeep}) EXPECT_EQ(choose_predictor(type), type);
}

TEST(WeightPath, PartsOfASpeechModelFollowItsTalker) {
  const SpeechOptions narrow = speech_options({}, WeightType::kW4A8);
  EXPECT_EQ(narrow.predictor, WeightType::kW8A8);
  EXPECT_EQ(narrow.predictor_group, 0);
  EXPECT_EQ(narrow.predictor_head, HeadType::kW8);
  EXPECT_EQ(speech_options({}, WeightType::kKeep).predictor_head, HeadType::kKeep);
  // What was asked for stands; the predictor's heads go by its own option, then by the talker's, then by its layers.
  const SpeechOptions asked = speech_options({.predictor = WeightType::kW4A16, .group = 32}, WeightType::kBf16);
  EXPECT_EQ(asked.predictor, WeightType::kW4A16);
  EXPECT_EQ(asked.predictor_group, 32);
  EXPECT_EQ(asked.predictor_head, HeadType::kW8);
  EXPECT_EQ(speech_options({.head = HeadType::kW4}, WeightType::kBf16).predictor_head, HeadType::kW4);
  EXPECT_EQ(speech_options({.head = HeadType::kW4, .predictor_head = HeadType::kBf16}, WeightType::kW8A8).predictor_head,
            HeadType::kBf16);
}

TEST(WeightPath, DefaultsOfHeadsAndGroups) {
  EXPECT_EQ(default_head(WeightType::kBf16), HeadType::kBf16);
  EXPECT_EQ(default_head(WeightType::kKeep), HeadType::kKeep);
  for (const WeightType type : {WeightType::kW8A8, WeightType::kW4A8, WeightType::kW4A16})
    EXPECT_EQ(default_head(type), HeadType::kW8);
  EXPECT_EQ(default_group(WeightType::kW8A8), 0);
  EXPECT_EQ(default_group(WeightType::kW4A16), 128);
}

TEST(WeightPath, NamesGoBothWays) {
  for (const char* name : {"keep", "bf16", "w8a8", "w4a8", "w4a16"}) {
    ASSERT_TRUE(parse_weight_type(name)) << name;
    EXPECT_EQ(weight_type_name(*parse_weight_type(name)), name);
  }
  for (const char* name : {"keep", "bf16", "w8", "w4"}) {
    ASSERT_TRUE(parse_head_type(name)) << name;
    EXPECT_EQ(head_type_name(*parse_head_type(name)), name);
  }
  EXPECT_FALSE(parse_weight_type("W4A8"));
  EXPECT_FALSE(parse_weight_type(""));
  EXPECT_FALSE(parse_head_type("w4a8"));
}

}  // namespace
}  // namespace ref
