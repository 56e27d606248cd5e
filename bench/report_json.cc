// SPDX-License-Identifier: Apache-2.0
#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <cmath>
#include <ctime>

#include "bench/git_revision.h"
#include "bench/google_timer.h"
#include "bench/ops/op.h"
#include "bench/report.h"

namespace omnibench {
namespace {

using nlohmann::json;

struct Limits {
  double read_gbps = 0, peak_gflops = 0;
};

double per_second(double amount, const std::vector<double>& times) { return times.empty() ? 0 : amount / median(times); }

Limits limits_of(const CaseRun& run) {
  Limits limits;
  for (const ArmRun& arm : run.arms) {
    const std::vector<double> times = arm.times();
    if (arm.info.role == ArmRole::kRead) limits.read_gbps = std::max(limits.read_gbps, per_second(arm.info.bytes, times));
    if (arm.info.role == ArmRole::kPeak) limits.peak_gflops = std::max(limits.peak_gflops, per_second(arm.info.flops, times));
  }
  return limits;
}

json passes_of(const ArmRun& arm, const std::vector<size_t>& positions) {
  std::vector<int> good;
  for (const Sample& s : arm.samples) {
    if (s.error.empty()) good.push_back(s.pass);
  }
  json out = json::array();
  for (const size_t i : positions) out.push_back(good[i]);
  return out;
}

json samples_json(const ArmRun& arm) {
  json out = json::array();
  for (const Sample& s : arm.samples) {
    json sample = {{"pass", s.pass}, {"position", s.position}, {"calls", s.calls}, {"ns", nullptr}};
    if (s.error.empty()) {
      sample["ns"] = number(s.ns);
    } else {
      sample["error"] = s.error;
    }
    if (!s.parked) sample["parked"] = false;
    out.push_back(std::move(sample));
  }
  return out;
}

json arm_json(const ArmRun& arm, const Limits& limits, double tick_ns) {
  const std::vector<double> times = arm.times();
  const Summary s = summarize(times, tick_ns / static_cast<double>(std::max<int64_t>(arm.calls, 1)));
  const bool any = !times.empty();
  const double gbps = any ? per_second(arm.info.bytes, times) : 0;
  const double gflops = any ? per_second(arm.info.flops, times) : 0;
  const auto when = [](bool condition, double value) { return condition ? number(value) : json(nullptr); };
  size_t unparked = 0;
  for (const Sample& sample : arm.samples) unparked += sample.parked ? 0 : 1;
  return {
      {"name", arm.info.name},
      {"role", to_text(arm.info.role)},
      {"detail", arm.info.detail},
      {"status", to_text(arm.status)},
      {"error", arm.error.empty() ? json(nullptr) : json(arm.error)},
      {"verified", arm.verification.checked ? json(arm.verified) : json(nullptr)},
      {"verification", arm.verification.text},
      {"n", times.size()},
      {"failed_passes", arm.samples.size() - times.size()},
      {"calls_per_sample", arm.calls},
      {"median_ns", when(any, s.median)},
      {"best_ns", when(any, s.best)},
      {"spread", when(any, s.spread)},
      {"q25_ns", when(any, s.q25)},
      {"q75_ns", when(any, s.q75)},
      {"bytes", when(arm.info.bytes > 0, arm.info.bytes)},
      {"flops", when(arm.info.flops > 0, arm.info.flops)},
      {"gbps", when(gbps > 0, gbps)},
      {"gflops", when(gflops > 0, gflops)},
      {"share_of_read", when(gbps > 0 && limits.read_gbps > 0, gbps / limits.read_gbps)},
      {"share_of_peak", when(gflops > 0 && limits.peak_gflops > 0, gflops / limits.peak_gflops)},
      {"fast_outlier_passes", passes_of(arm, s.fast_outliers)},
      {"slow_outlier_passes", passes_of(arm, s.slow_outliers)},
      {"unparked_samples", unparked},
      {"samples", samples_json(arm)},
  };
}

json case_json(const CaseSetting& setting) {
  const Case& c = setting.c;
  const Op& op = op_of(c);
  json bytes = json::object();
  for (const Part& part : parts_of(c)) bytes[part.name] = part.moved_bytes();
  bytes["total"] = moved_bytes(c);
  json out = {{"id", c.id()},
              {"op", c.op},
              {"shape", c.shape.name},
              {"m", c.m},
              {"sizes", json::object()},
              {"group", c.group > 0 ? json(c.group) : json(nullptr)},
              {"class", c.variant.empty() ? json(nullptr) : json(c.variant)},
              {"cache", c.hot ? "hot" : "cold"},
              {"threads", c.threads},
              {"seed", c.shape.seed},
              {"copies", setting.copies},
              {"rotation_bytes", setting.rotation_bytes},
              {"pages", setting.pages},
              {"bytes_model", op.bytes_model},
              {"bytes", std::move(bytes)},
              {"flops", operations_of(c)},
              {"notes", setting.notes}};
  for (size_t i = 0; i < op.sizes.size(); ++i) out["sizes"][op.sizes[i]] = c.size(i);
  for (const char* key : {"n", "k"}) {  // where matrices are meant, as ever
    if (out["sizes"].contains(key)) out[key] = out["sizes"][key];
  }
  return out;
}

std::string utc_now() {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace

json number(double value) { return std::isfinite(value) ? json(value) : json(nullptr); }

json result_json(const CaseSetting& setting, const CaseRun& run, double min_effect) {
  const Limits limits = limits_of(run);
  const Verdict verdict = judge(run, min_effect);
  const Drift drift = drift_test(run);

  json arms = json::array();
  for (const ArmRun& arm : run.arms) arms.push_back(arm_json(arm, limits, static_cast<double>(run.tick_ns)));
  json comparisons = json::array();
  for (const Comparison& c : verdict.comparisons) {
    comparisons.push_back({{"first", run.arms[c.first].info.name},
                           {"second", run.arms[c.second].info.name},
                           {"ratio", c.paired.blocks > 0 ? number(c.paired.ratio) : json(nullptr)},
                           {"low", c.paired.blocks > 0 ? number(c.paired.low) : json(nullptr)},
                           {"high", c.paired.blocks > 0 ? number(c.paired.high) : json(nullptr)},
                           {"spread", number(c.paired.spread)},
                           {"pairs", c.paired.blocks},
                           {"ranking", to_text(c.ranking)}});
  }
  json order = json::array();
  for (const std::vector<int>& pass : run.order) {
    json names = json::array();
    for (const int i : pass) names.push_back(run.arms[i].info.name);
    order.push_back(std::move(names));
  }
  json warnings = json::array();
  if (drift.warned) {
    warnings.push_back(fmt::format("the machine changed during the run: times of all arms moved by {:+.1f} % (Mann-Kendall {:.1f})",
                                   100 * drift.trend.change, drift.trend.score));
  }
  for (const ArmRun& arm : run.arms) {
    size_t unparked = 0;
    for (const Sample& s : arm.samples) unparked += s.parked ? 0 : 1;
    if (unparked > 0) {
      warnings.push_back(fmt::format("{}: {} of {} samples began while threads of the arm before still ran", arm.info.name,
                                     unparked, arm.samples.size()));
    }
  }
  return {{"case", case_json(setting)},
          {"verdict", verdict.text},
          {"fastest", verdict.fastest >= 0 ? json(run.arms[verdict.fastest].info.name) : json(nullptr)},
          {"status", succeeded(run) ? "ok" : "failed"},
          {"arms", std::move(arms)},
          {"comparisons", std::move(comparisons)},
          {"order", std::move(order)},
          {"clock_tick_ns", run.tick_ns},
          {"min_sample_ns", number(run.min_sample_ns)},
          {"drift", {{"change", number(drift.trend.change)}, {"score", number(drift.trend.score)}, {"warned", drift.warned}}},
          {"warnings", std::move(warnings)}};
}

json report_json(json settings, json machine, json results, const std::vector<std::string>& warnings, bool success) {
  json context = json::parse(GoogleTimer::context_json(), nullptr, false);
  context = context.is_object() ? context["context"] : json::object();
  // Where the program lies and what the host is called say nothing about the times, and reports get published.
  context.erase("executable");
  context.erase("host_name");
  return {{"schema", "omni-bench"},
          {"schema_version", kSchemaVersion},
          {"date", utc_now()},
          {"omni_version", omni_version()},
          {"git_revision", kGitRevision},
          {"status", success ? "ok" : "failed"},
          {"units",
           "ns; GB/s = 1e9 bytes a second; GFLOP/s = 1e9 operations a second (integer ones where operands are integers), a "
           "multiply-add is two"},
          {"settings", std::move(settings)},
          {"machine", std::move(machine)},
          {"google_benchmark_context", std::move(context)},
          {"warnings", warnings},
          {"results", std::move(results)}};
}

}  // namespace omnibench
