// SPDX-License-Identifier: Apache-2.0
// Google Benchmark under our interleaving. Each arm of a case is one registered benchmark with manual time; each (arm, pass) is one
// run of it, asked for by name in our order. The library's own repetitions would run an arm's passes in a row (or shuffled), and
// neither is balanced; so it carries registration, the run and its error, the iteration count and the context, and the order and
// the statistics are ours.
#ifndef OMNI_BENCH_GOOGLE_TIMER_H
#define OMNI_BENCH_GOOGLE_TIMER_H

#include <cstdint>
#include <functional>
#include <string>

namespace benchmark::internal {
class Benchmark;
}

namespace omnibench {

class GoogleTimer {
 public:
  struct Outcome {
    int64_t calls = 0;
    double total_ns = 0;
    std::string error;
  };

  /// `work(calls)` returns the time of `calls` calls in ns or throws.
  GoogleTimer(const std::string& name, std::function<double(int64_t)> work);
  /// One run of `calls` iterations.
  Outcome run(int64_t calls);
  /// Forgets every registered benchmark; timers made before are dead.
  static void clear();
  /// The library's context (date, processors, caches, load, custom keys) as JSON text.
  static std::string context_json();

 private:
  std::string filter_;
  benchmark::internal::Benchmark* registered_;
};

}  // namespace omnibench
#endif
