// SPDX-License-Identifier: Apache-2.0
// CPU limits of the control group that this process is in, versions 1 and 2.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/cpu/system_files.h"

namespace okl {

struct CgroupLimits {
  // Whole processors' worth of time: the smallest quota / period on the way from the process's group to the root, rounded down and
  // at least 1. Rounding up would let the last thread be throttled for part of every period while the others wait at the join.
  std::optional<uint32_t> quota;
  // Intersection of the processor lists on that way; nullopt when no group has one.
  std::optional<CpuSet> cpus;
};

// Reads proc/self/cgroup and proc/self/mountinfo, then cpu.max and cpuset.cpus.effective (version 2) or cpu.cfs_quota_us,
// cpu.cfs_period_us and cpuset.effective_cpus or cpuset.cpus (version 1) of every group up to the mount point. Without mountinfo
// the usual mount points are tried. What cannot be read or understood is no limit.
CgroupLimits cgroup_limits(const SystemFiles& files);

}  // namespace okl
