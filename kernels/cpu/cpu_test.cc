// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "kernels/cpu/amx.h"
#include "kernels/cpu/isa.h"
#include "kernels/cpu/machine.h"
#include "kernels/cpu/probe.h"
#include "kernels/cpu/recorded_cpus.h"

namespace okl {
namespace {

using namespace okl::testing;

constexpr IsaMask kHaswellBits = OMNI_ISA_AVX2 | OMNI_ISA_FMA | OMNI_ISA_F16C | OMNI_ISA_BMI2;
constexpr IsaMask kSkylakeXBits = kHaswellBits | OMNI_ISA_AVX512F | OMNI_ISA_AVX512BW | OMNI_ISA_AVX512DQ | OMNI_ISA_AVX512VL;
constexpr IsaMask kAmxBits = OMNI_ISA_AMX_TILE | OMNI_ISA_AMX_INT8 | OMNI_ISA_AMX_BF16;
constexpr IsaMask kEmeraldBits =
    kSkylakeXBits | OMNI_ISA_AVX_VNNI | OMNI_ISA_AVX512VBMI | OMNI_ISA_AVX512VNNI | OMNI_ISA_AVX512BF16 | OMNI_ISA_GFNI;

TEST(Isa, TiersNestInOrder) {
  const char* const names[] = {"portable", "avx2", "avxvnni", "avx512f", "avx512vnni", "avx512bf16", "amxint8", "amxbf16"};
  ASSERT_EQ(tiers().size(), std::size(names));
  for (size_t i = 0; i < std::size(names); ++i) {
    EXPECT_EQ(tiers()[i].name, names[i]);
    EXPECT_EQ(tier_mask(names[i]), tiers()[i].allowed);
    if (i > 0) {
      EXPECT_EQ(tiers()[i - 1].allowed & ~tiers()[i].allowed, 0u) << names[i];
      EXPECT_NE(tiers()[i - 1].allowed, tiers()[i].allowed) << names[i];
    }
  }
  EXPECT_EQ(tier_mask("avx"), std::nullopt);
  EXPECT_EQ(tier_mask(""), std::nullopt);
  EXPECT_EQ(*tier_mask("portable"), 0u);
  EXPECT_EQ(*tier_mask("avx512f") & OMNI_ISA_AVX512VNNI, 0u);
  EXPECT_EQ(*tier_mask("avx512vnni") & OMNI_ISA_AVX512BF16, 0u);
  EXPECT_EQ(*tier_mask("amxint8") & kAmxBits, kAmxBits & ~IsaMask{OMNI_ISA_AMX_BF16});
  EXPECT_EQ(*tier_mask("amxbf16") & kAmxBits, kAmxBits);
}

TEST(Isa, EveryBitHasItsWord) {
  for (uint32_t i = 0; i < 16; ++i) {
    const std::string word = isa_to_text(1u << i);
    ASSERT_FALSE(word.empty()) << i;
    EXPECT_EQ(isa_bit(word), 1u << i);
  }
  EXPECT_EQ(isa_to_text(0), "");
  EXPECT_EQ(isa_to_text(OMNI_ISA_FMA | OMNI_ISA_AVX2), "avx2 fma");
  EXPECT_EQ(isa_bit("sse"), std::nullopt);
}

TEST(Detect, RecordedProcessors) {
  EXPECT_EQ(isa_to_text(detect_isa(nehalem().source())), "");
  EXPECT_EQ(isa_to_text(detect_isa(phenom().source())), "");
  EXPECT_EQ(isa_to_text(detect_isa(haswell().source())), isa_to_text(kHaswellBits));
  EXPECT_EQ(isa_to_text(detect_isa(skylake_x().source())), isa_to_text(kSkylakeXBits));
  EXPECT_EQ(isa_to_text(detect_isa(cooper_lake().source())),
            isa_to_text(kSkylakeXBits | OMNI_ISA_AVX512VNNI | OMNI_ISA_AVX512BF16));
  EXPECT_EQ(isa_to_text(detect_isa(alder_lake().source())), isa_to_text(kHaswellBits | OMNI_ISA_AVX_VNNI | OMNI_ISA_GFNI));
  EXPECT_EQ(isa_to_text(detect_isa(zen4().source())), isa_to_text(kEmeraldBits & ~IsaMask{OMNI_ISA_AVX_VNNI}));
  EXPECT_EQ(isa_to_text(detect_isa(emerald_rapids().source())), isa_to_text(kEmeraldBits | kAmxBits));
}

// A bit is worth nothing when the operating system does not save its registers.
TEST(Detect, StateThatIsNotSaved) {
  RecordedCpu cpu = emerald_rapids();
  cpu.xcr0 = kXcr0Avx512;
  EXPECT_EQ(isa_to_text(detect_isa(cpu.source())), isa_to_text(kEmeraldBits));
  cpu.xcr0 = kXcr0Avx | 0x60000;
  EXPECT_EQ(detect_isa(cpu.source()) & OMNI_ISA_AVX512F, 0u);
  for (const uint64_t incomplete : {0xA7u, 0xC7u, 0x67u}) {  // one of opmask, ZMM_Hi256, Hi16_ZMM missing
    cpu.xcr0 = incomplete;
    EXPECT_EQ(isa_to_text(detect_isa(cpu.source())), isa_to_text(kHaswellBits | OMNI_ISA_AVX_VNNI | OMNI_ISA_GFNI)) << incomplete;
  }
  cpu.xcr0 = kXcr0Sse;
  EXPECT_EQ(isa_to_text(detect_isa(cpu.source())), "bmi2");
  cpu.xcr0 = kXcr0Avx512 | 0x20000;  // tile configuration without tile data
  EXPECT_EQ(detect_isa(cpu.source()) & kAmxBits, 0u);
}

// XGETBV raises #UD without OSXSAVE, whatever the other bits say.
TEST(Detect, NoXgetbvWithoutOsxsave) {
  RecordedCpu cpu = emerald_rapids();
  cpu.at(1).ecx &= ~(1u << 27);
  EXPECT_EQ(isa_to_text(detect_isa(cpu.source())), "bmi2");
  EXPECT_EQ(cpu.xgetbv_calls, 0);
  const RecordedCpu old = nehalem();
  detect_isa(old.source());
  EXPECT_EQ(old.xgetbv_calls, 0);
}

// Leaf 7 exists, its subleaf 1 does not: what the processor answers there means nothing.
TEST(Detect, SubleavesBeyondTheLast) {
  RecordedCpu cpu = haswell();
  cpu.at(7, 1).eax = ~0u;
  EXPECT_EQ(isa_to_text(detect_isa(cpu.source())), isa_to_text(kHaswellBits));
  cpu.at(7).eax = 1;
  EXPECT_NE(detect_isa(cpu.source()) & OMNI_ISA_AVX_VNNI, 0u);
}

TEST(Identify, VendorBrandAndModel) {
  CpuIdentity cpu = identify_cpu(zen4().source());
  EXPECT_EQ(cpu.vendor, "AuthenticAMD");
  EXPECT_EQ(cpu.brand, "AMD Ryzen 5 7600X 6-Core Processor");
  EXPECT_EQ(cpu.family, 0x19u);
  EXPECT_EQ(cpu.model, 0x61u);
  cpu = identify_cpu(emerald_rapids().source());
  EXPECT_EQ(cpu.vendor, "GenuineIntel");
  EXPECT_EQ(cpu.brand, "INTEL(R) XEON(R) GOLD 5520+");
  EXPECT_EQ(cpu.family, 6u);
  EXPECT_EQ(cpu.model, 0xCFu);
  EXPECT_EQ(cpu.stepping, 2u);
  cpu = identify_cpu(phenom().source());
  EXPECT_EQ(cpu.brand, "AMD Phenom(tm) II X4 940 Processor");
  EXPECT_EQ(cpu.family, 0x10u);
}

TEST(Identify, NoExtendedLeaves) {
  RecordedCpu cpu = haswell();
  cpu.at(0x80000000).eax = 0x0000000D;  // an echo of a basic leaf
  EXPECT_EQ(identify_cpu(cpu.source()).brand, "");
  EXPECT_EQ(cpuid_caches(cpu.source()).l3, 8u << 20);
}

void expect_caches(const RecordedCpu& cpu, uint64_t l1d_kib, uint64_t l2_kib, uint64_t l3_kib) {
  const CacheSizes caches = cpuid_caches(cpu.source());
  EXPECT_EQ(caches.l1d >> 10, l1d_kib);
  EXPECT_EQ(caches.l2 >> 10, l2_kib);
  EXPECT_EQ(caches.l3 >> 10, l3_kib);
}

TEST(Caches, RecordedProcessors) {
  expect_caches(nehalem(), 32, 256, 8192);
  expect_caches(haswell(), 32, 256, 8192);
  expect_caches(skylake_x(), 32, 1024, 14080);
  expect_caches(alder_lake(), 48, 1280, 25600);
  expect_caches(zen4(), 32, 1024, 32768);
  expect_caches(emerald_rapids(), 48, 2048, 53760);
  expect_caches(phenom(), 64, 512, 6144);
}

TEST(Traits, ArePureFunctionsOfTheModel) {
  EXPECT_EQ(traits_of("GenuineIntel", 6, 0xCF), uint32_t{OMNI_TRAIT_SLOW_BF16_DOT});
  EXPECT_EQ(traits_of("GenuineIntel", 6, 0x55), uint32_t{OMNI_TRAIT_SLOW_BF16_DOT});
  EXPECT_EQ(traits_of("AuthenticAMD", 0x19, 0x61), 0u);
  EXPECT_EQ(traits_of("GenuineIntel", 19, 1), 0u);
  EXPECT_EQ(traits_of("", 6, 0xCF), 0u);
}

TEST(Amx, GrantedOnRequestAndOnlyOnce) {
  RecordedCpu cpu = emerald_rapids();
  EXPECT_TRUE(request_amx(cpu.source()).granted);
  EXPECT_EQ(cpu.requests, 1);
  cpu.permitted = 1u << 18;
  EXPECT_TRUE(request_amx(cpu.source()).granted);
  EXPECT_EQ(cpu.requests, 1) << "permission that is there is not requested again";
}

TEST(Amx, RefusalsSayWhy) {
  RecordedCpu cpu = emerald_rapids();
  cpu.request_result = -EINVAL;
  AmxPermission permission = request_amx(cpu.source());
  EXPECT_FALSE(permission.granted);
  EXPECT_NE(permission.reason.find("EINVAL"), std::string::npos) << permission.reason;
  cpu.request_result = -EPERM;
  cpu.supported_result = cpu.permitted_result = -EPERM;
  permission = request_amx(cpu.source());
  EXPECT_FALSE(permission.granted);
  EXPECT_NE(permission.reason.find("EPERM"), std::string::npos) << permission.reason;
  EXPECT_LT(permission.reason.size(), sizeof(omni_machine::amx_reason));
  cpu.request_result = -123;
  EXPECT_NE(request_amx(cpu.source()).reason.find("errno 123"), std::string::npos);
}

TEST(Amx, NoRequestWithoutTheHardware) {
  for (const RecordedCpu& cpu : {zen4(), skylake_x(), nehalem()}) {
    EXPECT_FALSE(request_amx(cpu.source()).granted);
    EXPECT_NE(request_amx(cpu.source()).reason.find("no AMX"), std::string::npos);
    EXPECT_EQ(cpu.requests, 0);
  }
  RecordedCpu masked = emerald_rapids();
  masked.xcr0 = kXcr0Avx512;
  EXPECT_NE(request_amx(masked.source()).reason.find("XCR0"), std::string::npos);
  RecordedCpu unsupported = emerald_rapids();
  unsupported.supported = 0xE7;
  EXPECT_NE(request_amx(unsupported.source()).reason.find("XCOMP_SUPP"), std::string::npos);
  EXPECT_EQ(masked.requests + unsupported.requests, 0);
}

TEST(Machine, FromARecord) {
  const RecordedCpu cpu = zen4();
  const CpuSource source = cpu.source();
  const omni_machine machine = probe_machine(source, SystemFiles{"/nonexistent"}, Topology{12, 6});
  EXPECT_EQ(machine.size, sizeof machine);
  EXPECT_EQ(machine.isa, machine.isa_hardware);
  EXPECT_EQ(machine.cores_online, 12u);
  EXPECT_EQ(machine.cores_usable, 6u);
  EXPECT_EQ(machine.l3_bytes, 32u << 20);
  EXPECT_STREQ(machine.vendor, "AuthenticAMD");
  EXPECT_STREQ(machine.name, "AMD Ryzen 5 7600X 6-Core Processor");
  EXPECT_NE(machine.amx_reason[0], '\0');
  EXPECT_EQ(machine.traits, 0u);
}

}  // namespace
}  // namespace okl
