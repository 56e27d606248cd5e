// SPDX-License-Identifier: Apache-2.0
#include "bench/run.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <map>
#include <memory>
#include <optional>

#include "bench/arms/arms.h"
#include "bench/compare.h"
#include "bench/interrupt.h"
#include "bench/machine.h"
#include "bench/ops/op.h"
#include "bench/output_file.h"
#include "bench/parking.h"
#include "bench/report.h"
#include "bench/suite.h"

namespace omnibench {
namespace {

using nlohmann::json;

/// One line on standard error, rewritten in place; nothing when that is no terminal.
class Progress {
 public:
  Progress() : terminal_(isatty(STDERR_FILENO) == 1) {}
  ~Progress() { show(""); }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  void show(const std::string& line) const {
    if (terminal_) fmt::print(stderr, "\r\033[K{}", line.substr(0, 110));
    std::fflush(stderr);
  }

 private:
  bool terminal_;
};

json settings_json(const RunOptions& options) {
  json arms = json::array();
  for (const ArmRequest& arm : options.arms) arms.push_back(arm.name);
  return {{"command_line", options.command_line},
          {"passes", options.passes},
          {"min_effect_percent", options.min_effect_percent},
          {"threads", options.threads},
          {"isa_cap", options.isa.empty() ? json(nullptr) : json(options.isa)},
          {"arms_asked_for", std::move(arms)},
          {"peers", options.peers.empty() ? json(nullptr) : json(options.peers)},
          {"cold_rotation_bytes", cold_rotation_bytes()}};
}

CaseRun not_run(const std::string& reason) {
  CaseRun run;
  ArmRun arm;
  arm.info.name = "(case)";
  arm.status = ArmStatus::kFailed;
  arm.error = "not run: " + reason;
  run.arms.push_back(std::move(arm));
  return run;
}

/// Counts of cases.
struct Outcome {
  size_t failed = 0, do_not_fit = 0;
};

/// To standard output; that it could be written is checked once, at the end of main().
void print(const std::string& text) { std::fwrite(text.data(), 1, text.size(), stdout); }

/// What other processes and the hypervisor took while we measured.
std::vector<std::string> interference(const ProcessorTime& from, const ProcessorTime& to) {
  std::vector<std::string> warnings;
  const double total = to.total - from.total;
  if (total <= 0) return warnings;
  const double others = (to.busy - from.busy - (to.own - from.own)) / total;
  const double stolen = (to.stolen - from.stolen) / total;
  if (others > 0.05)
    warnings.push_back(fmt::format("other processes used {:.0f} % of the processors during the run", 100 * others));
  if (stolen > 0.01) warnings.push_back(fmt::format("the hypervisor withheld {:.1f} % of the processor time", 100 * stolen));
  return warnings;
}

/// One run of cases into one report.
class Session {
 public:
  explicit Session(const RunOptions& options) : options_(options), machine_(machine_json()), before_(processor_time()) {
    harness_.passes = options.passes;
    harness_.clock = &clock_;
    harness_.park = [](const std::vector<pid_t>& others) { return wait_until_parked(others); };
    harness_.progress = [this](const std::string& line) { progress_.show(line); };
    benchmark::AddCustomContext("threads", std::to_string(options.threads));
    benchmark::AddCustomContext("clock_tick_ns", std::to_string(clock_.tick_ns()));
  }

  [[nodiscard]] int64_t now_ns() { return clock_.now_ns(); }

