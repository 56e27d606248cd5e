// SPDX-License-Identifier: Apache-2.0
#include "bench/suite.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <set>

#include "bench/arms/arms.h"
#include "bench/fake_arm.h"
#include "bench/ops/op.h"
#include "bench/report.h"
#include "bench/verdict.h"

namespace omnibench {
namespace {

using nlohmann::json;

TEST(Suite, RowsAreCasesThatExistAndDiffer) {
  std::set<std::string> names;
  std::set<std::string> ids;
  for (const SuiteRow& row : suite_rows()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    const Case c = case_of(row, 2);
    EXPECT_TRUE(ids.insert(c.id()).second) << c.id();
    const Op& op = op_of(c);
    EXPECT_LE(c.m, std::max<int64_t>(op.most_rows, 0)) << row.name;
    EXPECT_FALSE(row.figures.empty()) << row.name;
    if (row.threads > 0) {
      EXPECT_EQ(c.threads, row.threads) << row.name;
    }
    for (const Figure& figure : row.figures) {
      // Every arm that a figure needs is one that the case gets by itself.
      std::set<std::string> arms(op.peers.begin(), op.peers.end());
      arms.insert(op.limits.begin(), op.limits.end());
      for (const Peer& peer : op.workers) arms.insert(peer.name);
      if (figure.measure != Measure::kTime) {
        EXPECT_EQ(arms.count(figure.against), 1U) << row.name << ": " << figure.against;
      }
      if (figure.measure == Measure::kShareOfPeak) {
        EXPECT_GT(operations_of(c), 0) << row.name;
      }
    }
  }
}

/// A run of ours at `ours_ns` a call, a peer at 200 ns, a read arm at 90 ns for half the bytes, and a peak arm.
CaseRun fake_run(double ours_ns, double noise, int passes = 12) {
  FakeClock clock;
  auto random = std::make_shared<std::mt19937_64>(3);
  const auto cost = [=](double ns) { return [=] { return ns * std::exp(std::normal_distribution<double>(0, noise)(*random)); }; };
  std::vector<std::unique_ptr<Arm>> arms;
  arms.push_back(std::make_unique<FakeArm>("omni", clock, cost(ours_ns)));
  arms.push_back(std::make_unique<FakeArm>("peer", clock, cost(200)));
  arms.push_back(std::make_unique<FakeArm>("read", clock, cost(90), ArmRole::kRead));
  arms.push_back(std::make_unique<FakeArm>("peak-vnni", clock, cost(50), ArmRole::kPeak));
  HarnessOptions options;
  options.clock = &clock;
  options.passes = passes;
  options.min_sample_ns = 1000;
  options.fixed_calls = 200;
  return run_case("fake", arms, options);
}

json figure_of(const Figure& figure, const CaseRun& run) {
  const SuiteRow row{"row", "w4a16", "o", 1, "", "", 0, {figure}};
  return figures_json(row, case_of(row, 1), run)[0];
}

TEST(Suite, FiguresAreWhatTheySay) {
  const CaseRun run = fake_run(100, 0);
  json f = figure_of({Measure::kTimesFaster, "peer", 1.9}, run);
  EXPECT_NEAR(f["value"].get<double>(), 2, 1e-6);
  EXPECT_EQ(f["outcome"], "reached");
  f = figure_of({Measure::kTimesFaster, "peer", 2.1}, run);
  EXPECT_EQ(f["outcome"], "missed");
  f = figure_of({Measure::kShareOfRead, "read", 0.85}, run);
  EXPECT_NEAR(f["value"].get<double>(), 0.9, 1e-6);
  EXPECT_EQ(f["outcome"], "reached");
  f = figure_of({Measure::kShareOfPeak, "peak-vnni", 0}, run);
  EXPECT_NEAR(f["value"].get<double>(), 0.5, 1e-6);
  EXPECT_EQ(f["outcome"], "no target");
  EXPECT_TRUE(f["target"].is_null());
  f = figure_of({Measure::kTime, "", 99}, run);
  EXPECT_EQ(f["outcome"], "missed");
  EXPECT_EQ(figure_of({Measure::kTime, "", 101}, run)["outcome"], "reached");
}

TEST(Suite, ATargetInsideTheIntervalIsSaidToBe) {
  const CaseRun run = fake_run(100, 1.0);
  const json f = figure_of({Measure::kTimesFaster, "peer", 2}, run);
  EXPECT_LT(f["low"].get<double>(), 2);
  EXPECT_GT(f["high"].get<double>(), 2);
  EXPECT_NE(f["outcome"].get<std::string>().find("inside the noise"), std::string::npos) << f;
}

TEST(Suite, WhatWasNotMeasuredHasNoValue) {
  const CaseRun run = fake_run(100, 0);
  json f = figure_of({Measure::kTimesFaster, "vllm", 2}, run);
  EXPECT_TRUE(f["value"].is_null());
  EXPECT_EQ(f["outcome"], "not measured: vllm did not take part");
  f = figure_of({Measure::kTimesFaster, "peer", 2}, fake_run(100, 0, 4));
  EXPECT_EQ(f["outcome"], "not measured: too few passes");
  CaseRun broken = run;
  broken.arms[1].samples.clear();
  broken.arms[1].error = "no such operator";
  f = figure_of({Measure::kTimesFaster, "peer", 2}, broken);
  EXPECT_EQ(f["outcome"], "not measured: peer: no such operator");
  broken.arms[0].samples.clear();
  broken.arms[0].error = "wrong output";
  EXPECT_EQ(figure_of({Measure::kTime, "", 5}, broken)["outcome"], "not measured: wrong output");
}

TEST(Suite, TablesHoldEveryFigure) {
  const SuiteRow row{"row", "w4a16", "o", 1, "", "", 0, {{Measure::kTimesFaster, "peer", 1.9}, {Measure::kTime, "", 50}}};
  const Case c = case_of(row, 1);
  const CaseRun run = fake_run(100, 0);
  CaseSetting setting;
  setting.c = c;
  setting.pages = "4 KiB";
  json report = report_json({{"min_effect_percent", 8.0}}, {{"name", "fake <processor>"}},
                            json::array({result_json(setting, run, 0.08)}), {}, true);
  report["suite"] = {{"budget_minutes", 1},
                     {"figures", figures_json(row, c, run)},
                     {"not_timed", {"gemm_fast_bf16_tg4_16x64_amxbf16: not timed on hardware"}}};
  bool missing = false;
  for (const std::string& text : {suite_markdown(report), report_terminal(report), report_html(report, &missing)}) {
    EXPECT_NE(text.find("time of peer / ours"), std::string::npos) << text;
    EXPECT_NE(text.find("at least 1.90"), std::string::npos);
    EXPECT_NE(text.find("at most 50.0 ns"), std::string::npos);
    EXPECT_NE(text.find("reached"), std::string::npos);
    EXPECT_NE(text.find("missed"), std::string::npos);
    EXPECT_NE(text.find("not timed on hardware"), std::string::npos);
  }
}

// A deadline ends a case between two mirrored pairs, and never before a ranking is possible.
TEST(Suite, ADeadlineLeavesWholePairsAndEnoughOfThem) {
  for (const bool slow : {false, true}) {
    FakeClock clock;
    std::vector<std::unique_ptr<Arm>> arms;
    arms.push_back(std::make_unique<FakeArm>("omni", clock, [] { return 1000.0; }));
    arms.push_back(std::make_unique<FakeArm>("peer", clock, [=] { return slow ? 2e8 : 1500.0; }));
    HarnessOptions options;
    options.clock = &clock;
    options.passes = 31;
    options.min_sample_ns = 1e6;
    options.deadline_ns = 1;  // over before it began
    const CaseRun run = run_case("late", arms, options);
    EXPECT_EQ(run.order.size(), 12U);
    for (const ArmRun& arm : run.arms) EXPECT_EQ(arm.times().size(), 12U) << arm.info.name;
    EXPECT_EQ(judge(run, 0.08).fastest, 0);
    // Time for some passes more, then an end in the middle of a pair.
    FakeClock other;
    std::vector<std::unique_ptr<Arm>> same;
    same.push_back(std::make_unique<FakeArm>("omni", other, [] { return 1000.0; }));
    options.clock = &other;
    options.deadline_ns = static_cast<int64_t>(1e6 * 20);
    const size_t passes = run_case("middle", same, options).order.size();
    EXPECT_GT(passes, 12U);
    EXPECT_LT(passes, 31U);
    EXPECT_EQ(passes % 2, 0U);
  }
}

}  // namespace
}  // namespace omnibench
