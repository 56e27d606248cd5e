// SPDX-License-Identifier: Apache-2.0
// Small files of /proc and /sys, under a root that tests replace by a fixture folder.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace okl {

struct SystemFiles {
  std::string root;  // "" for the real system, else the folder that holds proc/ and sys/

  // Whole text of a file (absolute path below the root, at most 4 MiB are read); nullopt when it cannot be read.
  std::optional<std::string> read(std::string_view path) const;
  // The same without trailing white space; "" when unreadable.
  std::string read_line(std::string_view path) const;
};

// A set of logical processors, ascending.
using CpuSet = std::vector<uint32_t>;

// Reads "0,3,5-6" as /sys writes it. Text that is empty (offline lists, containers) is the empty set; a malformed item is left out,
// and numbers end at the 8192 processors that Linux supports.
CpuSet parse_cpu_list(std::string_view text);

CpuSet intersect(const CpuSet& a, const CpuSet& b);

// The text split at any of `separators`, empty pieces left out.
std::vector<std::string_view> split(std::string_view text, std::string_view separators);
// A whole decimal number, nothing else.
std::optional<uint64_t> parse_number(std::string_view text);

}  // namespace okl
