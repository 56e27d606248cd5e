// SPDX-License-Identifier: Apache-2.0
#include "bench/suite.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "bench/ops/op.h"
#include "bench/report.h"
#include "bench/verdict.h"

namespace omnibench {
namespace {

using nlohmann::json;

struct Value {
  bool known = false;
  double value = 0, low = 0, high = 0;
  std::string why;  ///< there is none
};

const ArmRun* arm_named(const CaseRun& run, const std::string& name) {
  for (const ArmRun& arm : run.arms) {
    if (arm.info.name == name) return &arm;
  }
  return nullptr;
}

/// How much faster ours was than `other`, times `factor`.
Value paired_value(const CaseRun& run, const ArmRun& ours, const ArmRun& other, double factor) {
  const Paired p = paired_statistics(log_ratios(ours, other, static_cast<int>(run.order.size())));
  if (p.blocks < kMinBlocks) return {false, 0, 0, 0, "too few passes"};
  return {true, factor * p.ratio, factor * p.low, factor * p.high, ""};
}

Value measure(const Figure& figure, const CaseRun& run) {
  const ArmRun* ours = arm_named(run, "omni");
  if (ours == nullptr) return {false, 0, 0, 0, run.arms.empty() ? "no arm" : run.arms[0].error};
  if (ours->times().empty()) return {false, 0, 0, 0, ours->error.empty() ? "no times" : ours->error};
  if (figure.measure == Measure::kTime) {
    const Summary s = summarize(ours->times(), 0);
    return {true, s.median, s.q25, s.q75, ""};
  }
  const ArmRun* other = arm_named(run, figure.against);
  if (other == nullptr) return {false, 0, 0, 0, fmt::format("{} did not take part", figure.against)};
  if (other->times().empty()) return {false, 0, 0, 0, fmt::format("{}: {}", figure.against, other->error)};
  double factor = 1;
  if (figure.measure == Measure::kShareOfRead) factor = ours->info.bytes / other->info.bytes;
  if (figure.measure == Measure::kShareOfPeak) factor = ours->info.flops / other->info.flops;
  return paired_value(run, *ours, *other, factor);
}

std::string outcome(const Figure& figure, const Value& v) {
  if (!v.known) return "not measured: " + v.why;
  if (figure.target <= 0) return "no target";
  const bool time = figure.measure == Measure::kTime;
  const bool reached = time ? v.value <= figure.target : v.value >= figure.target;
  const bool clear = v.low > figure.target || v.high < figure.target;
  return fmt::format("{}{}", reached ? "reached" : "missed", clear ? "" : ", inside the noise");
}

const char* word(Measure measure) {
  switch (measure) {
    case Measure::kShareOfRead:
      return "share of the read arm";
    case Measure::kShareOfPeak:
      return "share of the peak";
    case Measure::kTimesFaster:
      return "times faster";
    case Measure::kTime:
      return "time";
  }
  return "?";
}

std::string figure_words(const Figure& figure) {
  if (figure.measure == Measure::kShareOfPeak) return fmt::format("share of {}", figure.against);
  if (figure.measure == Measure::kTimesFaster) return fmt::format("time of {} / ours", figure.against);
  return word(figure.measure);
}

std::string interval(const json& figure) {
  if (!figure["value"].is_number()) return "";
  if (figure["unit"] == "ns") return fmt::format("{} – {}", format_time(figure["low"]), format_time(figure["high"]));
  return fmt::format("{} – {}", format_number(figure["low"], 2), format_number(figure["high"], 2));
}

using Line = std::vector<std::string>;

std::vector<Line> lines_of(const json& report) {
  std::vector<Line> lines;
  for (const json& f : report["suite"]["figures"]) {
    lines.push_back(
        {f["row"], f["figure"], format_figure(f), interval(f), format_target(f), format_time(f["median_ns"]), f["outcome"]});
  }
  return lines;
}

const Line& heads() {
  static const Line line = {"row", "figure", "value", "interval", "target", "omni, median", "outcome"};
  return line;
}

}  // namespace

Case case_of(const SuiteRow& row, uint32_t threads) {
  const Op* op = find_op(row.op);
  if (op == nullptr) throw std::runtime_error("suite: unknown operation " + row.op);
  const std::optional<Shape> shape = parse_shape(*op, row.shape);
  if (!shape) throw std::runtime_error("suite: unknown shape " + row.shape);
  Case c;
  c.op = op->name;
  c.shape = *shape;
  c.m = op->most_rows > 0 ? row.m : 0;
  const std::string group = row.group.empty() ? op->group : row.group;
  if (!op->group.empty()) c.group = static_cast<uint32_t>(group == "K" ? c.k() : std::stol(group));
  if (!op->variants.empty()) c.variant = row.variant.empty() ? op->variants.front() : row.variant;
  c.hot = !op->cold;
  c.threads = row.threads > 0 ? row.threads : threads;
  return c;
}

std::string to_text(const Figure& figure) {
  std::string out = figure_words(figure);
  if (figure.target <= 0) return out;
  if (figure.measure == Measure::kTime) return out + fmt::format(", at most {}", format_time(json(figure.target)));
  return out + fmt::format(", at least {:.2f}", figure.target);
}

json figures_json(const SuiteRow& row, const Case& c, const CaseRun& run) {
  json out = json::array();
  const ArmRun* ours = arm_named(run, "omni");
  const bool timed = ours != nullptr && !ours->times().empty();
  for (const Figure& figure : row.figures) {
    const Value v = measure(figure, run);
    out.push_back({{"row", row.name},
                   {"case", c.id()},
                   {"figure", figure_words(figure)},
                   {"unit", figure.measure == Measure::kTime ? "ns" : "ratio"},
                   {"value", v.known ? number(v.value) : json(nullptr)},
                   {"low", v.known ? number(v.low) : json(nullptr)},
                   {"high", v.known ? number(v.high) : json(nullptr)},
                   {"target", figure.target > 0 ? json(figure.target) : json(nullptr)},
                   {"median_ns", timed ? number(median(ours->times())) : json(nullptr)},
                   {"kernel", ours != nullptr ? json(ours->info.detail) : json(nullptr)},
                   {"outcome", outcome(figure, v)}});
  }
  return out;
}

std::string format_figure(const json& figure) {
  return figure["unit"] == "ns" ? format_time(figure["value"]) : format_number(figure["value"], 2);
}

std::string format_target(const json& figure) {
  if (!figure["target"].is_number()) return "";
  return figure["unit"] == "ns" ? "at most " + format_time(figure["target"]) : "at least " + format_number(figure["target"], 2);
}

std::string suite_markdown(const json& report) {
  std::string out = fmt::format("omni-kernels {} ({}), {}, {}.\n\n", report["omni_version"].get<std::string>(),
                                report["git_revision"].get<std::string>(), report["date"].get<std::string>(),
                                report["machine"].value("name", "unknown processor"));
  out += fmt::format("| {} |\n|{}\n", fmt::join(heads(), " | "), [] {
    std::string dashes;
    for (size_t i = 0; i < heads().size(); ++i) dashes += "---|";
    return dashes;
  }());
  for (const Line& line : lines_of(report)) {
    std::string text = fmt::format("{}", fmt::join(line, " | "));
    std::replace(text.begin(), text.end(), '\n', ' ');
    out += fmt::format("| {} |\n", text);
  }
  for (const json& warning : report["warnings"]) out += fmt::format("\nWarning: {}\n", warning.get<std::string>());
  if (!report["suite"]["not_timed"].empty()) out += "\nKernels that were not timed:\n\n";
  for (const json& kernel : report["suite"]["not_timed"]) out += fmt::format("- {}\n", kernel.get<std::string>());
  return out;
}

std::string suite_terminal(const json& report) {
  std::vector<Line> lines = lines_of(report);
  lines.insert(lines.begin(), heads());
  std::string out = "suite\n" + text_table(lines);
  for (const json& kernel : report["suite"]["not_timed"]) out += "  " + kernel.get<std::string>() + "\n";
  return out + "\n";
}

}  // namespace omnibench
