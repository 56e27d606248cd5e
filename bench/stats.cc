// SPDX-License-Identifier: Apache-2.0
#include "bench/stats.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <random>

namespace omnibench {
namespace {

constexpr int kResamples = 2000;
constexpr uint64_t kSeed = 0x6f6d6e69;  // fixed: a report can be recomputed from its samples

double deviation(const std::vector<double>& values) {
  const double middle = median(values);
  std::vector<double> distance(values.size());
  std::transform(values.begin(), values.end(), distance.begin(), [&](double v) { return std::fabs(v - middle); });
  return 1.4826 * median(distance);
}

std::vector<double> resample(const std::vector<double>& values, std::mt19937_64& random) {
  std::vector<double> out(values.size());
  for (double& v : out) v = values[random() % values.size()];
  return out;
}

}  // namespace

double quantile(std::vector<double> values, double p) {
  std::sort(values.begin(), values.end());
  const double position = p * static_cast<double>(values.size() - 1);
  const auto lower = static_cast<size_t>(position);
  const size_t upper = std::min(lower + 1, values.size() - 1);
  return values[lower] + (values[upper] - values[lower]) * (position - static_cast<double>(lower));
}

double median(std::vector<double> values) { return quantile(std::move(values), 0.5); }

Summary summarize(const std::vector<double>& values, double resolution) {
  Summary s;
  s.n = values.size();
  if (values.empty()) return s;
  s.best = *std::min_element(values.begin(), values.end());
  s.median = median(values);
  s.q25 = quantile(values, 0.25);
  s.q75 = quantile(values, 0.75);
  s.spread = s.median > 0 ? (s.q75 - s.q25) / s.median : 0;
  const double reach = std::max({1.5 * (s.q75 - s.q25), 0.01 * s.median, resolution});
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] < s.q25 - reach) s.fast_outliers.push_back(i);
    if (values[i] > s.q75 + reach) s.slow_outliers.push_back(i);
  }
  return s;
}

Paired paired_statistics(const std::vector<double>& log_ratios) {
  Paired p;
  p.blocks = log_ratios.size();
  if (log_ratios.empty()) return p;
  p.ratio = std::exp(median(log_ratios));
  p.spread = deviation(log_ratios);
  std::mt19937_64 random(kSeed);
  std::vector<double> medians(kResamples);
  for (double& m : medians) m = median(resample(log_ratios, random));
  p.low = std::exp(quantile(medians, 0.025));
  p.high = std::exp(quantile(medians, 0.975));
  return p;
}

Paired unpaired_statistics(const std::vector<double>& first, const std::vector<double>& second) {
  Paired p;
  p.blocks = std::min(first.size(), second.size());
  if (p.blocks == 0) return p;
  const auto logs = [](std::vector<double> v) {
    for (double& x : v) x = std::log(x);
    return v;
  };
  const std::vector<double> a = logs(first);
  const std::vector<double> b = logs(second);
  p.ratio = std::exp(median(b) - median(a));
  p.spread = std::hypot(deviation(a), deviation(b));
  std::mt19937_64 random(kSeed);
  std::vector<double> differences(kResamples);
  for (double& d : differences) d = median(resample(b, random)) - median(resample(a, random));
  p.low = std::exp(quantile(differences, 0.025));
  p.high = std::exp(quantile(differences, 0.975));
  return p;
}

Trend trend(const std::vector<double>& values) {
  Trend t;
  const size_t n = values.size();
  if (n < 6) return t;
  std::vector<double> slopes;
  slopes.reserve(n * (n - 1) / 2);
  int64_t sign = 0;
  for (size_t i = 0; i < n; ++i) {
    for (size_t j = i + 1; j < n; ++j) {
      const double difference = values[j] - values[i];
      slopes.push_back(difference / static_cast<double>(j - i));
      sign += (difference > 0) - (difference < 0);
    }
  }
  const double middle = median(values);
  if (middle <= 0) return t;
  t.change = median(slopes) * static_cast<double>(n - 1) / middle;
  const auto count = static_cast<double>(n);
  const double sigma = std::sqrt(count * (count - 1) * (2 * count + 5) / 18);
  t.score = static_cast<double>(sign - (sign > 0) + (sign < 0)) / sigma;
  return t;
}

}  // namespace omnibench
