// SPDX-License-Identifier: Apache-2.0
#include "bench/google_timer.h"

#include <benchmark/benchmark.h>
#include <fmt/format.h>

#include <exception>
#include <sstream>
#include <utility>
#include <vector>

namespace omnibench {
namespace {

class Capture final : public benchmark::BenchmarkReporter {
 public:
  bool ReportContext(const Context&) override { return true; }
  void ReportRuns(const std::vector<Run>& runs) override {
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      outcome.calls = run.iterations;
      outcome.total_ns = run.real_accumulated_time * 1e9;
      outcome.error = run.error_occurred ? run.error_message : "";
      seen = true;
    }
  }
  GoogleTimer::Outcome outcome;
  bool seen = false;
};

std::string escape_regex(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (std::string("^$\\.*+?()[]{}|").find(c) != std::string::npos) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

GoogleTimer::GoogleTimer(const std::string& name, std::function<double(int64_t)> work)
    : filter_(fmt::format("^{}/iterations:", escape_regex(name))),
      registered_(benchmark::RegisterBenchmark(name.c_str(), [work = std::move(work)](benchmark::State& state) {
        while (state.KeepRunningBatch(state.max_iterations)) {
          try {
            state.SetIterationTime(work(static_cast<int64_t>(state.max_iterations)) * 1e-9);
          } catch (const std::exception& error) {
            state.SkipWithError(error.what());
          }
        }
      })) {
  registered_->UseManualTime();
}

GoogleTimer::Outcome GoogleTimer::run(int64_t calls) {
  registered_->Iterations(calls);
  Capture capture;
  std::ostringstream quiet;  // the library writes nothing of its own
  capture.SetOutputStream(&quiet);
  capture.SetErrorStream(&quiet);
  benchmark::RunSpecifiedBenchmarks(&capture, filter_);
  if (!capture.seen) capture.outcome.error = "Google Benchmark did not run the arm: " + quiet.str();
  return capture.outcome;
}

void GoogleTimer::clear() { benchmark::ClearRegisteredBenchmarks(); }

std::string GoogleTimer::context_json() {
  std::ostringstream text;
  benchmark::JSONReporter reporter;
  reporter.SetOutputStream(&text);
  reporter.SetErrorStream(&text);
  reporter.ReportContext(benchmark::BenchmarkReporter::Context());
  return text.str() + "]}";
}

}  // namespace omnibench
