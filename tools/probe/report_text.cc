// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>

#include "tools/probe/report.h"

namespace probe {
namespace {

using Sink = std::back_insert_iterator<std::string>;

std::string bytes_text(uint64_t bytes) {
  if (bytes == 0) return "unknown";
  if (bytes < 1 << 20) return fmt::format("{} KiB", bytes >> 10);
  if (bytes < uint64_t{1} << 30) return fmt::format("{:.4g} MiB", static_cast<double>(bytes) / (1 << 20));
  return fmt::format("{:.4g} GiB", static_cast<double>(bytes) / (1 << 30));
}

std::string words_text(const Report& report, const char* key, const char* none) {
  const std::vector<std::string> words = profile_words(report.profile_json, key);
  return words.empty() ? none : fmt::format("{}", fmt::join(words, " "));
}

void machine_text(const Report& report, Sink out) {
  const omni_machine& m = report.machine;
  fmt::format_to(out, "omni-kernels {}\n\nMachine{}\n", omni_version(),
                 report.profile_file.empty() ? "" : fmt::format(" (profile {}; the hardware is not asked)", report.profile_file));
  const auto line = [&out](const char* name, const std::string& value) { fmt::format_to(out, "  {:<12} {}\n", name, value); };
  line("processor", m.name[0] == '\0' ? "unknown" : m.name);
  line("vendor", m.vendor[0] == '\0' ? "unknown" : m.vendor);
  line("cores", fmt::format("{} online, {} usable (affinity, control group, performance cores)", m.cores_online, m.cores_usable));
  line("threads", fmt::format("{}", report.num_threads));
  line("caches",
       fmt::format("L1D {}, L2 {}, last level {}", bytes_text(m.l1d_bytes), bytes_text(m.l2_bytes), bytes_text(m.l3_bytes)));
  line("ISA", words_text(report, "isa", "baseline only"));
  if (m.isa != m.isa_hardware) line("hardware", words_text(report, "isa_hardware", "baseline only"));
  line("traits", words_text(report, "traits", "none"));
  line("code", code_state(report));
  line("AMX", m.amx_reason[0] == '\0' ? "permission granted" : fmt::format("not usable: {}", m.amx_reason));
}

void system_text(const Report& report, Sink out) {
  const SystemState& s = report.system;
  const auto number = [](const std::optional<uint64_t>& n) { return n ? fmt::format("{}", *n) : std::string("unknown"); };
  fmt::format_to(out, "\nSystem\n  {:<12} {}\n  {:<12} {}\n", "kernel", s.kernel, "memory", bytes_text(s.memory_bytes));
  fmt::format_to(out, "  {:<12} transparent: {}; pool: {} pages of {}\n", "huge pages", s.transparent_huge_pages,
                 number(s.huge_page_pool), s.huge_page_bytes ? bytes_text(*s.huge_page_bytes) : "unknown size");
}

void bandwidth_text(const Report& report, Sink out) {
  if (!report.bandwidth_measured) return;
  fmt::format_to(out, "\nRead bandwidth (a plain load loop, best of five)\n");
  for (const Bandwidth& b : report.bandwidth) {
    fmt::format_to(out, "  {:>2} thread{} {:<23} {:>6.1f} GB/s\n", b.threads, b.threads == 1 ? ", " : "s,", b.pages + " pages",
                   b.gb_per_second);
  }
  if (!report.bandwidth_error.empty()) fmt::format_to(out, "  not measured: {}\n", report.bandwidth_error);
}

void kernels_text(const Report& report, Sink out) {
  fmt::format_to(out, "\nKernels ({}; + can run here)\n", report.kernels.size());
  size_t width = 0;
  for (const omni_kernel_info& k : report.kernels) width = std::max(width, std::string_view(k.name).size());
  for (const omni_kernel_info& k : report.kernels) {
    fmt::format_to(out, "  {} {:<{}}  {:<8}  {}\n", k.usable != 0 ? '+' : '-', k.name, width, k.code, k.summary);
  }
}

void choices_text(const Report& report, Sink out) {
  std::string_view shape;
  for (const Choice& c : report.choices) {
    if (c.shape.name != shape) {
      shape = c.shape.name;
      fmt::format_to(out, "\n{} (N = {}, K = {}, group {})\n", shape, c.shape.n, c.shape.k, c.group);
    }
    const std::string what = c.m == 0 ? c.op : fmt::format("{} {} m={}", c.numerics, c.x_type, c.m);
    fmt::format_to(out, "  {:<16} {} [{}]\n  {:<16}   {}\n", what, c.kernel.empty() ? "none" : c.kernel, c.code, "", c.reason);
  }
}

}  // namespace

std::string to_text(const Report& report) {
  std::string text;
  const Sink out(text);
  machine_text(report, out);
  system_text(report, out);
  bandwidth_text(report, out);
  kernels_text(report, out);
  choices_text(report, out);
  return text;
}

}  // namespace probe
