// SPDX-License-Identifier: Apache-2.0
// How many processors there are and how many threads make sense.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/cpu/system_files.h"

namespace okl {

struct Topology {
  uint32_t online = 1;  // logical processors
  uint32_t usable = 1;  // online, allowed by affinity and cpuset, performance cores if the machine is hybrid; at most the quota
};

// `affinity` is the set that the scheduler allows, nullopt when it is unknown. Both counts are at least 1 whatever cannot be read.
// - online: sys/devices/system/cpu/online; else the cpuN lines of proc/stat; else the affinity set.
// - performance cores: sys/devices/cpu_core/cpus, which only hybrid Intel machines have. CPUID leaf 0x1A would tell them too, but
//   only by moving a thread onto each core, and the library moves no thread. A process confined to efficiency cores keeps those.
Topology read_topology(const SystemFiles& files, const std::optional<CpuSet>& affinity);

// sched_getaffinity of the calling thread, whatever the number of processors.
std::optional<CpuSet> thread_affinity();

}  // namespace okl
