// SPDX-License-Identifier: Apache-2.0
#include "bench/compare.h"

#include <fmt/format.h>

#include <fstream>
#include <set>
#include <stdexcept>

#include "bench/report.h"

namespace omnibench {
namespace {

using nlohmann::json;

std::vector<double> times_of(const json& arm) {
  std::vector<double> out;
  for (const json& sample : arm.at("samples")) {
    if (sample.at("ns").is_number() && sample["ns"].get<double>() > 0) out.push_back(sample["ns"]);
  }
  return out;
}

const json* find(const json& list, const char* outer, const char* key, const json& value) {
  for (const json& item : list) {
    if ((outer != nullptr ? item.at(outer).at(key) : item.at(key)) == value) return &item;
  }
  return nullptr;
}

std::string differences(const json& a, const json& b) {
  std::string out;
  const std::set<std::string> ignored = {"load_average_start", "load_average_end",     "memory_available",
                                         "steal_percent",      "anonymous_huge_pages", "kernel"};
  for (const auto& [key, value] : a.at("machine").items()) {
    if (ignored.count(key) != 0 || b.at("machine").value(key, json()) == value) continue;
    out += fmt::format("warning: machines differ in {}: {} and {}\n", key, value.dump(), b["machine"].value(key, json()).dump());
  }
  return out;
}

}  // namespace

json read_report(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw std::runtime_error(path + ": cannot be opened");
  json report = json::parse(file, nullptr, false);
  if (report.is_discarded() || !report.is_object() || report.value("schema", "") != "omni-bench") {
    throw std::runtime_error(path + ": is no report of omni-bench");
  }
  if (report.value("schema_version", 0) != kSchemaVersion) {
    throw std::runtime_error(
        fmt::format("{}: has schema version {}, this program reads {}", path, report.value("schema_version", 0), kSchemaVersion));
  }
  // "gemv" is what "w4a16" was called: reports of then match those of now.
  for (json& result : report["results"]) {
    if (!result.is_object() || !result.contains("case") || !result["case"].is_object()) continue;
    const std::string id = result["case"].value("id", "");
    if (id.starts_with("gemv/")) result["case"]["id"] = "w4a16" + id.substr(4);
  }
  return report;
}

ComparisonReport compare_reports(const json& a, const json& b, double min_effect) {
  ComparisonReport out;
  out.text = differences(a, b);
  for (const json& result : a.at("results")) {
    const json* other = find(b.at("results"), "case", "id", result.at("case").at("id"));
    const auto id = result["case"]["id"].get<std::string>();
    if (other == nullptr) {
      out.text += fmt::format("{}: only in the first report\n", id);
      continue;
    }
    out.text += id + "\n";
    for (const json& arm : result.at("arms")) {
      const auto name = arm.at("name").get<std::string>();
      const json* match = find(other->at("arms"), nullptr, "name", arm["name"]);
      if (match == nullptr) {
        out.text += fmt::format("  {:<28} only in the first report\n", name);
        continue;
      }
      const Paired p = unpaired_statistics(times_of(arm), times_of(*match));
      // From b's point of view: "slower" when b takes longer.
      Ranking ranking = rank(p, min_effect);
      const bool slower = ranking == Ranking::kFirstFaster;
      if (slower) {
        ranking = Ranking::kSecondFaster;
      } else if (ranking == Ranking::kSecondFaster) {
        ranking = Ranking::kFirstFaster;
      }
      out.slower = out.slower || (slower && arm["role"] == "contender");
      const bool any = p.blocks > 0;
      out.rows.push_back({{"case", id},
                          {"arm", name},
                          {"ratio", any ? number(p.ratio) : json(nullptr)},
                          {"low", any ? number(p.low) : json(nullptr)},
                          {"high", any ? number(p.high) : json(nullptr)},
                          {"spread", number(p.spread)},
                          {"ranking", to_text(ranking)}});
      out.text +=
          fmt::format("  {:<28} {:>10} -> {:>10}  x{} [{}, {}]  {}\n", name, format_time(arm.at("median_ns")),
                      format_time(match->at("median_ns")), format_number(out.rows.back()["ratio"], 3),
                      format_number(out.rows.back()["low"], 3), format_number(out.rows.back()["high"], 3), to_text(ranking));
    }
    for (const json& arm : other->at("arms")) {
      if (find(result["arms"], nullptr, "name", arm.at("name")) == nullptr) {
        out.text += fmt::format("  {:<28} only in the second report\n", arm["name"].get<std::string>());
      }
    }
  }
  for (const json& result : b.at("results")) {
    if (find(a["results"], "case", "id", result.at("case").at("id")) == nullptr) {
      out.text += fmt::format("{}: only in the second report\n", result["case"]["id"].get<std::string>());
    }
  }
  out.text +=
      fmt::format("ratios are time in the second report over time in the first; not ranked under {} % or inside the spread\n",
                  100 * min_effect);
  return out;
}

}  // namespace omnibench
