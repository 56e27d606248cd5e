// SPDX-License-Identifier: Apache-2.0
// CPUID leaves as processors returned them, for tests of detection. Values are facts of the hardware; XCR0 and arch_prctl are the
// test's choice.
#pragma once

#include <cerrno>
#include <cstdint>
#include <vector>

#include "kernels/cpu/cpu_source.h"

namespace okl::testing {

struct Leaf {
  uint32_t leaf, subleaf;
  CpuidRegisters registers;
};

struct RecordedCpu {
  std::vector<Leaf> leaves;
  uint64_t xcr0 = 0;
  int supported_result = 0, permitted_result = 0, request_result = 0;  // 0 or minus errno
  uint64_t supported = 1u << 18, permitted = 0;
  mutable int xgetbv_calls = 0, requests = 0;

  // Points at this object.
  CpuSource source() const { return {this, cpuid, xgetbv, arch_prctl}; }

  CpuidRegisters& at(uint32_t leaf, uint32_t subleaf = 0) {
    for (Leaf& entry : leaves) {
      if (entry.leaf == leaf && entry.subleaf == subleaf) return entry.registers;
    }
    leaves.push_back({leaf, subleaf, {}});
    return leaves.back().registers;
  }

 private:
  static const RecordedCpu& of(const void* context) { return *static_cast<const RecordedCpu*>(context); }

  static CpuidRegisters cpuid(const void* context, uint32_t leaf, uint32_t subleaf) {
    const RecordedCpu& cpu = of(context);
    for (const Leaf& entry : cpu.leaves) {
      if (entry.leaf == leaf && entry.subleaf == subleaf) return entry.registers;
    }
    // Beyond its last basic leaf an Intel processor answers with that leaf's data: reading it as features would be a bug.
    if (leaf < 0x80000000 && leaf > of(context).leaves[0].registers.eax) return {~0u, ~0u, ~0u, ~0u};
    return {};
  }

  static uint64_t xgetbv(const void* context) {
    ++of(context).xgetbv_calls;
    return of(context).xcr0;
  }

  static int arch_prctl(const void* context, int code, uintptr_t argument) {
    const RecordedCpu& cpu = of(context);
    if (code == 0x1023) {
      ++cpu.requests;
      return argument == 18 ? cpu.request_result : -EINVAL;
    }
    const int result = code == 0x1021 ? cpu.supported_result : code == 0x1022 ? cpu.permitted_result : -EINVAL;
    if (result == 0) *reinterpret_cast<uint64_t*>(argument) = code == 0x1021 ? cpu.supported : cpu.permitted;
    return result;
  }
};

inline constexpr uint64_t kXcr0Sse = 0x3, kXcr0Avx = 0x7, kXcr0Avx512 = 0xE7, kXcr0Amx = 0x600E7;

RecordedCpu nehalem();         // Xeon engineering sample: no XSAVE
RecordedCpu haswell();         // Core i7-4770
RecordedCpu skylake_x();       // Core i9-7900X
RecordedCpu cooper_lake();     // skylake_x() with Cooper Lake's signature, VNNI and BF16 bits
RecordedCpu alder_lake();      // Core i7-12800HX, performance core: AVX-VNNI without AVX-512
RecordedCpu zen4();            // Ryzen 5 7600X
RecordedCpu emerald_rapids();  // Xeon Gold 5520+
RecordedCpu phenom();          // Phenom II X4 940: caches by leaf 0x80000005 only

}  // namespace okl::testing
