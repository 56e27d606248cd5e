// SPDX-License-Identifier: Apache-2.0
// Cache sizes of the machine: libcpuinfo where it can be trusted, CPUID elsewhere.
#pragma once

#include "kernels/cpu/probe.h"
#include "kernels/cpu/system_files.h"

namespace okl {

// Whether libcpuinfo can initialise. It reads proc/cpuinfo and the processor lists of /sys, and with an empty proc/cpuinfo it
// dereferences NULL (version of 2022-06); with lists that it cannot read it writes to stderr, which the library must not.
bool cpuinfo_is_safe(const SystemFiles& files);

// libcpuinfo's sizes for processor 0, with CPUID's for what it leaves at 0 or when it cannot be asked.
CacheSizes read_caches(const CpuSource& cpu, const SystemFiles& files);

}  // namespace okl
