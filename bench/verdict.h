// SPDX-License-Identifier: Apache-2.0
// Who is faster, and when that is not said.
#ifndef OMNI_BENCH_VERDICT_H
#define OMNI_BENCH_VERDICT_H

#include <string>
#include <vector>

#include "bench/harness.h"
#include "bench/stats.h"

namespace omnibench {

enum class Ranking {
  kFirstFaster,
  kSecondFaster,
  kInsideSpread,    ///< the interval holds 1, or the difference is no larger than the spread of the paired ratios
  kUnderMinEffect,  ///< a real difference perhaps, but smaller than --min-effect
  kTooFewPasses,    ///< fewer than kMinBlocks pairs of passes in which both were timed
  kNotMeasured      ///< an arm has no times
};

/// Fewest pairs for a ranking: with six, all of one sign has a chance of 2/64 when there is no difference.
constexpr size_t kMinBlocks = 6;

/// `min_effect` is a fraction (0.08): (slower / faster) - 1 must reach it.
Ranking rank(const Paired& paired, double min_effect);
/// e.g. "faster", "slower", "not ranked: inside the spread"; seen from the first.
const char* to_text(Ranking ranking);

struct Comparison {
  int first = 0, second = 0;  ///< indices into CaseRun::arms
  Paired paired;              ///< ratio = time of the second over time of the first
  Ranking ranking = Ranking::kNotMeasured;
};

struct Verdict {
  int fastest = -1;                     ///< index of the arm that is ranked faster than every other contender, or -1
  std::string text;                     ///< one sentence
  std::vector<Comparison> comparisons;  ///< of all pairs of contenders
};

/// Log ratios second / first, one for each mirrored pair of passes in which both arms have both times.
std::vector<double> log_ratios(const ArmRun& first, const ArmRun& second, int passes);
Verdict judge(const CaseRun& run, double min_effect);

/// Did the machine change while the case ran? Each pass is the median over arms of time / the arm's median.
struct Drift {
  Trend trend;
  bool warned = false;  ///< a significant trend of more than 5 % over the run
};
Drift drift_test(const CaseRun& run);

}  // namespace omnibench
#endif
