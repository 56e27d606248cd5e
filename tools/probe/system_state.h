// SPDX-License-Identifier: Apache-2.0
// What the operating system says about memory pages.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace probe {

struct SystemState {
  std::string kernel;                      // "Linux 6.1.0 x86_64"
  std::string transparent_huge_pages;      // the setting in force: "always", "madvise" or "never"; "unknown" when it cannot be read
  std::optional<uint64_t> huge_page_pool;  // vm.nr_hugepages; nullopt when it cannot be read
  std::optional<uint64_t> huge_page_bytes;  // Hugepagesize of /proc/meminfo
  uint64_t memory_bytes = 0;                // physical memory
};

SystemState read_system_state();

}  // namespace probe
