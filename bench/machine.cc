// SPDX-License-Identifier: Apache-2.0
#include "bench/machine.h"

#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string>

#include "omni/omni.h"

namespace omnibench {
namespace {

using nlohmann::json;

omni_machine machine() {
  omni_machine m{};
  m.size = sizeof m;
  if (omni_get_machine(&m) != OMNI_OK) m = omni_machine{};
  return m;
}

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

json isa_names(uint32_t mask) {
  static const char* const names[] = {"avx2",     "fma",      "f16c",       "avxvnni",    "avx512f",    "avx512bw",
                                      "avx512dq", "avx512vl", "avx512vbmi", "avx512vnni", "avx512bf16", "amx_tile",
                                      "amx_int8", "amx_bf16", "gfni",       "bmi2"};
  json out = json::array();
  for (size_t bit = 0; bit < std::size(names); ++bit) {
    if ((mask >> bit & 1) != 0) out.push_back(names[bit]);
  }
  return out;
}

uint64_t meminfo(const std::string& key) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind(key + ":", 0) == 0) return std::strtoull(line.c_str() + key.size() + 1, nullptr, 10) * 1024;
  }
  return 0;
}

}  // namespace

json machine_json() {
  const omni_machine m = machine();
  utsname system{};
  uname(&system);
  return {{"name", std::string(m.name)},
          {"vendor", std::string(m.vendor)},
          {"isa", isa_names(m.isa)},
          {"isa_hardware", isa_names(m.isa_hardware)},
          {"slow_bf16_dot", (m.traits & OMNI_TRAIT_SLOW_BF16_DOT) != 0},
          {"bf16_dot_demoted", (m.traits & OMNI_TRAIT_BF16_DOT_DEMOTED) != 0},
          {"cores_online", m.cores_online},
          {"cores_usable", m.cores_usable},
          {"l1d_bytes", m.l1d_bytes},
          {"l2_bytes", m.l2_bytes},
          {"l3_bytes", m.l3_bytes},
          {"memory_bytes", meminfo("MemTotal")},
          {"memory_available", available_memory()},
          {"transparent_huge_pages", first_line("/sys/kernel/mm/transparent_hugepage/enabled")},
          {"load_average_start", first_line("/proc/loadavg")},
          {"kernel", std::string(system.sysname) + " " + system.release},
          {"architecture", std::string(system.machine)}};
}

uint64_t available_memory() {
  uint64_t available = meminfo("MemAvailable");
  const std::string limit = first_line("/sys/fs/cgroup/memory.max");
  const std::string used = first_line("/sys/fs/cgroup/memory.current");
  if (!limit.empty() && limit != "max" && !used.empty()) {
    const uint64_t most = std::strtoull(limit.c_str(), nullptr, 10);
    const uint64_t now = std::strtoull(used.c_str(), nullptr, 10);
    available = std::min(available, most > now ? most - now : 0);
  }
  return available;
}

uint64_t last_level_cache() {
  const omni_machine m = machine();
  if (m.l3_bytes > 0) return m.l3_bytes;
  return m.l2_bytes > 0 ? m.l2_bytes : uint64_t{32} << 20;
}

uint64_t second_level_caches() {
  const omni_machine m = machine();
  return m.l2_bytes * std::max<uint32_t>(m.cores_online, 1);
}

ProcessorTime processor_time() {
  std::istringstream line(first_line("/proc/stat"));
  std::string cpu;
  line >> cpu;
  const double tick = 1.0 / static_cast<double>(sysconf(_SC_CLK_TCK));
  ProcessorTime time;
  // user nice system idle iowait irq softirq steal
  for (int field = 0; field < 8; ++field) {
    double value = 0;
    line >> value;
    time.total += value * tick;
    if (field == 7) time.stolen = value * tick;
    if (field != 3 && field != 4 && field != 7) time.busy += value * tick;
  }
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    getrusage(who, &usage);
    for (const timeval& part : {usage.ru_utime, usage.ru_stime}) {
      time.own += static_cast<double>(part.tv_sec) + 1e-6 * static_cast<double>(part.tv_usec);
    }
  }
  return time;
}

}  // namespace omnibench
