// SPDX-License-Identifier: Apache-2.0
#ifndef OMNI_BENCH_CLOCK_H
#define OMNI_BENCH_CLOCK_H

#include <algorithm>
#include <chrono>
#include <cstdint>

namespace omnibench {

/// The clock that times samples; tests inject their own.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual int64_t now_ns() = 0;
  /// Smallest step the clock was seen to make, ns, at least 1.
  virtual int64_t tick_ns() = 0;
};

class SteadyClock final : public Clock {
 public:
  int64_t now_ns() override {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
  }
  int64_t tick_ns() override {
    if (tick_ > 0) return tick_;
    int64_t best = 1000000;
    for (int i = 0; i < 2000; ++i) {
      const int64_t from = now_ns();
      int64_t to = from;
      while (to == from) to = now_ns();
      best = std::min(best, to - from);
    }
    return tick_ = std::max<int64_t>(best, 1);
  }

 private:
  int64_t tick_ = 0;
};

}  // namespace omnibench
#endif
