// SPDX-License-Identifier: Apache-2.0
#include "reference/cache/available.h"

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>

namespace ref {
namespace {

namespace fs = std::filesystem;

// The number in a file that holds one; nullopt for "max", an absent file, or anything else.
std::optional<uint64_t> read_number(const fs::path& file) {
  std::ifstream in(file);
  uint64_t value = 0;
  if (!(in >> value)) return std::nullopt;
  return value;
}

// The number behind a word at the beginning of a line.
std::optional<uint64_t> read_entry(const fs::path& file, const std::string& word) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string name;
    uint64_t value = 0;
    if (fields >> name >> value && name == word) return value;
  }
  return std::nullopt;
}

// The path of this process's group: of version 2 with an empty `controller`. "" when there is none.
std::string group_path(const fs::path& proc, const std::string& controller) {
  std::ifstream in(proc / "self/cgroup");
  for (std::string line; std::getline(in, line);) {  // "4:memory:/path", "0::/path"
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    std::istringstream controllers(line.substr(first + 1, second - first - 1));
    std::string each;
    do {
      each.clear();
      std::getline(controllers, each, ',');
      if (each == controller) return line.substr(second + 1);
    } while (controllers);
  }
  return {};
}

struct Names {
  const char *limit, *usage, *droppable;
};

uint64_t left_in(const fs::path& group, const Names& names) {
  const std::optional<uint64_t> limit = read_number(group / names.limit);
  const std::optional<uint64_t> usage = read_number(group / names.usage);
  if (!limit || !usage) return UINT64_MAX;
  const uint64_t droppable = read_entry(group / "memory.stat", names.droppable).value_or(0);
  const uint64_t held = *usage > droppable ? *usage - droppable : 0;
  return *limit > held ? *limit - held : 0;
}

// A group and all above it up to the mount.
uint64_t left_in_groups(const fs::path& mount, const std::string& path, const Names& names) {
  uint64_t left = left_in(mount, names);
  fs::path group = mount;
  for (const fs::path& part : fs::path(path).relative_path()) {
    if (part == "..") break;  // a namespace that begins elsewhere: its own root has been read
    group /= part;
    left = std::min(left, left_in(group, names));
  }
  return left;
}

}  // namespace

uint64_t available_memory(const MemoryFiles& files) {
  uint64_t available = UINT64_MAX;
  if (const auto kibibytes = read_entry(files.proc / "meminfo", "MemAvailable:")) available = *kibibytes * 1024;
  const Names v2 = {"memory.max", "memory.current", "inactive_file"};
  const Names v1 = {"memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"};
  available = std::min(available, left_in_groups(files.cgroup, group_path(files.proc, ""), v2));
  return std::min(available, left_in_groups(files.cgroup / "memory", group_path(files.proc, "memory"), v1));
}

}  // namespace ref
