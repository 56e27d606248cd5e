// SPDX-License-Identifier: Apache-2.0
// Runs the arms of one case, interleaved pass by pass in balanced order.
#ifndef OMNI_BENCH_HARNESS_H
#define OMNI_BENCH_HARNESS_H

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "bench/arm.h"

namespace omnibench {

struct Sample {
  int pass = 0;
  int position = 0;    ///< place in the pass, 0 = first
  int64_t calls = 0;   ///< inner calls
  double ns = 0;       ///< per call
  bool parked = true;  ///< the threads of the arm before were at rest when this sample began
  std::string error;   ///< why there is no time; "" when there is
};

enum class ArmStatus { kOk, kPartial, kFailed, kTooFast, kRefused };

struct ArmRun {
  ArmInfo info;
  ArmStatus status = ArmStatus::kOk;
  std::string error;  ///< first failure, with its pass when it was one
  Verification verification;
  bool verified = false;
  int64_t calls = 0;  ///< per sample
  std::vector<Sample> samples;

  /// Times of the good samples, ns per call, in pass order.
  [[nodiscard]] std::vector<double> times() const;
};

struct CaseRun {
  std::vector<ArmRun> arms;
  std::vector<std::vector<int>> order;  ///< [pass] -> arms as they ran
  int64_t tick_ns = 1;
  double min_sample_ns = 0;
};

struct HarnessOptions {
  int passes = 30;
  /// Shortest sample, ns; never less than 100 ticks. 2 ms: four cold calls of a 13312x2048 GEMV.
  double min_sample_ns = 2e6;
  int64_t max_calls = int64_t{1} << 20;
  int64_t fixed_calls = 0;  ///< > 0: no calibration
  /// An arm whose call takes longer takes part in `slow_passes` evenly spread passes only.
  double slow_call_ns = 1e8;
  int slow_passes = 12;
  Clock* clock = nullptr;  ///< required
  /// Time of the clock after which no further pair of passes begins, once there are `slow_passes`; 0: none.
  int64_t deadline_ns = 0;
  /// Waits until the threads of the last arm rest; true when they do. Empty: no waiting.
  std::function<bool(const std::vector<pid_t>&)> park;
  /// "pass p of n, arm name", called before each sample. Empty: silent.
  std::function<void(const std::string&)> progress;
  /// Failure injection for tests: a text other than "" fails that sample. No flag reaches it.
  std::function<std::string(const std::string& arm, int pass)> inject;
};

/**
 * Orders of `passes` passes over `arms` arms. Passes come in mirrored pairs (a Williams row, then its reverse), so that every
 * arm has the same mean place in time inside a pair: a drift cancels. With an odd number the last pass mirrors the one before.
 */
std::vector<std::vector<int>> balanced_order(int arms, int passes);

/// First passes of the mirrored pairs: pair i is (result[i], result[i] + 1).
std::vector<int> mirrored_pairs(int passes);

/// Never throws for what an arm does: failures are in the result.
CaseRun run_case(const std::string& case_name, const std::vector<std::unique_ptr<Arm>>& arms, const HarnessOptions& options);

/// Whether every arm that was to be timed was, in all its passes.
bool succeeded(const CaseRun& run);

const char* to_text(ArmStatus status);
const char* to_text(ArmRole role);

}  // namespace omnibench
#endif
