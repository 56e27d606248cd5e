// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/isa.h"

namespace okl {
namespace {

// Each mask includes the lower tiers. AVX-VNNI is a separate CPUID bit that AVX-512 does not imply (Ice Lake lacks it), but a cap
// at a higher tier still lets its kernels run where the processor has it. GFNI enters with the first tier whose processors have its
// VEX form; VBMI belongs to avx512f, because a kernel asks for the bits that it uses and Skylake-X simply lacks that one.
constexpr IsaMask kPortable = 0;
constexpr IsaMask kAvx2 = kPortable | kIsaAvx2Tier | OMNI_ISA_F16C | OMNI_ISA_BMI2;
constexpr IsaMask kAvxVnni = kAvx2 | OMNI_ISA_AVX_VNNI | OMNI_ISA_GFNI;
constexpr IsaMask kAvx512F = kAvxVnni | kIsaAvx512Tier | OMNI_ISA_AVX512VBMI;
constexpr IsaMask kAvx512Vnni = kAvx512F | OMNI_ISA_AVX512VNNI;
constexpr IsaMask kAvx512Bf16 = kAvx512Vnni | kIsaAvx512Bf16Tier;
constexpr IsaMask kAmxInt8 = kAvx512Bf16 | OMNI_ISA_AMX_TILE | OMNI_ISA_AMX_INT8;
constexpr IsaMask kAmxBf16 = kAmxInt8 | OMNI_ISA_AMX_BF16;

constexpr Tier kTiers[] = {
    {"portable", kPortable},     {"avx2", kAvx2},       {"avxvnni", kAvxVnni}, {"avx512f", kAvx512F}, {"avx512vnni", kAvx512Vnni},
    {"avx512bf16", kAvx512Bf16}, {"amxint8", kAmxInt8}, {"amxbf16", kAmxBf16}};

struct IsaWord {
  std::string_view name;
  IsaMask bit;
};

constexpr IsaWord kWords[] = {{"avx2", OMNI_ISA_AVX2},
                              {"fma", OMNI_ISA_FMA},
                              {"f16c", OMNI_ISA_F16C},
                              {"bmi2", OMNI_ISA_BMI2},
                              {"gfni", OMNI_ISA_GFNI},
                              {"avx_vnni", OMNI_ISA_AVX_VNNI},
                              {"avx512f", OMNI_ISA_AVX512F},
                              {"avx512bw", OMNI_ISA_AVX512BW},
                              {"avx512dq", OMNI_ISA_AVX512DQ},
                              {"avx512vl", OMNI_ISA_AVX512VL},
                              {"avx512vbmi", OMNI_ISA_AVX512VBMI},
                              {"avx512vnni", OMNI_ISA_AVX512VNNI},
                              {"avx512bf16", OMNI_ISA_AVX512BF16},
                              {"amx_tile", OMNI_ISA_AMX_TILE},
                              {"amx_int8", OMNI_ISA_AMX_INT8},
                              {"amx_bf16", OMNI_ISA_AMX_BF16}};

}  // namespace

std::span<const Tier> tiers() { return kTiers; }

std::optional<IsaMask> tier_mask(std::string_view name) {
  for (const Tier& tier : kTiers) {
    if (tier.name == name) return tier.allowed;
  }
  return std::nullopt;
}

std::string isa_to_text(IsaMask mask) {
  std::string text;
  for (const IsaWord& word : kWords) {
    if ((mask & word.bit) == 0) continue;
    if (!text.empty()) text += ' ';
    text += word.name;
  }
  return text;
}

std::optional<IsaMask> isa_bit(std::string_view name) {
  for (const IsaWord& word : kWords) {
    if (word.name == name) return word.bit;
  }
  return std::nullopt;
}

}  // namespace okl
