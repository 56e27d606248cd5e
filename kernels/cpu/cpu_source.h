// SPDX-License-Identifier: Apache-2.0
// Where facts about the processor come from. Detection takes this struct, so that tests give it recorded CPUID dumps and
// permissions that no machine at hand would refuse.
#pragma once

#include <cstdint>

namespace okl {

struct CpuidRegisters {
  uint32_t eax = 0, ebx = 0, ecx = 0, edx = 0;
};

struct CpuSource {
  const void* context = nullptr;
  CpuidRegisters (*cpuid)(const void* context, uint32_t leaf, uint32_t subleaf) = nullptr;
  // XCR0. Called only when CPUID.1:ECX.OSXSAVE is set: the instruction raises #UD otherwise.
  uint64_t (*xgetbv)(const void* context) = nullptr;
  // arch_prctl(code, argument): 0, or minus errno. `argument` is a pointer for the GET codes and a number for the REQ codes.
  int (*arch_prctl)(const void* context, int code, uintptr_t argument) = nullptr;
};

// The processor that runs this code. On architectures other than x86-64 every leaf reads 0.
const CpuSource& hardware_cpu();

}  // namespace okl
