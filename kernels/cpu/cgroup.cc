// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/cgroup.h"

#include <algorithm>
#include <string>
#include <vector>

namespace okl {
namespace {

struct Mount {
  bool unified = false;     // version 2
  std::string controllers;  // version 1: comma-separated super options
  std::string root;         // the group that the mount point shows
  std::string point;
};

bool lists(std::string_view comma_list, std::string_view word) {
  const std::vector<std::string_view> words = split(comma_list, ",");
  return std::find(words.begin(), words.end(), word) != words.end();
}

// mountinfo writes space, tab, newline and backslash as three octal digits.
std::string unescape(std::string_view text) {
  std::string plain;
  for (size_t i = 0; i < text.size(); ++i) {
    const auto digit = [&](size_t at) { return at < text.size() && text[at] >= '0' && text[at] <= '7' ? text[at] - '0' : -1; };
    if (text[i] == '\\' && digit(i + 1) >= 0 && digit(i + 2) >= 0 && digit(i + 3) >= 0) {
      plain += static_cast<char>(digit(i + 1) * 64 + digit(i + 2) * 8 + digit(i + 3));
      i += 3;
    } else {
      plain += text[i];
    }
  }
  return plain;
}

// "36 35 98:0 /root /point options tags... - type source super-options"
std::vector<Mount> cgroup_mounts(const SystemFiles& files) {
  std::vector<Mount> mounts;
  const std::string text = files.read("/proc/self/mountinfo").value_or("");
  for (const std::string_view line : split(text, "\n")) {
    const std::vector<std::string_view> words = split(line, " ");
    const auto dash = std::find(words.begin(), words.end(), "-");
    if (words.size() < 6 || words.end() - dash < 4) continue;
    const bool unified = dash[1] == "cgroup2";
    if (!unified && dash[1] != "cgroup") continue;
    mounts.push_back({unified, std::string(dash[3]), unescape(words[3]), unescape(words[4])});
  }
  if (mounts.empty()) {
    mounts = {{true, "", "/", "/sys/fs/cgroup"},
              {true, "", "/", "/sys/fs/cgroup/unified"},
              {false, "cpu", "/", "/sys/fs/cgroup/cpu"},
              {false, "cpuset", "/", "/sys/fs/cgroup/cpuset"}};
  }
  return mounts;
}

// The process's group in the hierarchy of `mount`, from lines "number:controllers:path"; version 2 is "0::path".
std::string own_group(std::string_view text, const Mount& mount, std::string_view controller) {
  for (const std::string_view line : split(text, "\n")) {
    const size_t first = line.find(':');
    const size_t second = first == std::string_view::npos ? first : line.find(':', first + 1);
    if (second == std::string_view::npos) continue;
    const std::string_view controllers = line.substr(first + 1, second - first - 1);
    if (mount.unified ? controllers.empty() : lists(controllers, controller)) return std::string(line.substr(second + 1));
  }
  return "/";
}

// Folders from the process's group up to the mount point. A group outside of what the mount shows (a container that sees its own
// group as the root of the mount) is the mount point itself.
std::vector<std::string> folders(const Mount& mount, std::string group) {
  if (mount.root != "/") {
    const bool inside = group.compare(0, mount.root.size(), mount.root) == 0 &&
                        (group.size() == mount.root.size() || group[mount.root.size()] == '/');
    group = inside ? group.substr(mount.root.size()) : "";
  }
  std::vector<std::string> paths;
  while (group.size() > 1) {
    paths.push_back(mount.point + group);
    group.erase(group.find_last_of('/'));
  }
  paths.push_back(mount.point);
  return paths;
}

void limit_quota(CgroupLimits& limits, std::optional<uint64_t> quota, std::optional<uint64_t> period) {
  if (!quota || !period || *period == 0) return;
  const uint64_t whole = std::clamp<uint64_t>(*quota / *period, 1, UINT32_MAX);
  limits.quota = std::min(limits.quota.value_or(UINT32_MAX), static_cast<uint32_t>(whole));
}

void limit_cpus(CgroupLimits& limits, const std::string& list) {
  const CpuSet cpus = parse_cpu_list(list);
  if (cpus.empty()) return;  // empty: the group inherits its parent's
  limits.cpus = limits.cpus ? intersect(*limits.cpus, cpus) : cpus;
}

void read_unified(const SystemFiles& files, const std::string& folder, CgroupLimits& limits) {
  const std::string maximum = files.read_line(folder + "/cpu.max");  // "quota period", quota may be "max"
  const std::vector<std::string_view> words = split(maximum, " ");
  if (words.size() == 2) limit_quota(limits, parse_number(words[0]), parse_number(words[1]));
  limit_cpus(limits, files.read_line(folder + "/cpuset.cpus.effective"));
}

void read_quota_v1(const SystemFiles& files, const std::string& folder, CgroupLimits& limits) {
  limit_quota(limits, parse_number(files.read_line(folder + "/cpu.cfs_quota_us")),  // "-1": none, and no number
              parse_number(files.read_line(folder + "/cpu.cfs_period_us")));
}

void read_cpus_v1(const SystemFiles& files, const std::string& folder, CgroupLimits& limits) {
  std::string list = files.read_line(folder + "/cpuset.effective_cpus");
  if (list.empty()) list = files.read_line(folder + "/cpuset.cpus");
  limit_cpus(limits, list);
}

}  // namespace

CgroupLimits cgroup_limits(const SystemFiles& files) {
  CgroupLimits limits;
  const std::string groups = files.read("/proc/self/cgroup").value_or("");
  for (const Mount& mount : cgroup_mounts(files)) {
    if (mount.unified) {
      for (const std::string& folder : folders(mount, own_group(groups, mount, ""))) read_unified(files, folder, limits);
      continue;
    }
    if (lists(mount.controllers, "cpu")) {
      for (const std::string& folder : folders(mount, own_group(groups, mount, "cpu"))) read_quota_v1(files, folder, limits);
    }
    if (lists(mount.controllers, "cpuset")) {
      for (const std::string& folder : folders(mount, own_group(groups, mount, "cpuset"))) read_cpus_v1(files, folder, limits);
    }
  }
  return limits;
}

}  // namespace okl
