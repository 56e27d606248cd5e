// SPDX-License-Identifier: Apache-2.0
#include "bench/harness.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <random>
#include <set>

#include "bench/fake_arm.h"
#include "bench/verdict.h"

namespace omnibench {
namespace {

HarnessOptions options_for(FakeClock& clock, int passes) {
  HarnessOptions options;
  options.clock = &clock;
  options.passes = passes;
  options.min_sample_ns = 1000;
  return options;
}

std::vector<std::unique_ptr<Arm>> arms_of(FakeClock& clock, const std::map<std::string, FakeArm::Cost>& costs) {
  std::vector<std::unique_ptr<Arm>> arms;
  for (const auto& [name, cost] : costs) arms.push_back(std::make_unique<FakeArm>(name, clock, cost));
  return arms;
}

TEST(Order, EveryArmOncePerPassAndMirrored) {
  for (int arms = 1; arms <= 9; ++arms) {
    for (const int passes : {1, 2, 7, 12, 30}) {
      const auto order = balanced_order(arms, passes);
      ASSERT_EQ(order.size(), static_cast<size_t>(passes));
      for (const auto& pass : order) EXPECT_EQ(std::set<int>(pass.begin(), pass.end()).size(), static_cast<size_t>(arms));
      for (const int p : mirrored_pairs(passes)) {
        EXPECT_EQ(order[p], std::vector<int>(order[p + 1].rbegin(), order[p + 1].rend())) << arms << " arms, pass " << p;
      }
    }
  }
}

TEST(Order, PlacesAreBalanced) {
  const int arms = 5;
  const auto order = balanced_order(arms, 2 * arms);
  std::map<std::pair<int, int>, int> seen;
  for (const auto& pass : order) {
    for (int place = 0; place < arms; ++place) ++seen[{pass[place], place}];
  }
  for (const auto& [where, count] : seen) EXPECT_EQ(count, 2);
}

// A clock that slows down by 1 % of the start with every sample must not make one of two equal arms faster.
TEST(Harness, DriftCancels) {
  for (const int passes : {7, 12, 30, 31}) {
    FakeClock clock;
    const auto cost = [&] { return 1000.0 * (1 + 0.01 * static_cast<double>(clock.samples)); };
    const CaseRun run = run_case("drift", arms_of(clock, {{"a", cost}, {"b", cost}, {"c", cost}}), options_for(clock, passes));
    ASSERT_TRUE(succeeded(run));
    for (size_t i = 0; i < 3; ++i) {
      for (size_t j = i + 1; j < 3; ++j) {
        const Paired p = paired_statistics(log_ratios(run.arms[i], run.arms[j], passes));
        EXPECT_NEAR(p.ratio, 1, 0.005) << passes << " passes, arms " << i << " and " << j;
      }
    }
    EXPECT_EQ(judge(run, 0.08).fastest, -1);
    if (passes >= 12) {
      EXPECT_TRUE(drift_test(run).warned);
    }
  }
}

// The same arm twice under noise of 10 % and slow bursts: not ranked in at least 19 of 20 runs.
TEST(Harness, EqualArmsAreNotRanked) {
  int ranked = 0;
  for (int seed = 0; seed < 20; ++seed) {
    FakeClock clock;
    std::mt19937_64 random(seed);
    std::normal_distribution<double> noise(0, 0.1);
    const auto cost = [&] { return 1000.0 * std::exp(noise(random)) * (random() % 10 == 0 ? 1.5 : 1.0); };
    const CaseRun run = run_case("equal", arms_of(clock, {{"a", cost}, {"b", cost}}), options_for(clock, 30));
    ranked += judge(run, 0.0).fastest >= 0 ? 1 : 0;  // even with no minimum effect
  }
  EXPECT_LE(ranked, 1);
}

TEST(Harness, ARealDifferenceIsRanked) {
  FakeClock clock;
  std::mt19937_64 random(1);
  std::normal_distribution<double> noise(0, 0.03);
  const CaseRun run = run_case("real",
                               arms_of(clock, {{"fast", [&] { return 1000.0 * std::exp(noise(random)); }},
                                               {"slow", [&] { return 1300.0 * std::exp(noise(random)); }}}),
                               options_for(clock, 20));
  const Verdict verdict = judge(run, 0.08);
  ASSERT_EQ(verdict.fastest, 0);
  EXPECT_EQ(verdict.comparisons[0].ranking, Ranking::kFirstFaster);
  EXPECT_NEAR(verdict.comparisons[0].paired.ratio, 1.3, 0.06);
  EXPECT_EQ(judge(run, 0.5).fastest, -1);
  EXPECT_EQ(judge(run, 0.5).comparisons[0].ranking, Ranking::kUnderMinEffect);
}

// Seven passes of 1000 calls: seven observations, per-call times.
TEST(Harness, CountsPassesNotCalls) {
  FakeClock clock;
  HarnessOptions options = options_for(clock, 7);
  options.fixed_calls = 1000;
  auto arms = arms_of(clock, {{"a", [] { return 5.0; }}, {"b", [] { return 7.0; }}});
  const CaseRun run = run_case("count", arms, options);
  for (const ArmRun& arm : run.arms) {
    EXPECT_EQ(arm.times().size(), 7U);
    EXPECT_EQ(summarize(arm.times(), 0).n, 7U);
    for (const Sample& s : arm.samples) EXPECT_EQ(s.calls, 1000);
  }
  EXPECT_NEAR(median(run.arms[0].times()), 5.0, 1e-6);
  EXPECT_NEAR(median(run.arms[1].times()), 7.0, 1e-6);
  EXPECT_EQ(run.order.size(), 7U);
}

TEST(Harness, InnerLoopGrowsToAHundredTicks) {
  FakeClock clock;
  clock.tick = 1000;
  auto arms = arms_of(clock, {{"a", [] { return 3.0; }}});
  const CaseRun run = run_case("grow", arms, options_for(clock, 6));
  ASSERT_TRUE(succeeded(run));
  EXPECT_GE(static_cast<double>(run.arms[0].calls) * 3.0, 100.0 * 1000);
  EXPECT_NEAR(median(run.arms[0].times()), 3.0, 0.1);
}

TEST(Harness, AClockThatStandsStillIsTooFast) {
  FakeClock clock;
  HarnessOptions options = options_for(clock, 6);
  options.max_calls = 4096;
  const CaseRun run = run_case("zero", arms_of(clock, {{"a", [] { return 0.0; }}, {"b", [] { return 100.0; }}}), options);
  EXPECT_EQ(run.arms[0].status, ArmStatus::kTooFast);
  EXPECT_TRUE(run.arms[0].times().empty());
  EXPECT_EQ(run.arms[0].calls, 4096);
  EXPECT_EQ(run.arms[1].status, ArmStatus::kOk);
  EXPECT_TRUE(succeeded(run));  // marked, not failed
}

TEST(Harness, FailuresAreRecordedWhereverTheyHappen) {
  for (const std::set<int>& bad : {std::set<int>{0}, std::set<int>{5}, std::set<int>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11}}) {
    FakeClock clock;
    HarnessOptions options = options_for(clock, 12);
    options.inject = [&](const std::string& arm, int pass) { return arm == "a" && bad.count(pass) != 0 ? "injected" : ""; };
    const CaseRun run = run_case("fail", arms_of(clock, {{"a", [] { return 100.0; }}, {"b", [] { return 100.0; }}}), options);
    EXPECT_FALSE(succeeded(run));
    EXPECT_EQ(run.arms[0].samples.size(), 12U);
    EXPECT_EQ(run.arms[0].times().size(), 12 - bad.size());
    EXPECT_EQ(run.arms[0].status, bad.size() == 12 ? ArmStatus::kFailed : ArmStatus::kPartial);
    EXPECT_NE(run.arms[0].error.find("injected"), std::string::npos);
    EXPECT_EQ(run.arms[1].status, ArmStatus::kOk);
    EXPECT_EQ(run.arms[1].times().size(), 12U);
    EXPECT_NO_THROW(judge(run, 0.08));
  }
}

TEST(Harness, AnArmThatThrowsInItsCallIsAFailedPass) {
  FakeClock clock;
  int calls = 0;
  const auto cost = [&]() -> double {
    if (clock.samples > 8 && ++calls == 1) throw std::runtime_error("device on fire");
    return 2000.0;
  };
  const CaseRun run = run_case("throw", arms_of(clock, {{"a", cost}, {"b", [] { return 2000.0; }}}), options_for(clock, 12));
  EXPECT_EQ(run.arms[0].status, ArmStatus::kPartial);
  EXPECT_NE(run.arms[0].error.find("device on fire"), std::string::npos);
  EXPECT_EQ(run.arms[0].times().size(), 11U);
}

TEST(Harness, AnArmWhoseOutputIsWrongIsNotTimed) {
  FakeClock clock;
  auto arms = arms_of(clock, {{"a", [] { return 100.0; }}, {"b", [] { return 100.0; }}});
  auto* wrong = static_cast<FakeArm*>(arms[0].get());
  wrong->verify_error = "y[0][3]: 0x3f80, expected 0x3f81";
  const CaseRun run = run_case("wrong", arms, options_for(clock, 12));
  EXPECT_EQ(run.arms[0].status, ArmStatus::kFailed);
  EXPECT_FALSE(run.arms[0].verified);
  EXPECT_EQ(wrong->total_calls, 0);
  EXPECT_TRUE(run.arms[1].verified);
  EXPECT_FALSE(succeeded(run));
}

TEST(Harness, WaitsAfterEveryArm) {
  FakeClock clock;
  HarnessOptions options = options_for(clock, 4);
  int waits = 0;
  options.park = [&](const std::vector<pid_t>&) { return ++waits < 100000; };
  const CaseRun run = run_case("park", arms_of(clock, {{"a", [] { return 100.0; }}, {"b", [] { return 100.0; }}}), options);
  EXPECT_GE(waits, 8);
  options.park = [](const std::vector<pid_t>&) { return false; };
  const CaseRun busy = run_case("park", arms_of(clock, {{"a", [] { return 100.0; }}, {"b", [] { return 100.0; }}}), options);
  EXPECT_TRUE(busy.arms[0].samples[0].parked);  // nothing ran before the first sample of the run
  EXPECT_FALSE(busy.arms[1].samples[0].parked);
  EXPECT_TRUE(run.arms[1].samples[0].parked);
}

TEST(Harness, SlowArmsTakePartInFewerPasses) {
  FakeClock clock;
  HarnessOptions options = options_for(clock, 30);
  const CaseRun run = run_case("slow", arms_of(clock, {{"a", [] { return 5e8; }}, {"b", [] { return 1e4; }}}), options);
  EXPECT_EQ(run.arms[0].times().size(), 12U);
  EXPECT_EQ(run.arms[1].times().size(), 30U);
  EXPECT_EQ(judge(run, 0.08).fastest, 1);  // six mirrored pairs are left: enough
}

// Three shapes in three orders, with cases that leave the machine as they found it: the medians agree.
TEST(Harness, ResultsDoNotDependOnTheOrderOfCases) {
  const std::map<std::string, double> cost = {{"q_k_v", 300}, {"gate_up", 1400}, {"down", 700}};
  std::map<std::string, std::vector<double>> medians;
  for (const std::vector<std::string>& order :
       {std::vector<std::string>{"q_k_v", "gate_up", "down"}, {"down", "q_k_v", "gate_up"}, {"gate_up", "down", "q_k_v"}}) {
    FakeClock clock;
    std::mt19937_64 random(7);
    for (const std::string& shape : order) {
      const auto work = [&] { return cost.at(shape) * (1 + 0.02 * static_cast<double>(random() % 100) / 100); };
      const CaseRun run = run_case(shape, arms_of(clock, {{"a", work}, {"b", work}}), options_for(clock, 20));
      medians[shape].push_back(median(run.arms[0].times()));
    }
  }
  for (const auto& [shape, values] : medians) {
    EXPECT_NEAR(values[1], values[0], 0.02 * values[0]) << shape;
    EXPECT_NEAR(values[2], values[0], 0.02 * values[0]) << shape;
  }
}

TEST(Verdict, TooFewPassesAreSaid) {
  FakeClock clock;
  const CaseRun run =
      run_case("few", arms_of(clock, {{"a", [] { return 100.0; }}, {"b", [] { return 300.0; }}}), options_for(clock, 4));
  const Verdict verdict = judge(run, 0.08);
  EXPECT_EQ(verdict.fastest, -1);
  EXPECT_EQ(verdict.comparisons[0].ranking, Ranking::kTooFewPasses);
}

TEST(Verdict, LimitsAreNeverRanked) {
  FakeClock clock;
  std::vector<std::unique_ptr<Arm>> arms;
  arms.push_back(std::make_unique<FakeArm>("a", clock, [] { return 100.0; }));
  arms.push_back(std::make_unique<FakeArm>(
      "read", clock, [] { return 50.0; }, ArmRole::kRead));
  const CaseRun run = run_case("limits", arms, options_for(clock, 12));
  EXPECT_TRUE(judge(run, 0.08).comparisons.empty());
}

TEST(Verdict, RulesInOrder) {
  Paired p;
  EXPECT_EQ(rank(p, 0.08), Ranking::kNotMeasured);
  p.blocks = kMinBlocks - 1;
  p.ratio = p.low = p.high = 2;
  EXPECT_EQ(rank(p, 0.08), Ranking::kTooFewPasses);
  p.blocks = kMinBlocks;
  EXPECT_EQ(rank(p, 0.08), Ranking::kFirstFaster);
  p.ratio = p.low = p.high = 0.5;
  EXPECT_EQ(rank(p, 0.08), Ranking::kSecondFaster);
  p.spread = 0.8;  // log 2 = 0.69
  EXPECT_EQ(rank(p, 0.08), Ranking::kInsideSpread);
  p.spread = 0;
  p.high = 1.01;  // the interval holds 1
  EXPECT_EQ(rank(p, 0.08), Ranking::kInsideSpread);
  p.ratio = p.low = p.high = 1.0799;
  EXPECT_EQ(rank(p, 0.08), Ranking::kUnderMinEffect);
  p.ratio = p.low = p.high = 1.0801;
  EXPECT_EQ(rank(p, 0.08), Ranking::kFirstFaster);
}

}  // namespace
}  // namespace omnibench
