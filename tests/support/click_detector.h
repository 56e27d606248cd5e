// SPDX-License-Identifier: Apache-2.0
// Finds a discontinuity where two pieces of a signal were joined.
#ifndef OMNI_TESTS_CLICK_DETECTOR_H
#define OMNI_TESTS_CLICK_DETECTOR_H

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <span>
#include <vector>

namespace omni_test {

/// How much rougher a signal is at a place than around it: the largest second difference within two samples of `join`, over the
/// largest of those within `around` samples on either side. A join that shows neither a step nor a bend gives about 1 or less.
inline double roughness_at(std::span<const float> samples, size_t join, size_t around = 480) {
  constexpr size_t kNear = 2;
  if (samples.size() < 3 || join < kNear + 1 || join + kNear + 1 >= samples.size()) return 0;
  const auto bend = [&](size_t at) {
    return std::abs(static_cast<double>(samples[at - 1]) - 2.0 * static_cast<double>(samples[at]) +
                    static_cast<double>(samples[at + 1]));
  };
  double near = 0, far = 1e-5;  // below that nothing is heard
  for (size_t at = join - kNear; at <= join + kNear; ++at) near = std::max(near, bend(at));
  const size_t begin = join > around ? join - around : 1, end = std::min(samples.size() - 1, join + around);
  for (size_t at = std::max<size_t>(begin, 1); at < end; ++at) {
    if (at + kNear < join || at > join + kNear) far = std::max(far, bend(at));
  }
  return near / far;
}

/// The roughest of the joins at every `period` samples.
inline double roughest_join(std::span<const float> samples, size_t period) {
  double most = 0;
  for (size_t join = period; join < samples.size(); join += period) most = std::max(most, roughness_at(samples, join));
  return most;
}

}  // namespace omni_test
#endif
