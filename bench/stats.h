// SPDX-License-Identifier: Apache-2.0
// Robust statistics of pass times. Pure functions; none divides by a spread, so a zero spread is no special case.
#ifndef OMNI_BENCH_STATS_H
#define OMNI_BENCH_STATS_H

#include <cstddef>
#include <string>
#include <utility>
#include <vector>

namespace omnibench {

/// Quantile p in [0, 1] with linear interpolation between order statistics. `values` must not be empty.
double quantile(std::vector<double> values, double p);
double median(std::vector<double> values);

struct Summary {
  size_t n = 0;       ///< observations: passes, never inner calls
  double best = 0;    ///< ns
  double median = 0;  ///< ns
  double q25 = 0, q75 = 0;
  double spread = 0;                                 ///< (q75 - q25) / median, 0 when the median is 0
  std::vector<size_t> fast_outliers, slow_outliers;  ///< positions in the input
};

/// `resolution`: what the clock cannot tell apart. An outlier lies further outside the quartiles than 1.5 of their distance, 1 %
/// of the median and the resolution; both sides are looked at.
Summary summarize(const std::vector<double>& values, double resolution);

/// Statistics of paired log ratios (one per pair of mirrored passes).
struct Paired {
  size_t blocks = 0;
  double ratio = 1;          ///< exp(median of the log ratios): time of the second over time of the first
  double low = 1, high = 1;  ///< 95 % bootstrap interval of it
  double spread = 0;         ///< 1.4826 * median absolute deviation of the log ratios
};

/// Bootstrap with a fixed seed: the same samples give the same interval.
Paired paired_statistics(const std::vector<double>& log_ratios);

/// The same for two unpaired sets (reports of two runs): the bootstrap resamples each side; `spread` joins the two robust
/// deviations as root of the sum of squares.
Paired unpaired_statistics(const std::vector<double>& first, const std::vector<double>& second);

/// Trend over time: Theil-Sen slope times length, and the Mann-Kendall normal score.
struct Trend {
  double change = 0;  ///< relative change from the first to the last value
  double score = 0;   ///< |score| > 2.58 is a trend at 1 %
};
Trend trend(const std::vector<double>& values);

}  // namespace omnibench
#endif
