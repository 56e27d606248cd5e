// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/probe.h"

#include <cstring>

namespace okl {
namespace {

constexpr uint32_t kExtended = 0x80000000;

// XCR0 components: bits 1-2 XMM and YMM, 5-7 opmask and ZMM, 17-18 tile configuration and data.
constexpr uint64_t kYmmState = 0x6, kZmmState = 0xE6, kTileState = 0x60000;

bool has(uint32_t word, unsigned bit) { return (word >> bit & 1) != 0; }

CpuidRegisters query(const CpuSource& cpu, uint32_t leaf, uint32_t subleaf = 0) { return cpu.cpuid(cpu.context, leaf, subleaf); }

uint32_t max_leaf(const CpuSource& cpu) { return query(cpu, 0).eax; }

// Processors without extended leaves answer with data of a basic leaf, which is below every extended number.
uint32_t max_extended_leaf(const CpuSource& cpu) { return query(cpu, kExtended).eax; }

CpuidRegisters query_up_to(const CpuSource& cpu, uint32_t leaf, uint32_t subleaf = 0) {
  const uint32_t last = leaf >= kExtended ? max_extended_leaf(cpu) : max_leaf(cpu);
  return leaf <= last ? query(cpu, leaf, subleaf) : CpuidRegisters{};
}

// Leaf 7's subleaves end at the number in EAX of subleaf 0; beyond it Intel documents zeros, emulators do not always agree.
CpuidRegisters features7(const CpuSource& cpu, uint32_t subleaf) {
  const CpuidRegisters first = query_up_to(cpu, 7, 0);
  if (subleaf == 0) return first;
  return subleaf <= first.eax ? query(cpu, 7, subleaf) : CpuidRegisters{};
}

uint64_t saved_state(const CpuSource& cpu) { return has(query_up_to(cpu, 1).ecx, 27) ? cpu.xgetbv(cpu.context) : 0; }

void add_cache(CacheSizes& caches, const CpuidRegisters& r) {
  const uint32_t type = r.eax & 31, level = r.eax >> 5 & 7;
  const uint64_t ways = (r.ebx >> 22) + 1, partitions = (r.ebx >> 12 & 1023) + 1, line = (r.ebx & 4095) + 1;
  const uint64_t bytes = ways * partitions * line * (static_cast<uint64_t>(r.ecx) + 1);
  constexpr uint32_t kData = 1, kUnified = 3;
  if (type != kData && type != kUnified) return;
  if (level == 1) caches.l1d = bytes;
  if (level == 2) caches.l2 = bytes;
  if (level == 3) caches.l3 = bytes;
}

CacheSizes deterministic_caches(const CpuSource& cpu, uint32_t leaf) {
  CacheSizes caches;
  constexpr uint32_t kMostCaches = 16;  // a broken emulator that never answers type 0 must not hang the probe
  for (uint32_t i = 0; i < kMostCaches; ++i) {
    const CpuidRegisters r = query_up_to(cpu, leaf, i);
    if ((r.eax & 31) == 0) break;
    add_cache(caches, r);
  }
  return caches;
}

}  // namespace

CpuIdentity identify_cpu(const CpuSource& cpu) {
  CpuIdentity identity;
  const CpuidRegisters zero = query(cpu, 0);
  char vendor[13] = {};
  std::memcpy(vendor, &zero.ebx, 4);
  std::memcpy(vendor + 4, &zero.edx, 4);
  std::memcpy(vendor + 8, &zero.ecx, 4);
  identity.vendor = vendor;

  const uint32_t signature = query_up_to(cpu, 1).eax;
  identity.stepping = signature & 15;
  identity.family = signature >> 8 & 15;
  identity.model = signature >> 4 & 15;
  if (identity.family == 6 || identity.family == 15) identity.model |= (signature >> 16 & 15) << 4;
  if (identity.family == 15) identity.family += signature >> 20 & 255;

  char brand[49] = {};
  for (uint32_t i = 0; i < 3; ++i) {
    const CpuidRegisters r = query_up_to(cpu, kExtended + 2 + i);
    std::memcpy(brand + static_cast<size_t>(16) * i, &r, sizeof r);
  }
  const std::string_view text(brand);
  const size_t first = text.find_first_not_of(' ');
  if (first != std::string_view::npos) identity.brand = text.substr(first, text.find_last_not_of(' ') - first + 1);
  return identity;
}

IsaMask detect_isa(const CpuSource& cpu) {
  const CpuidRegisters one = query_up_to(cpu, 1), seven = features7(cpu, 0), seven1 = features7(cpu, 1);
  const uint64_t state = saved_state(cpu);
  const bool ymm = (state & kYmmState) == kYmmState && has(one.ecx, 28);
  const bool zmm = ymm && (state & kZmmState) == kZmmState && has(seven.ebx, 16);
  const bool tiles = (state & kTileState) == kTileState && has(seven.edx, 24);

  IsaMask isa = 0;
  const auto add = [&isa](bool present, IsaMask bit) { isa |= present ? bit : 0; };
  add(has(seven.ebx, 8), OMNI_ISA_BMI2);  // VEX-encoded, but on general registers: no state to save
  add(ymm && has(seven.ebx, 5), OMNI_ISA_AVX2);
  add(ymm && has(one.ecx, 12), OMNI_ISA_FMA);
  add(ymm && has(one.ecx, 29), OMNI_ISA_F16C);
  add(ymm && has(seven.ecx, 8), OMNI_ISA_GFNI);  // kernels use its VEX and EVEX forms only
  add(ymm && has(seven1.eax, 4), OMNI_ISA_AVX_VNNI);
  add(zmm, OMNI_ISA_AVX512F);
  add(zmm && has(seven.ebx, 30), OMNI_ISA_AVX512BW);
  add(zmm && has(seven.ebx, 17), OMNI_ISA_AVX512DQ);
  add(zmm && has(seven.ebx, 31), OMNI_ISA_AVX512VL);
  add(zmm && has(seven.ecx, 1), OMNI_ISA_AVX512VBMI);
  add(zmm && has(seven.ecx, 11), OMNI_ISA_AVX512VNNI);
  add(zmm && has(seven1.eax, 5), OMNI_ISA_AVX512BF16);
  add(tiles, OMNI_ISA_AMX_TILE);
  add(tiles && has(seven.edx, 25), OMNI_ISA_AMX_INT8);
  add(tiles && has(seven.edx, 22), OMNI_ISA_AMX_BF16);
  return isa;
}

std::string amx_absence(const CpuSource& cpu) {
  if (!has(features7(cpu, 0).edx, 24)) return "the processor has no AMX (CPUID.7.0:EDX.24 is 0)";
  if ((saved_state(cpu) & kTileState) != kTileState) return "the operating system does not save tile state (XCR0 bits 17-18)";
  return "";
}

CacheSizes cpuid_caches(const CpuSource& cpu) {
  CacheSizes caches = deterministic_caches(cpu, 4);
  if (caches.l1d != 0) return caches;
  if (has(query_up_to(cpu, kExtended + 1).ecx, 22)) caches = deterministic_caches(cpu, kExtended + 0x1D);
  if (caches.l1d != 0) return caches;
  // AMD before topology extensions: KiB of L1D and L2, and L3 in units of 512 KiB.
  caches.l1d = static_cast<uint64_t>(query_up_to(cpu, kExtended + 5).ecx >> 24) << 10;
  const CpuidRegisters six = query_up_to(cpu, kExtended + 6);
  caches.l2 = static_cast<uint64_t>(six.ecx >> 16) << 10;
  caches.l3 = static_cast<uint64_t>(six.edx >> 18) << 19;
  return caches;
}

uint32_t traits_of(std::string_view vendor, uint32_t family, uint32_t /*model*/) {
  // Every Intel core with VDPBF16PS so far is family 6 (Cooper Lake 0x55, Sapphire Rapids 0x8F, Emerald Rapids 0xCF, Granite Rapids
  // 0xAD and 0xAE): one port and two passes. AMD's (Zen 4 on) run it at twice the FMA rate. A later Intel family is unmeasured and
  // gets no trait.
  if (vendor == "GenuineIntel" && family == 6) return OMNI_TRAIT_SLOW_BF16_DOT;
  return 0;
}

}  // namespace okl
