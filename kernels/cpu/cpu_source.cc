// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cpu_source.h"

#include <cerrno>

#if defined(__x86_64__)
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>
#endif

namespace okl {
namespace {

#if defined(__x86_64__)

CpuidRegisters read_cpuid(const void*, uint32_t leaf, uint32_t subleaf) {
  CpuidRegisters r;
  __cpuid_count(leaf, subleaf, r.eax, r.ebx, r.ecx, r.edx);
  return r;
}

uint64_t read_xcr0(const void*) {
  uint32_t low = 0, high = 0;
  // The intrinsic would need -mxsave, and no ISA flag stands outside leaf files.
  asm volatile("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return static_cast<uint64_t>(high) << 32 | low;
}

int call_arch_prctl(const void*, int code, uintptr_t argument) { return syscall(SYS_arch_prctl, code, argument) == 0 ? 0 : -errno; }

#else

CpuidRegisters read_cpuid(const void*, uint32_t, uint32_t) { return {}; }
uint64_t read_xcr0(const void*) { return 0; }
int call_arch_prctl(const void*, int, uintptr_t) { return -ENOSYS; }

#endif

}  // namespace

const CpuSource& hardware_cpu() {
  static constexpr CpuSource source{nullptr, read_cpuid, read_xcr0, call_arch_prctl};
  return source;
}

}  // namespace okl
