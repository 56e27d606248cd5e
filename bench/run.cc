// SPDX-License-Identifier: Apache-2.0
#include "bench/run.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <memory>
#include <optional>

#include "bench/arms/arms.h"
#include "bench/compare.h"
#include "bench/interrupt.h"
#include "bench/machine.h"
#include "bench/output_file.h"
#include "bench/parking.h"
#include "bench/report.h"

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

json run_one(const Case& c, const RunOptions& options, const Pool& pool, const HarnessOptions& harness, Outcome* outcome) {
  CaseSetting setting;
  setting.c = c;
  CaseRun run;
  try {
    harness.progress(c.id() + ": operands");
    Operands operands(c, pool);
    Reference reference(operands);
    setting.copies = static_cast<int64_t>(operands.copies());
    setting.rotation_bytes = static_cast<double>(operands.copies()) * rotated_bytes(c);
    setting.pages = operands.pages();
    if (!c.hot && setting.rotation_bytes < cold_rotation_bytes()) {
      setting.notes.push_back(fmt::format("memory allows a rotation of {:.0f} MB only; {:.0f} MB would leave the caches cold",
                                          setting.rotation_bytes / 1e6, cold_rotation_bytes() / 1e6));
    }
    run = run_case(c.id(), make_arms(options, reference, &setting.notes), harness);
  } catch (const UsageError&) {
    throw;
  } catch (const std::exception& error) {
    run = not_run(error.what());
    harness.progress("");
    fmt::print(stderr, "omni-bench: --shape {}: {}: not run: {}\n", c.shape.name, c.id(), error.what());
    ++(dynamic_cast<const DoesNotFit*>(&error) != nullptr ? outcome->do_not_fit : outcome->failed);
    return result_json(setting, run, options.min_effect_percent / 100);
  }
  if (!succeeded(run)) ++outcome->failed;
  return result_json(setting, run, options.min_effect_percent / 100);
}

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

std::optional<OutputFile> open_output(const std::string& flag, const std::string& path) {
  if (path.empty()) return std::nullopt;
  try {
    return OutputFile(path);
  } catch (const std::exception& error) {
    throw UsageError(flag + " " + error.what());
  }
}

}  // namespace

int run_command_line(const RunOptions& options) {
  check_arm_names(options);
  std::vector<std::string> warnings;
  const std::vector<Case> cases = cases_of(options, last_level_cache(), &warnings);
  const std::optional<OutputFile> json_file = open_output("--json", options.json_path);
  const std::optional<OutputFile> html_file = open_output("--html", options.html_path);

  clean_up_when_interrupted();
  const Progress progress;
  SteadyClock clock;
  HarnessOptions harness;
  harness.passes = options.passes;
  harness.clock = &clock;
  harness.park = [](const std::vector<pid_t>& others) { return wait_until_parked(others); };
  harness.progress = [&](const std::string& line) { progress.show(line); };

  benchmark::AddCustomContext("threads", std::to_string(options.threads));
  benchmark::AddCustomContext("clock_tick_ns", std::to_string(clock.tick_ns()));
  const json machine = machine_json();
  const ProcessorTime before = processor_time();
  const Pool pool(options.threads);
  json results = json::array();
  Outcome outcome;
  for (const Case& c : cases) results.push_back(run_one(c, options, pool, harness, &outcome));
  const bool success = outcome.failed + outcome.do_not_fit == 0;
  for (std::string& warning : interference(before, processor_time())) warnings.push_back(std::move(warning));

  const json report = report_json(settings_json(options), machine, std::move(results), warnings, success);
  progress.show("");
  fmt::print("{}", report_terminal(report));
  if (json_file) json_file->commit(report.dump(1) + "\n");
  if (html_file) {
    bool plots_missing = false;
    html_file->commit(report_html(report, &plots_missing));
    if (plots_missing) fmt::print(stderr, "omni-bench: gnuplot was not found: the page has no plots\n");
  }
  if (outcome.do_not_fit == cases.size()) return 2;  // nothing of what was asked for is possible here
  return success ? 0 : 1;
}

int list_everything() {
  fmt::print("shapes (N x K)\n");
  for (const Shape& s : known_shapes()) fmt::print("  {:<10} {} x {}\n", s.name, s.n, s.k);
  fmt::print(
      "operations\n  gemv       y = x * W^T for M = 1..16\n  pack       codes (a byte each) -> tg4\n  dequant    tg4 -> bf16 "
      "rows\n");
  fmt::print("arms\n");
  for (const ArmName& arm : arm_names()) fmt::print("  {:<18} {}\n", arm.name, arm.what);
  fmt::print("kernels (also arms)\n");
  for (size_t i = 0; i < omni_kernel_count(); ++i) {
    omni_kernel_info info{};
    info.size = sizeof info;
    if (omni_kernel_get(i, &info) != OMNI_OK) continue;
    fmt::print("  {:<44} {}{}\n", info.name, info.summary, info.usable != 0 ? "" : " (not on this machine)");
  }
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
    fmt::print("{}", result.text);
    return options.fail_on_slower && result.slower ? 1 : 0;
  } catch (const std::exception& error) {
    throw UsageError(fmt::format("compare: {}", error.what()));
  }
}

}  // namespace omnibench