  /// Measures a case; `deadline_ns` as in HarnessOptions. The result goes into the report.
  CaseRun run(const Case& c, int64_t deadline_ns) {
    CaseSetting setting;
    setting.c = c;
    HarnessOptions harness = harness_;
    harness.deadline_ns = deadline_ns;
    CaseRun run;
    try {
      harness.progress(c.id() + ": operands");
      const std::unique_ptr<Workload> workload = op_of(c).make(c, pool_of(c.threads));
      setting.copies = static_cast<int64_t>(workload->copies());
      setting.rotation_bytes = static_cast<double>(workload->copies()) * rotated_bytes(c);
      setting.pages = workload->pages();
      if (!c.hot && setting.rotation_bytes < cold_rotation_bytes()) {
        setting.notes.push_back(fmt::format("memory allows a rotation of {:.0f} MB only; {:.0f} MB would leave the caches cold",
                                            setting.rotation_bytes / 1e6, cold_rotation_bytes() / 1e6));
      }
      run = run_case(c.id(), make_arms(options_, *workload, &setting.notes), harness);
      if (!succeeded(run)) ++outcome_.failed;
    } catch (const UsageError&) {
      throw;
    } catch (const std::exception& error) {
      run = not_run(error.what());
      harness.progress("");
      fmt::print(stderr, "omni-bench: --shape {}: {}: not run: {}\n", c.shape.name, c.id(), error.what());
      ++(dynamic_cast<const DoesNotFit*>(&error) != nullptr ? outcome_.do_not_fit : outcome_.failed);
    }
    results_.push_back(result_json(setting, run, options_.min_effect_percent / 100));
    return run;
  }

  json report(std::vector<std::string> warnings) {
    for (std::string& warning : interference(before_, processor_time())) warnings.push_back(std::move(warning));
    progress_.show("");
    return report_json(settings_json(options_), machine_, std::move(results_), warnings, success());
  }

  [[nodiscard]] bool success() const { return outcome_.failed + outcome_.do_not_fit == 0; }
  [[nodiscard]] size_t do_not_fit() const { return outcome_.do_not_fit; }

 private:
  const Pool& pool_of(uint32_t threads) {
    std::unique_ptr<Pool>& pool = pools_[threads];
    if (pool == nullptr) pool = std::make_unique<Pool>(threads);
    return *pool;
  }

