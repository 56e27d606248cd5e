// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/topology.h"

#include <sched.h>

#include <algorithm>
#include <string>

#include "kernels/cpu/cgroup.h"

namespace okl {
namespace {

CpuSet processors_of_stat(const SystemFiles& files) {
  CpuSet cpus;
  const std::string text = files.read("/proc/stat").value_or("");
  for (const std::string_view line : split(text, "\n")) {
    if (line.substr(0, 3) != "cpu") continue;
    if (const auto number = parse_number(line.substr(3, line.find(' ') - 3))) cpus.push_back(static_cast<uint32_t>(*number));
  }
  std::sort(cpus.begin(), cpus.end());
  return cpus;
}

CpuSet online_cpus(const SystemFiles& files, const std::optional<CpuSet>& affinity) {
  CpuSet online = parse_cpu_list(files.read_line("/sys/devices/system/cpu/online"));
  if (online.empty()) online = processors_of_stat(files);
  if (online.empty() && affinity) online = *affinity;
  if (online.empty()) online = {0};
  return online;
}

// Narrows `usable`, unless nothing would be left.
void narrow(CpuSet& usable, const CpuSet& allowed) {
  CpuSet both = intersect(usable, allowed);
  if (!both.empty()) usable = std::move(both);
}

}  // namespace

Topology read_topology(const SystemFiles& files, const std::optional<CpuSet>& affinity) {
  const CpuSet online = online_cpus(files, affinity);
  const CgroupLimits cgroup = cgroup_limits(files);
  CpuSet usable = online;
  if (affinity) narrow(usable, *affinity);
  if (cgroup.cpus) narrow(usable, *cgroup.cpus);
  narrow(usable, parse_cpu_list(files.read_line("/sys/devices/cpu_core/cpus")));
  const uint32_t count = static_cast<uint32_t>(usable.size());
  return {static_cast<uint32_t>(online.size()), std::min(count, cgroup.quota.value_or(count))};
}

std::optional<CpuSet> thread_affinity() {
  // The kernel refuses a mask smaller than its own (EINVAL), so the mask grows until it fits.
  for (size_t count = CPU_SETSIZE; count <= size_t{64} * CPU_SETSIZE; count *= 2) {
    std::vector<unsigned long> words(CPU_ALLOC_SIZE(count) / sizeof(unsigned long));
    cpu_set_t* set = reinterpret_cast<cpu_set_t*>(words.data());
    const size_t bytes = words.size() * sizeof words[0];
    if (sched_getaffinity(0, bytes, set) != 0) continue;
    CpuSet cpus;
    for (size_t cpu = 0; cpu < count; ++cpu) {
      if (CPU_ISSET_S(cpu, bytes, set)) cpus.push_back(static_cast<uint32_t>(cpu));
    }
    return cpus;
  }
  return std::nullopt;
}

}  // namespace okl
