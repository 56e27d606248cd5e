// SPDX-License-Identifier: Apache-2.0
// Permission to use AMX tile data, which Linux (5.16 on) grants to a process on request. The request enlarges every thread's signal
// frame, so it is made when an AMX kernel is about to be chosen or a caller asks for the machine, never at load time.
#pragma once

#include <string>

#include "kernels/cpu/cpu_source.h"

namespace okl {

struct AmxPermission {
  bool granted = false;
  std::string reason;  // one line why not; "" when granted
};

// Checks CPUID and XCR0, then asks the kernel: ARCH_GET_XCOMP_SUPP, ARCH_GET_XCOMP_PERM and, if not yet granted,
// ARCH_REQ_XCOMP_PERM. Calls the system every time.
AmxPermission request_amx(const CpuSource& cpu);

// request_amx() for the processor that runs this code, once per process. Thread-safe.
const AmxPermission& amx_permission();
// Its result when somebody has asked, else nullptr. Requests nothing.
const AmxPermission* amx_permission_if_requested();

// For tests, which no C entry reaches: amx_permission() asks `cpu` instead of this processor, and forgets what it was told before.
// nullptr restores the processor. Not while other threads select.
void set_amx_source(const CpuSource* cpu);

}  // namespace okl
