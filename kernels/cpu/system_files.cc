// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/system_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <iterator>

namespace okl {
namespace {

constexpr size_t kMostBytes = static_cast<size_t>(4) << 20;
constexpr uint64_t kMostCpus = 8192;
constexpr std::string_view kSpace = " \t\r\n";

}  // namespace

std::optional<std::string> SystemFiles::read(std::string_view path) const {
  const std::string full = root + std::string(path);
  const int file = ::open(full.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  std::string text;
  char buffer[4096];
  ssize_t count = 0;
  while (text.size() < kMostBytes) {
    count = ::read(file, buffer, sizeof buffer);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) break;
    text.append(buffer, static_cast<size_t>(count));
  }
  ::close(file);
  if (count < 0) return std::nullopt;
  return text;
}

std::string SystemFiles::read_line(std::string_view path) const {
  std::string text = read(path).value_or("");
  text.erase(text.find_last_not_of(kSpace) + 1);
  return text;
}

std::vector<std::string_view> split(std::string_view text, std::string_view separators) {
  std::vector<std::string_view> pieces;
  size_t begin = 0;
  while ((begin = text.find_first_not_of(separators, begin)) != std::string_view::npos) {
    const size_t end = std::min(text.find_first_of(separators, begin), text.size());
    pieces.push_back(text.substr(begin, end - begin));
    begin = end;
  }
  return pieces;
}

std::optional<uint64_t> parse_number(std::string_view text) {
  uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

CpuSet parse_cpu_list(std::string_view text) {
  CpuSet cpus;
  for (const std::string_view item : split(text, ", \t\r\n")) {
    const size_t dash = item.find('-');
    const std::optional<uint64_t> first = parse_number(item.substr(0, dash));
    const std::optional<uint64_t> last = dash == std::string_view::npos ? first : parse_number(item.substr(dash + 1));
    if (!first || !last) continue;
    for (uint64_t cpu = *first; cpu <= *last && cpu < kMostCpus; ++cpu) cpus.push_back(static_cast<uint32_t>(cpu));
  }
  std::sort(cpus.begin(), cpus.end());
  cpus.erase(std::unique(cpus.begin(), cpus.end()), cpus.end());
  return cpus;
}

CpuSet intersect(const CpuSet& a, const CpuSet& b) {
  CpuSet both;
  std::set_intersection(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

}  // namespace okl
