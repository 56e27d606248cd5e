// SPDX-License-Identifier: Apache-2.0
#include "kernels/parallel/ticks.h"

#include <algorithm>
#include <ctime>

namespace okl {
namespace {

int64_t monotonic_ns() {
  timespec now = {};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

// The counter is read inside the clock's interval, so that a pause between the readings can only make the rate too small: the
// largest of three is the best.
uint64_t measure() {
  uint64_t best = 1;
  for (int i = 0; i < 3; ++i) {
    const int64_t start_ns = monotonic_ns();
    const uint64_t start = ticks();
    uint64_t end = start;
    int64_t end_ns = start_ns;
    while (end_ns - start_ns < 100'000) {
      end = ticks();
      end_ns = monotonic_ns();
    }
    best = std::max(best, (end - start) * 1000 / static_cast<uint64_t>(end_ns - start_ns));
  }
  return best;
}

}  // namespace

uint64_t ticks_per_microsecond() {
  static const uint64_t rate = measure();
  return rate;
}

}  // namespace okl
