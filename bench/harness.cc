// SPDX-License-Identifier: Apache-2.0
#include "bench/harness.h"

#include <algorithm>
#include <cmath>
#include <exception>

#include <fmt/format.h>

#include "bench/google_timer.h"

namespace omnibench {
namespace {

constexpr double kTicksPerSample = 100;

struct Runner {
  ArmRun* run;
  Arm* arm;
  GoogleTimer timer;
  std::vector<char> takes_part;  // [pass]
};

void fail(ArmRun& run, const std::string& error) {
  run.status = ArmStatus::kFailed;
  run.error = error;
}

/// Enlarges the inner loop until a sample lasts long enough (or `max_calls` is reached).
void calibrate(Runner& runner, const HarnessOptions& options, double target, double shortest) {
  ArmRun& run = *runner.run;
  int64_t calls = std::max<int64_t>(options.fixed_calls, 1);
  for (;;) {
    const GoogleTimer::Outcome outcome = runner.timer.run(calls);
    if (!outcome.error.empty()) return fail(run, "calibration: " + outcome.error);
    const double elapsed = outcome.total_ns;
    run.calls = calls;
    const bool last = options.fixed_calls > 0 || !runner.arm->repeats() || calls >= options.max_calls;
    if (elapsed >= target || last) {
      if (elapsed < shortest) {
        run.status = ArmStatus::kTooFast;
        run.error = fmt::format("too fast: {} calls take {} ns, less than {} ticks of the clock", calls, elapsed, kTicksPerSample);
      }
      return;
    }
    const double wanted = elapsed > 0 ? 1.2 * target / elapsed * static_cast<double>(calls) : 1e18;
    const double grown = std::min(wanted, 16.0 * static_cast<double>(calls));
    calls = std::clamp<int64_t>(std::llround(std::ceil(grown)), calls + 1, options.max_calls);
  }
}

void choose_passes(Runner& runner, const HarnessOptions& options, double call_ns) {
  runner.takes_part.assign(options.passes, 1);
  if (call_ns <= options.slow_call_ns || options.passes <= options.slow_passes) return;
  std::fill(runner.takes_part.begin(), runner.takes_part.end(), 0);
  const std::vector<int> pairs = mirrored_pairs(options.passes);
  const int wanted = options.slow_passes / 2;
  const bool all_will_run = options.deadline_ns == 0;  // else only the first passes are certain
  for (int i = 0; i < wanted; ++i) {
    const int first = all_will_run ? pairs[i * static_cast<int>(pairs.size()) / wanted] : pairs[i];
    runner.takes_part[first] = runner.takes_part[first + 1] = 1;
  }
}

void take_sample(Runner& runner, const HarnessOptions& options, int pass, int position, bool parked, double shortest) {
  ArmRun& run = *runner.run;
  Sample sample;
  sample.pass = pass;
  sample.position = position;
  sample.parked = parked;
  sample.calls = run.calls;
  sample.error = options.inject ? options.inject(run.info.name, pass) : "";
  if (sample.error.empty()) {
    const GoogleTimer::Outcome outcome = runner.timer.run(run.calls);
    sample.calls = outcome.calls;
    sample.error = outcome.error;
    if (sample.error.empty() && !(outcome.total_ns >= shortest)) {
      sample.error =
          fmt::format("{} calls took {} ns, less than {} ticks of the clock", run.calls, outcome.total_ns, kTicksPerSample);
    }
    if (sample.error.empty()) sample.ns = outcome.total_ns / static_cast<double>(sample.calls);
  }
  if (!sample.error.empty() && run.error.empty()) run.error = fmt::format("pass {}: {}", pass, sample.error);
  run.samples.push_back(std::move(sample));
}

/// Sets an arm up and checks its output; true when it may be timed.
bool admit(Arm& arm, ArmRun& run) {
  try {
    arm.prepare();
    run.info = arm.info();  // the detail is often known only now
    run.verification = arm.verify();
    run.verified = run.verification.checked;
    return true;
  } catch (const Refused& refusal) {
    run.info = arm.info();
    run.status = ArmStatus::kRefused;
    run.error = refusal.what();
  } catch (const WrongOutput& error) {
    run.info = arm.info();
    run.verification = {true, error.what()};
    fail(run, error.what());
  } catch (const std::exception& error) {
    run.info = arm.info();
    fail(run, error.what());
  }
  return false;
}

}  // namespace

std::vector<double> ArmRun::times() const {
  std::vector<double> out;
  for (const Sample& s : samples) {
    if (s.error.empty()) out.push_back(s.ns);
  }
  return out;
}

std::vector<int> mirrored_pairs(int passes) {
  std::vector<int> first;
  for (int p = 0; p + 1 < passes; p += 2) first.push_back(p);
  if (passes % 2 == 1 && passes > 1) first.push_back(passes - 2);
  return first;
}

std::vector<std::vector<int>> balanced_order(int arms, int passes) {
  // Williams: 0, 1, k-1, 2, k-2, ... and its cyclic shifts; with the mirror images each arm follows each other one equally often.
  std::vector<int> base;
  base.reserve(static_cast<size_t>(arms));
  for (int i = 0; i < arms; ++i) base.push_back(i % 2 == 1 ? (i + 1) / 2 : (arms - i / 2) % arms);
  std::vector<std::vector<int>> order(passes);
  for (int p = 0; p < passes; ++p) {
    if (p % 2 == 1 || (p == passes - 1 && p > 0)) {
      order[p] = order[p - 1];
      std::reverse(order[p].begin(), order[p].end());
      continue;
    }
    for (const int i : base) order[p].push_back((i + p / 2) % arms);
  }
  return order;
}

CaseRun run_case(const std::string& case_name, const std::vector<std::unique_ptr<Arm>>& arms, const HarnessOptions& options) {
  CaseRun result;
  result.tick_ns = std::max<int64_t>(options.clock->tick_ns(), 1);
  const double shortest = kTicksPerSample * static_cast<double>(result.tick_ns);
  const double target = std::max(options.min_sample_ns, shortest);
  result.min_sample_ns = target;
  result.arms.resize(arms.size());

  GoogleTimer::clear();
  std::vector<Runner> runners;
  runners.reserve(arms.size());
  for (size_t i = 0; i < arms.size(); ++i) {
    ArmRun& run = result.arms[i];
    Arm* arm = arms[i].get();
    run.info = arm->info();
    if (options.progress) options.progress(fmt::format("{}: {}: set up, verify, calibrate", case_name, run.info.name));
    if (!admit(*arm, run)) continue;
    Runner runner{&run,
                  arm,
                  GoogleTimer(fmt::format("{}/{}#{}", case_name, run.info.name, i),
                              [arm, clock = options.clock](int64_t calls) { return arm->sample(*clock, calls); }),
                  {}};
    calibrate(runner, options, target, shortest);
    if (options.park) options.park(arm->processes());
    if (run.status != ArmStatus::kOk) continue;
    const GoogleTimer::Outcome probe = runner.timer.run(run.calls);
    if (!probe.error.empty()) {
      fail(run, "calibration: " + probe.error);
      continue;
    }
    choose_passes(runner, options, probe.total_ns / static_cast<double>(run.calls));
    if (options.park) options.park(arm->processes());
    runners.push_back(std::move(runner));
  }

  for (const std::vector<int>& order : balanced_order(static_cast<int>(runners.size()), runners.empty() ? 0 : options.passes)) {
    const int pass = static_cast<int>(result.order.size());
    const bool late = options.deadline_ns > 0 && options.clock->now_ns() >= options.deadline_ns;
    if (late && pass % 2 == 0 && pass >= options.slow_passes) break;
    std::vector<int> ran;
    bool parked = true;
    for (const int index : order) {
      Runner& runner = runners[index];
      if (!runner.takes_part[pass]) continue;
      if (options.progress) {
        options.progress(fmt::format("{}: pass {} of {}: {}", case_name, pass + 1, options.passes, runner.run->info.name));
      }
      take_sample(runner, options, pass, static_cast<int>(ran.size()), parked, shortest);
      ran.push_back(static_cast<int>(runner.run - result.arms.data()));
      if (options.park) parked = options.park(runner.arm->processes());
    }
    result.order.push_back(std::move(ran));
  }

  for (ArmRun& run : result.arms) {
    if (run.status != ArmStatus::kOk || run.error.empty()) continue;
    run.status = run.times().empty() ? ArmStatus::kFailed : ArmStatus::kPartial;
  }
  GoogleTimer::clear();
  return result;
}

bool succeeded(const CaseRun& run) {
  return std::none_of(run.arms.begin(), run.arms.end(),
                      [](const ArmRun& arm) { return arm.status == ArmStatus::kFailed || arm.status == ArmStatus::kPartial; });
}

const char* to_text(ArmStatus status) {
  switch (status) {
    case ArmStatus::kOk:
      return "ok";
    case ArmStatus::kPartial:
      return "partial";
    case ArmStatus::kFailed:
      return "failed";
    case ArmStatus::kTooFast:
      return "too fast";
    case ArmStatus::kRefused:
      return "refused";
  }
  return "?";
}

const char* to_text(ArmRole role) {
  switch (role) {
    case ArmRole::kContender:
      return "contender";
    case ArmRole::kRead:
      return "read limit";
    case ArmRole::kPeak:
      return "peak limit";
  }
  return "?";
}

}  // namespace omnibench
