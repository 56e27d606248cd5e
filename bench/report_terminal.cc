// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "bench/ops/op.h"
#include "bench/report.h"
#include "bench/suite.h"

namespace omnibench {
namespace {

using nlohmann::json;
using Row = std::vector<std::string>;

std::string checked(const json& arm) {
  if (arm["verified"].is_null()) return "-";
  return arm["verified"].get<bool>() ? "yes" : "NO";
}

Row arm_row(const json& arm) {
  return {arm["name"],
          format_time(arm["median_ns"]),
          format_time(arm["best_ns"]),
          format_percent(arm["spread"]),
          format_number(arm["gbps"], 1),
          format_percent(arm["share_of_read"]),
          format_number(arm["gflops"], 1),
          format_percent(arm["share_of_peak"]),
          checked(arm),
          std::to_string(arm["n"].get<int>()),
          arm["status"] == "ok" ? arm["detail"].get<std::string>() : arm["status"].get<std::string>()};
}

}  // namespace

std::string text_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<size_t> width(rows[0].size(), 0);
  for (const Row& row : rows) {
    for (size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], row[i].size());
  }
  std::string out;
  for (const Row& row : rows) {
    std::string line = "  ";
    for (size_t i = 0; i < row.size(); ++i) {
      const bool left = i == 0 || i + 1 == row.size();
      line += left ? fmt::format("{:<{}}  ", row[i], width[i]) : fmt::format("{:>{}}  ", row[i], width[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += line + "\n";
  }
  return out;
}

std::string format_time(const json& ns) {
  if (!ns.is_number()) return "-";
  const double t = ns;
  if (t < 1e3) return fmt::format("{:.1f} ns", t);
  if (t < 1e6) return fmt::format("{:.1f} us", t / 1e3);
  if (t < 1e9) return fmt::format("{:.2f} ms", t / 1e6);
  return fmt::format("{:.2f} s", t / 1e9);
}

std::string format_number(const json& value, int digits) {
  return value.is_number() ? fmt::format("{:.{}f}", value.get<double>(), digits) : "-";
}

std::string format_percent(const json& fraction) {
  return fraction.is_number() ? fmt::format("{:.1f} %", 100 * fraction.get<double>()) : "-";
}

std::string case_line(const json& result) {
  const json& c = result["case"];
  std::string line = fmt::format("{} {}", c["op"].get<std::string>(), c["shape"].get<std::string>());
  const Op* op = find_op(c["op"]);
  for (const std::string& name : op != nullptr ? op->sizes : std::vector<std::string>{}) {
    std::string upper = name;
    std::transform(upper.begin(), upper.end(), upper.begin(), [](unsigned char letter) { return std::toupper(letter); });
    line += fmt::format(" {}={}", upper, c["sizes"][name].get<int64_t>());
  }
  if (c["m"].get<int64_t>() > 0) line += fmt::format(" M={}", c["m"].get<int64_t>());
  if (c["class"].is_string()) line += fmt::format(", {}", c["class"].get<std::string>());
  if (c["group"].is_number()) line += fmt::format(", group {}", c["group"].get<uint32_t>());
  line += fmt::format(", {} thread{}, {}", c["threads"].get<uint32_t>(), c["threads"].get<uint32_t>() == 1 ? "" : "s",
                      c["cache"].get<std::string>());
  if (c["cache"] == "cold") {
    line += fmt::format(" ({} copies, {:.0f} MB)", c["copies"].get<int64_t>(), c["rotation_bytes"].get<double>() / 1e6);
  }
  return line + ", " + c["pages"].get<std::string>() + " pages";
}

std::string bytes_line(const json& result) {
  const json& c = result["case"];
  std::string parts;
  for (const auto& [part, bytes] : c["bytes"].items()) {
    if (part == "total" || bytes.get<double>() <= 0) continue;
    parts += fmt::format("{}{} {:.0f}", parts.empty() ? "" : " + ", part, bytes.get<double>());
  }
  std::string line = fmt::format("bytes of one call: {} = {:.0f}", parts, c["bytes"]["total"].get<double>());
  if (c["flops"].get<double>() > 0) line += fmt::format("; operations = {:.0f}", c["flops"].get<double>());
  return line;
}

std::string report_terminal(const json& report) {
  std::string out;
  for (const json& result : report["results"]) {
    out += case_line(result) + "\n  " + bytes_line(result) + "\n";
    std::vector<Row> rows = {{"arm", "median", "best", "spread", "GB/s", "of read", "GFLOP/s", "of peak", "checked", "n", "what"}};
    for (const json& arm : result["arms"]) rows.push_back(arm_row(arm));
    out += text_table(rows);
    out += "  => " + result["verdict"].get<std::string>() + "\n";
    for (const json& arm : result["arms"]) {
      if (arm["error"].is_string()) {
        out += fmt::format("  {}: {}: {}\n", arm["name"].get<std::string>(), arm["status"].get<std::string>(),
                           arm["error"].get<std::string>());
      }
    }
    for (const json& note : result["case"]["notes"]) out += "  note: " + note.get<std::string>() + "\n";
    for (const json& warning : result["warnings"]) out += "  warning: " + warning.get<std::string>() + "\n";
    out += "\n";
  }
  if (report.contains("suite")) out += suite_terminal(report);
  for (const json& warning : report["warnings"]) out += "warning: " + warning.get<std::string>() + "\n";
  out += fmt::format("omni-kernels {} ({}), {}; not ranked under {} % or inside the spread\n",
                     report["omni_version"].get<std::string>(), report["git_revision"].get<std::string>(),
                     report["machine"].value("name", "unknown processor"), report["settings"].value("min_effect_percent", 0.0));
  return out;
}

}  // namespace omnibench
