// SPDX-License-Identifier: Apache-2.0
// A machine with AMX (and AVX-VNNI) for a test, wherever it runs: instructions that the processor lacks are executed by the
// software model, selection sees their bits, and the request for tile permission gets the answer of the test.
#pragma once

#include <cerrno>
#include <optional>

#include "jit/amx_model/emulator.h"
#include "kernels/cpu/amx.h"
#include "kernels/cpu/cpu_source.h"
#include "kernels/cpu/machine.h"

namespace okl::test {

// What arch_prctl(ARCH_REQ_XCOMP_PERM) answers.
enum class Permission {
  kGranted,
  kInvalid,      // EINVAL: a kernel before 5.16
  kForbidden,    // EPERM: a policy
  kSmallStacks,  // ENOSPC: a thread's sigaltstack is too small for the larger signal frame
  kMaskedCpuid   // not asked: a hypervisor hides AMX
};

class ModelledCpu {
 public:
  static constexpr IsaMask kModelled = kIsaAmxBits | OMNI_ISA_AVX_VNNI;

  explicit ModelledCpu(Permission permission = Permission::kGranted) : permission_(permission) {
    source_ = {&permission_, &cpuid, &xgetbv, &arch_prctl};
    set_amx_source(&source_);
    missing_ = kModelled & ~hardware_isa();
    if (missing_ != 0) emulator_.emplace();
    set_modelled_isa(missing_);
  }
  ~ModelledCpu() {
    set_modelled_isa(0);
    set_amx_source(nullptr);
  }
  ModelledCpu(const ModelledCpu&) = delete;
  ModelledCpu& operator=(const ModelledCpu&) = delete;

  // Whether tile instructions run in the model, so that its counters and faults can be looked at.
  bool models_tiles() const { return (missing_ & OMNI_ISA_AMX_TILE) != 0; }

 private:
  static CpuidRegisters cpuid(const void* context, uint32_t leaf, uint32_t) {
    const bool masked = *static_cast<const Permission*>(context) == Permission::kMaskedCpuid;
    if (leaf == 0) return {7, 0, 0, 0};
    if (leaf == 1) return {0, 0, 1U << 27 | 1U << 28, 0};
    if (leaf == 7) return {0, 0, 0, masked ? 0 : 7U << 22 & ~(1U << 23)};
    return {};
  }
  static uint64_t xgetbv(const void*) { return 0x600E7; }
  static int arch_prctl(const void* context, int code, uintptr_t argument) {
    constexpr int kSupported = 0x1021, kRequest = 0x1023;
    if (code == kSupported) {
      *reinterpret_cast<uint64_t*>(argument) = 1U << 18;
      return 0;
    }
    if (code != kRequest) return -EINVAL;
    switch (*static_cast<const Permission*>(context)) {
      case Permission::kInvalid:
        return -EINVAL;
      case Permission::kForbidden:
        return -EPERM;
      case Permission::kSmallStacks:
        return -ENOSPC;
      default:
        // On a processor with AMX the system has to agree as well.
        return (hardware_cpu().arch_prctl(nullptr, code, argument) == 0) || !real_amx() ? 0 : -EPERM;
    }
  }
  static bool real_amx() { return (hardware_cpu().cpuid(nullptr, 7, 0).edx >> 24 & 1) != 0; }

  const Permission permission_;
  CpuSource source_;
  IsaMask missing_ = 0;
  std::optional<amx_model::Emulator> emulator_;
};

}  // namespace okl::test
