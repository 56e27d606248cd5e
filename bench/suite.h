// SPDX-License-Identifier: Apache-2.0
// The suite: one row for each figure that the library is held to, and for those that are measured beside them. docs/benchmarks.md
// says which row backs which figure.
#ifndef OMNI_BENCH_SUITE_H
#define OMNI_BENCH_SUITE_H

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "bench/harness.h"

namespace omnibench {

enum class Measure {
  kShareOfRead,  ///< bytes a second over those of the read arm
  kShareOfPeak,  ///< operations a second over those of the peak arm `against`
  kTimesFaster,  ///< time of the arm `against` over ours
  kTime          ///< median time, ns; the target is a bound from above
};

struct Figure {
  Measure measure;
  std::string against;
  double target = 0;  ///< 0: measured beside the others, no target
};

struct SuiteRow {
  std::string name;  ///< "w4a8-m1-gate_up"
  std::string op, shape;
  int64_t m = 1;
  std::string group;     ///< "": the operation's own
  std::string variant;   ///< "": the operation's first
  uint32_t threads = 0;  ///< 0: those of the run
  std::vector<Figure> figures;
};

const std::vector<SuiteRow>& suite_rows();
Case case_of(const SuiteRow& row, uint32_t threads);
/// e.g. "share of the read arm, at least 0.90".
std::string to_text(const Figure& figure);

/**
 * What a run says of a row: one object for each figure with `row`, `case`, `figure`, `value`, `low`, `high`, `target` (null: none)
 * and `outcome`. Ratios are paired, as in a ranking; a target inside the interval is neither reached nor missed beyond the noise,
 * and the outcome says so.
 */
nlohmann::json figures_json(const SuiteRow& row, const Case& c, const CaseRun& run);

/// The table of report["suite"], as Markdown and for the terminal.
std::string suite_markdown(const nlohmann::json& report);
std::string suite_terminal(const nlohmann::json& report);

// Shared with the page.
std::string format_figure(const nlohmann::json& figure);
std::string format_target(const nlohmann::json& figure);

}  // namespace omnibench
#endif
