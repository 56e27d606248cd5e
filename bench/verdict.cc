// SPDX-License-Identifier: Apache-2.0
#include "bench/verdict.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include <fmt/format.h>

namespace omnibench {
namespace {

constexpr double kDriftChange = 0.05;
constexpr double kDriftScore = 2.58;

std::vector<std::optional<double>> times_by_pass(const ArmRun& run, int passes) {
  std::vector<std::optional<double>> out(passes);
  for (const Sample& s : run.samples) {
    if (s.error.empty() && s.ns > 0 && s.pass < passes) out[s.pass] = s.ns;
  }
  return out;
}

/// The ranking seen from `arm`, whichever side it stands on.
Ranking seen_from(const Comparison& c, int arm) {
  if (c.first == arm) return c.ranking;
  if (c.ranking == Ranking::kFirstFaster) return Ranking::kSecondFaster;
  if (c.ranking == Ranking::kSecondFaster) return Ranking::kFirstFaster;
  return c.ranking;
}

std::string describe(const CaseRun& run, const Comparison& c, int winner) {
  const bool first = c.first == winner;
  const double ratio = first ? c.paired.ratio : 1 / c.paired.ratio;
  const double low = first ? c.paired.low : 1 / c.paired.high;
  const double high = first ? c.paired.high : 1 / c.paired.low;
  return fmt::format("{:.2f}x faster than {} [{:.2f}, {:.2f}]", ratio, run.arms[first ? c.second : c.first].info.name, low, high);
}

std::string verdict_text(const CaseRun& run, Verdict& verdict, const std::vector<int>& measured) {
  if (measured.empty()) return "nothing was measured";
  const int best = *std::min_element(measured.begin(), measured.end(),
                                     [&](int a, int b) { return median(run.arms[a].times()) < median(run.arms[b].times()); });
  const std::string& name = run.arms[best].info.name;
  if (measured.size() == 1) return fmt::format("{} is the only arm that was measured: nothing to rank", name);
  std::string tied;
  const Comparison* next = nullptr;
  for (const Comparison& c : verdict.comparisons) {
    if (c.first != best && c.second != best) continue;
    if (c.ranking == Ranking::kNotMeasured) continue;
    const int other = c.first == best ? c.second : c.first;
    if (seen_from(c, best) != Ranking::kFirstFaster) {
      tied += fmt::format(
          "{}{} ({})", tied.empty() ? "" : ", ", run.arms[other].info.name,
          seen_from(c, best) == Ranking::kSecondFaster ? "paired statistics disagree with the medians" : to_text(c.ranking));
      continue;
    }
    const auto ratio = [&](const Comparison& x) { return x.first == best ? x.paired.ratio : 1 / x.paired.ratio; };
    if (next == nullptr || ratio(c) < ratio(*next)) next = &c;
  }
  if (!tied.empty()) return fmt::format("no arm is ranked first: {} has the lowest median, against {}", name, tied);
  verdict.fastest = best;
  return next != nullptr ? fmt::format("{} is the fastest: {}", name, describe(run, *next, best)) : name;
}

}  // namespace

Ranking rank(const Paired& paired, double min_effect) {
  if (paired.blocks == 0) return Ranking::kNotMeasured;
  if (paired.blocks < kMinBlocks) return Ranking::kTooFewPasses;
  const double size = std::fabs(std::log(paired.ratio));
  if ((paired.low <= 1 && paired.high >= 1) || size <= paired.spread) return Ranking::kInsideSpread;
  if (std::expm1(size) < min_effect) return Ranking::kUnderMinEffect;
  return paired.ratio > 1 ? Ranking::kFirstFaster : Ranking::kSecondFaster;
}

const char* to_text(Ranking ranking) {
  switch (ranking) {
    case Ranking::kFirstFaster:
      return "faster";
    case Ranking::kSecondFaster:
      return "slower";
    case Ranking::kInsideSpread:
      return "not ranked: inside the spread";
    case Ranking::kUnderMinEffect:
      return "not ranked: under the minimum effect";
    case Ranking::kTooFewPasses:
      return "not ranked: too few passes";
    case Ranking::kNotMeasured:
      return "not ranked: not measured";
  }
  return "?";
}

std::vector<double> log_ratios(const ArmRun& first, const ArmRun& second, int passes) {
  const auto a = times_by_pass(first, passes);
  const auto b = times_by_pass(second, passes);
  std::vector<double> out;
  for (const int p : mirrored_pairs(passes)) {
    if (a[p] && a[p + 1] && b[p] && b[p + 1]) out.push_back(0.5 * (std::log(*b[p] / *a[p]) + std::log(*b[p + 1] / *a[p + 1])));
  }
  return out;
}

Verdict judge(const CaseRun& run, double min_effect) {
  Verdict verdict;
  const int passes = static_cast<int>(run.order.size());
  std::vector<int> measured;
  for (int i = 0; i < static_cast<int>(run.arms.size()); ++i) {
    if (run.arms[i].info.role != ArmRole::kContender) continue;
    if (!run.arms[i].times().empty()) measured.push_back(i);
    for (int j = i + 1; j < static_cast<int>(run.arms.size()); ++j) {
      if (run.arms[j].info.role != ArmRole::kContender) continue;
      Comparison c;
      c.first = i;
      c.second = j;
      c.paired = paired_statistics(log_ratios(run.arms[i], run.arms[j], passes));
      c.ranking = rank(c.paired, min_effect);
      const bool both = !run.arms[i].times().empty() && !run.arms[j].times().empty();
      if (c.ranking == Ranking::kNotMeasured && both) c.ranking = Ranking::kTooFewPasses;
      verdict.comparisons.push_back(c);
    }
  }
  verdict.text = verdict_text(run, verdict, measured);
  return verdict;
}

Drift drift_test(const CaseRun& run) {
  std::vector<std::vector<double>> relative(run.order.size());
  for (const ArmRun& arm : run.arms) {
    const std::vector<double> times = arm.times();
    if (times.empty()) continue;
    const double middle = median(times);
    for (const Sample& s : arm.samples) {
      if (s.error.empty() && middle > 0) relative[s.pass].push_back(s.ns / middle);
    }
  }
  std::vector<double> series;
  for (std::vector<double>& pass : relative) {
    if (!pass.empty()) series.push_back(median(pass));
  }
  Drift drift;
  drift.trend = trend(series);
  drift.warned = std::fabs(drift.trend.change) > kDriftChange && std::fabs(drift.trend.score) > kDriftScore;
  return drift;
}

}  // namespace omnibench