  const RunOptions& options_;
  const Progress progress_;
  SteadyClock clock_;
  HarnessOptions harness_;
  const json machine_;
  const ProcessorTime before_;
  std::map<uint32_t, std::unique_ptr<Pool>> pools_;
  Outcome outcome_;
  json results_ = json::array();
};

std::optional<OutputFile> open_output(const std::string& flag, const std::string& path) {
  if (path.empty()) return std::nullopt;
  try {
    return OutputFile(path);
  } catch (const std::exception& error) {
    throw UsageError(flag + " " + error.what());
  }
}

void write_page(const std::optional<OutputFile>& file, const json& report) {
  if (!file) return;
  bool plots_missing = false;
  file->commit(report_html(report, &plots_missing));
  if (plots_missing) fmt::print(stderr, "omni-bench: gnuplot was not found: the page has no plots\n");
}

}  // namespace

int run_command_line(const RunOptions& options) {
  check_arm_names(options);
  std::vector<std::string> warnings;
  const std::vector<Case> cases = cases_of(options, last_level_cache(), &warnings);
  const std::optional<OutputFile> json_file = open_output("--json", options.json_path);
  const std::optional<OutputFile> html_file = open_output("--html", options.html_path);

  clean_up_when_interrupted();
  Session session(options);
  for (const Case& c : cases) session.run(c, 0);
  const json report = session.report(std::move(warnings));
  print(report_terminal(report));
  if (json_file) json_file->commit(report.dump(1) + "\n");
  write_page(html_file, report);
  if (session.do_not_fit() == cases.size()) return 2;  // nothing of what was asked for is possible here
  return session.success() ? 0 : 1;
}

int run_suite(const Options& options) {
  RunOptions run = options.run;
  run.only_chosen = true;
  std::vector<SuiteRow> rows;
  for (const SuiteRow& row : suite_rows()) {
    if (row.name.find(options.suite.only) != std::string::npos) rows.push_back(row);
  }
  if (rows.empty()) throw UsageError(fmt::format("--only {}: no row of the suite has that in its name", options.suite.only));
  const std::optional<OutputFile> json_file = open_output("--json", run.json_path);
  const std::optional<OutputFile> html_file = open_output("--html", run.html_path);
  const std::optional<OutputFile> summary_file = open_output("--summary", options.suite.summary_path);

  clean_up_when_interrupted();
  Session session(run);
  const int64_t end = session.now_ns() + static_cast<int64_t>(options.suite.minutes * 60e9);
  json figures = json::array();
  for (size_t i = 0; i < rows.size(); ++i) {
    // What is left, in equal parts: a row that needed less leaves more to the others. Never 0, which would mean no deadline.
    const int64_t now = session.now_ns();
    const int64_t share = std::max<int64_t>(end - now, 0) / static_cast<int64_t>(rows.size() - i);
    const Case c = case_of(rows[i], run.threads);
    run.wanted.clear();  // the session looks at `run`
    for (const Figure& figure : rows[i].figures) run.wanted.push_back(figure.against);
    const CaseRun result = session.run(c, now + std::max<int64_t>(share, 1));
    for (json& figure : figures_json(rows[i], c, result)) figures.push_back(std::move(figure));
  }
  json report = session.report({});
  report["suite"] = {
      {"budget_minutes", options.suite.minutes}, {"figures", std::move(figures)}, {"not_timed", kernels_not_timed()}};
  print(report_terminal(report));
  if (json_file) json_file->commit(report.dump(1) + "\n");
  write_page(html_file, report);
  if (summary_file) summary_file->commit(suite_markdown(report));
  return session.success() ? 0 : 1;
}

int list_everything() {
  std::string out;
  out += fmt::format("operations (--op), their shapes and classes\n");
  for (const Op& op : all_ops()) {
    out += fmt::format("  {:<10} {}\n  {:<10} --shape {}", op.name, op.what, "", shapes_text(op));
    if (op.most_rows > 0) out += fmt::format("; --m 1..{}", op.most_rows);
    if (!op.variants.empty()) out += fmt::format("; --class {}", fmt::join(op.variants, ", "));
    if (!op.group.empty()) out += fmt::format("; --group {} when left out", op.group);
    out += fmt::format("; {}\n", op.cold ? "cold" : "hot");
    std::string arms;
    for (const std::string& peer : op.peers) arms += peer + ", ";
    for (const Peer& worker : op.workers) arms += worker.name + " (--peers), ";
    for (const std::string& limit : op.limits) arms += limit + ", ";
    if (!arms.empty()) out += fmt::format("  {:<10} beside ours: {}\n", "", arms.substr(0, arms.size() - 2));
    for (const Shape& s : op.shapes) {
      const std::string rows = s.m > 0 ? fmt::format(", M = {}", s.m) : "";
      out += fmt::format("  {:<10}   {:<10} {}{}\n", "", s.name, fmt::join(s.sizes, " x "), rows);
    }
  }
  out += fmt::format("arms\n");
  for (const ArmName& arm : arm_names()) out += fmt::format("  {:<18} {}\n", arm.name, arm.what);
  out += fmt::format("kernels (also arms)\n");
  for (size_t i = 0; i < omni_kernel_count(); ++i) {
    omni_kernel_info info{};
    info.size = sizeof info;
    if (omni_kernel_get(i, &info) != OMNI_OK) continue;
    const bool amx = std::string(info.isa).starts_with("amx");
    out += fmt::format("  {:<44} {}{}\n", info.name, info.summary,
                       info.usable != 0 ? "" : (amx ? " (not timed on hardware)" : " (not on this machine)"));
  }
  out += fmt::format("suite (--suite)\n");
  for (const SuiteRow& row : suite_rows()) {
    std::string figures;
    for (const Figure& figure : row.figures) figures += (figures.empty() ? "" : "; ") + to_text(figure);
    out += fmt::format("  {:<26} {}: {}\n", row.name, case_of(row, omni_num_threads()).id(), figures);
  }
  print(out);
  return 0;
}

int compare_files(const Options& options) {
  const double min_effect = options.compare_min_effect_percent / 100;
  try {
    std::vector<json> reports;
    for (const std::string& file : options.files) {
      reports.push_back(read_report(file));
      try {
        compare_reports(reports.back(), reports.back(), min_effect);  // an error below could not say which file lacks a key
      } catch (const json::exception& error) {
        throw std::runtime_error(fmt::format("{}: is no whole report of omni-bench: {}", file, error.what()));
      }
    }
    const ComparisonReport result = compare_reports(reports[0], reports[1], min_effect);
    print(result.text);
    return options.fail_on_slower && result.slower ? 1 : 0;
  } catch (const std::exception& error) {
    throw UsageError(fmt::format("compare: {}", error.what()));
  }
}

}  // namespace omnibench
