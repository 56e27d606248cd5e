// SPDX-License-Identifier: Apache-2.0
// How much memory a process may still take: what the system has, and what its control groups leave.
#pragma once

#include <cstdint>
#include <filesystem>

namespace ref {

// Where the system tells it; tests put their own files there.
struct MemoryFiles {
  std::filesystem::path proc = "/proc";
  std::filesystem::path cgroup = "/sys/fs/cgroup";
};

// The least of MemAvailable and, for this process's control group and those above it (version 2, or the memory controller of
// version 1), limit - (usage - file pages that can be dropped). UINT64_MAX where nothing tells.
uint64_t available_memory(const MemoryFiles& files = {});

}  // namespace ref
