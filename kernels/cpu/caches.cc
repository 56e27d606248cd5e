// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/caches.h"

#include <cpuinfo.h>

#include <algorithm>

namespace okl {
namespace {

CacheSizes cpuinfo_caches() {
  CacheSizes caches;
  if (!cpuinfo_initialize()) return caches;
  const cpuinfo_processor* processor = cpuinfo_get_processor(0);
  if (processor == nullptr) return caches;
  const auto bytes = [](const cpuinfo_cache* cache) { return cache == nullptr ? uint64_t{0} : uint64_t{cache->size}; };
  return {bytes(processor->cache.l1d), bytes(processor->cache.l2), bytes(processor->cache.l3)};
}

}  // namespace

bool cpuinfo_is_safe(const SystemFiles& files) {
  const CpuSet possible = parse_cpu_list(files.read_line("/sys/devices/system/cpu/possible"));
  const CpuSet present = parse_cpu_list(files.read_line("/sys/devices/system/cpu/present"));
  if (possible.empty() || present.empty() || files.read_line("/sys/devices/system/cpu/kernel_max").empty()) return false;
  const std::string text = files.read("/proc/cpuinfo").value_or("");
  for (const std::string_view line : split(text, "\n")) {
    if (line.substr(0, 9) != "processor") continue;
    const auto number = parse_number(line.substr(line.find_last_of(" \t:") + 1));
    if (number && std::binary_search(possible.begin(), possible.end(), *number)) return true;
  }
  return false;
}

CacheSizes read_caches(const CpuSource& cpu, const SystemFiles& files) {
  // libcpuinfo always asks the processor that runs it, so it can serve no other source.
  CacheSizes caches;
  if (&cpu == &hardware_cpu() && cpuinfo_is_safe(files)) caches = cpuinfo_caches();
  const CacheSizes fallback = cpuid_caches(cpu);
  if (caches.l1d == 0) caches.l1d = fallback.l1d;
  if (caches.l2 == 0) caches.l2 = fallback.l2;
  if (caches.l3 == 0) caches.l3 = fallback.l3;
  return caches;
}

}  // namespace okl
