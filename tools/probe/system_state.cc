// SPDX-License-Identifier: Apache-2.0
#include "tools/probe/system_state.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <fstream>
#include <sstream>

namespace probe {
namespace {

std::string first_line(const char* path) {
  std::string line;
  std::ifstream file(path);
  std::getline(file, line);
  return line;
}

// The word in brackets of "always [madvise] never".
std::string selected(const std::string& line) {
  const size_t open = line.find('['), close = line.find(']');
  return open < close && close != std::string::npos ? line.substr(open + 1, close - open - 1) : "unknown";
}

std::optional<uint64_t> number(const std::string& text) {
  std::istringstream stream(text);
  uint64_t value = 0;
  return stream >> value ? std::optional(value) : std::nullopt;
}

std::optional<uint64_t> huge_page_bytes() {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("Hugepagesize:", 0) != 0) continue;
    if (const auto kib = number(line.substr(line.find(':') + 1))) return *kib << 10;
  }
  return std::nullopt;
}

}  // namespace

SystemState read_system_state() {
  SystemState state;
  utsname name{};
  if (uname(&name) == 0) state.kernel = std::string(name.sysname) + " " + name.release + " " + name.machine;
  state.transparent_huge_pages = selected(first_line("/sys/kernel/mm/transparent_hugepage/enabled"));
  state.huge_page_pool = number(first_line("/proc/sys/vm/nr_hugepages"));
  state.huge_page_bytes = huge_page_bytes();
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) state.memory_bytes = static_cast<uint64_t>(pages) * static_cast<uint64_t>(page);
  return state;
}

}  // namespace probe
