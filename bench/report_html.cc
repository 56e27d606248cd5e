// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "bench/plot.h"
#include "bench/report.h"
#include "bench/suite.h"

namespace omnibench {
namespace {

using nlohmann::json;

constexpr const char* kStyle =
    "body{font:15px/1.45 system-ui,sans-serif;margin:2em auto;max-width:1100px;padding:0 1em;color:#1b2a33;background:#fff}"
    "h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2.2em;border-top:1px solid #ccd;padding-top:.8em}"
    "table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}"
    "th,td{padding:.25em .6em;text-align:right;border-bottom:1px solid #e4e8ea}"
    "th:first-child,td:first-child,td:last-child,th:last-child{text-align:left}"
    "tr.limit td{color:#667;font-style:italic}.verdict{font-weight:600}.bad{color:#a32020}.warn{color:#8a5a00}"
    "details{margin:.6em 0}.small{font-size:.85em;color:#556}svg{max-width:100%;height:auto}";

std::string escape(const std::string& text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string text_of(const json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::string arm_row(const json& arm) {
  const bool limit = arm["role"] != "contender";
  const bool ok = arm["status"] == "ok";
  const std::string what =
      ok ? escape(arm["detail"])
         : fmt::format("<span class=\"bad\">{}: {}</span>", escape(arm["status"]), escape(text_of(arm["error"])));
  const std::string verified = arm["verified"].is_null() ? "–" : (arm["verified"].get<bool>() ? "yes" : "<b class=\"bad\">no</b>");
  return fmt::format(
      "<tr{}><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
      "<td title=\"{}\">{}</td><td>{}</td><td>{}</td></tr>\n",
      limit ? " class=\"limit\"" : "", escape(arm["name"]), format_time(arm["median_ns"]), format_time(arm["best_ns"]),
      format_percent(arm["spread"]), format_number(arm["gbps"], 1), format_percent(arm["share_of_read"]),
      format_number(arm["gflops"], 1), format_percent(arm["share_of_peak"]), escape(arm["verification"]), verified,
      arm["n"].get<int>(), what);
}

std::string comparison_table(const json& result) {
  std::string out =
      "<details><summary>Paired comparisons</summary><table><tr><th>first</th><th>second</th><th>time of second / first</th>"
      "<th>95 % interval</th><th>spread</th><th>pairs</th><th>the first is</th></tr>\n";
  for (const json& c : result["comparisons"]) {
    out += fmt::format("<tr><td>{}</td><td>{}</td><td>{}</td><td>{} – {}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
                       escape(c["first"]), escape(c["second"]), format_number(c["ratio"], 3), format_number(c["low"], 3),
                       format_number(c["high"], 3), format_percent(c["spread"]), c["pairs"].get<int>(), escape(c["ranking"]));
  }
  return out + "</table></details>\n";
}

std::string result_section(const json& result, const std::string& svg) {
  std::string out = fmt::format("<h2 id=\"{}\">{}</h2>\n<p class=\"verdict\">{}</p>\n", escape(result["case"]["id"]),
                                escape(case_line(result)), escape(result["verdict"]));
  out += svg.empty() ? "" : "<figure>" + svg + "</figure>\n";
  out +=
      "<table><tr><th>arm</th><th>median</th><th>best</th><th>spread</th><th>GB/s</th><th>of read</th><th>GFLOP/s</th>"
      "<th>of peak</th><th>verified</th><th>n</th><th>what</th></tr>\n";
  for (const json& arm : result["arms"]) out += arm_row(arm);
  out += fmt::format("</table>\n<p class=\"small\">{}</p>\n", escape(bytes_line(result)));
  for (const json& note : result["case"]["notes"]) out += fmt::format("<p class=\"small\">{}</p>\n", escape(note));
  for (const json& warning : result["warnings"]) out += fmt::format("<p class=\"warn\">{}</p>\n", escape(warning));
  return out + comparison_table(result);
}

/// The figures of a run of the suite, each linked to its case.
std::string suite_section(const json& suite) {
  std::string out =
      "<h2>Suite</h2>\n<table><tr><th>row</th><th>figure</th><th>value</th><th>interval</th><th>target</th><th>omni, median</th>"
      "<th>outcome</th></tr>\n";
  for (const json& f : suite["figures"]) {
    const bool missed = f["outcome"].get<std::string>().starts_with("missed");
    const bool any = f["value"].is_number();
    const auto bound = [&](const char* key) { return f["unit"] == "ns" ? format_time(f[key]) : format_number(f[key], 2); };
    out += fmt::format(
        "<tr><td><a href=\"#{}\">{}</a></td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td{}>{}</td></tr>\n",
        escape(f["case"]), escape(f["row"]), escape(f["figure"]), format_figure(f), any ? bound("low") + " – " + bound("high") : "",
        format_target(f), format_time(f["median_ns"]), missed ? " class=\"bad\"" : "", escape(f["outcome"]));
  }
  out += "</table>\n";
  if (!suite["not_timed"].empty()) out += "<details><summary>Kernels that were not timed</summary><ul>\n";
  for (const json& kernel : suite["not_timed"]) out += fmt::format("<li>{}</li>\n", escape(kernel));
  return out + (suite["not_timed"].empty() ? "" : "</ul></details>\n");
}

std::string key_values(const json& object) {
  std::string out = "<table>";
  for (const auto& [key, value] : object.items()) {
    out += fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", escape(key), escape(text_of(value)));
  }
  return out + "</table>\n";
}

}  // namespace

std::string report_html(const json& report, bool* plots_missing) {
  std::string body;
  *plots_missing = false;
  int index = 0;
  for (const json& result : report["results"]) {
    std::string svg;
    bool any = false;
    for (const json& arm : result["arms"]) any = any || arm["median_ns"].is_number();
    if (any && !*plots_missing) {
      svg = plot_svg(result, fmt::format("r{}", index));
      *plots_missing = svg.empty();
    }
    ++index;
    body += result_section(result, svg);
  }
  std::string head = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\">"
      "<meta name=\"viewport\" "
      "content=\"width=device-width,initial-scale=1\"><title>omni-bench</title><style>{}</style></head><body>\n"
      "<h1>omni-bench</h1>\n<p>omni-kernels {} ({}), {}, {}. Arms ran interleaved in balanced order; two arms are not ranked when "
      "their difference is inside the spread or under {} %.</p>\n",
      kStyle, escape(report["omni_version"]), escape(report["git_revision"]), escape(report["date"]),
      escape(report["machine"].value("name", "unknown processor")), report["settings"].value("min_effect_percent", 0.0));
  if (report["status"] != "ok") head += "<p class=\"bad\">Some arms failed: see below.</p>\n";
  for (const json& warning : report["warnings"]) head += fmt::format("<p class=\"warn\">{}</p>\n", escape(warning));
  if (*plots_missing) head += "<p class=\"small\">gnuplot was not found when this page was written: no plots.</p>\n";
  if (report.contains("suite")) head += suite_section(report["suite"]);
  return head + body + "<h2>Machine</h2>\n" + key_values(report["machine"]) + "<h2>Settings</h2>\n" +
         key_values(report["settings"]) + "</body></html>\n";
}

}  // namespace omnibench
