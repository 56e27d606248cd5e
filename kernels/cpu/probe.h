// SPDX-License-Identifier: Apache-2.0
// What a processor is, from CPUID and XGETBV alone: right in sandboxes without /sys and /proc, and on processors newer than any
// library that we link.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "kernels/cpu/cpu_source.h"
#include "kernels/cpu/isa.h"

namespace okl {

struct CacheSizes {
  uint64_t l1d = 0, l2 = 0;  // bytes of the cache that one core uses; 0 when unknown
  uint64_t l3 = 0;           // bytes of the last-level cache that one core can reach (its complex on AMD)
};

struct CpuIdentity {
  std::string vendor;  // 12 characters, "" when CPUID says nothing
  std::string brand;   // trimmed
  uint32_t family = 0, model = 0, stepping = 0;
};

CpuIdentity identify_cpu(const CpuSource& cpu);

// OMNI_ISA_* bits that the processor has and whose register state the operating system saves (XCR0). AMX bits say nothing about
// the process's permission: see amx.h.
IsaMask detect_isa(const CpuSource& cpu);

// One line that says why detect_isa() left the AMX bits out; "" when it did not.
std::string amx_absence(const CpuSource& cpu);

// CPUID leaf 4 (Intel), 0x8000001D (AMD with topology extensions), else 0x80000005/6. Zeros when none of them answers.
CacheSizes cpuid_caches(const CpuSource& cpu);

// OMNI_TRAIT_* of a microarchitecture. A pure function: the same words give the same traits on any machine.
uint32_t traits_of(std::string_view vendor, uint32_t family, uint32_t model);

}  // namespace okl
