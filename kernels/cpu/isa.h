// SPDX-License-Identifier: Apache-2.0
// ISA masks and the named tiers that cap them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "omni/cpu.h"

namespace okl {

using IsaMask = uint32_t;

inline constexpr IsaMask kIsaAvx2Tier = OMNI_ISA_AVX2 | OMNI_ISA_FMA;
// Skylake-X and later: F alone (Knights Landing) is not a tier, every kernel may use BW, DQ and VL forms.
inline constexpr IsaMask kIsaAvx512Tier =
    kIsaAvx2Tier | OMNI_ISA_AVX512F | OMNI_ISA_AVX512BW | OMNI_ISA_AVX512DQ | OMNI_ISA_AVX512VL;
inline constexpr IsaMask kIsaAvxVnniTier = kIsaAvx2Tier | OMNI_ISA_AVX_VNNI;
inline constexpr IsaMask kIsaAvx512VnniTier = kIsaAvx512Tier | OMNI_ISA_AVX512VNNI;
// The BF16 kernels interleave k rows with VPERMB, which Cooper Lake (BF16 without VBMI) lacks: it gets avx512f.
inline constexpr IsaMask kIsaAvx512Bf16Tier = kIsaAvx512Tier | OMNI_ISA_AVX512VBMI | OMNI_ISA_AVX512BF16;

// What a process may use only with Linux's permission: see amx.h.
inline constexpr IsaMask kIsaAmxBits = OMNI_ISA_AMX_TILE | OMNI_ISA_AMX_INT8 | OMNI_ISA_AMX_BF16;
// Tile kernels also unpack and fold in ZMM; every processor with AMX has AVX-512 with VBMI.
inline constexpr IsaMask kIsaAmxInt8Tier = kIsaAvx512Tier | OMNI_ISA_AVX512VBMI | OMNI_ISA_AMX_TILE | OMNI_ISA_AMX_INT8;
inline constexpr IsaMask kIsaAmxBf16Tier = kIsaAvx512Tier | OMNI_ISA_AVX512VBMI | OMNI_ISA_AMX_TILE | OMNI_ISA_AMX_BF16;

// A tier is a name users know and every ISA bit it lets kernels use. Ordered from least to most.
struct Tier {
  std::string_view name;
  IsaMask allowed;
};

std::span<const Tier> tiers();
std::optional<IsaMask> tier_mask(std::string_view name);  // nullopt: unknown name
std::string isa_to_text(IsaMask mask);                    // "avx2 fma avx512f ..."; "" for 0
std::optional<IsaMask> isa_bit(std::string_view name);    // the inverse for one word

}  // namespace okl
