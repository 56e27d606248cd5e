// SPDX-License-Identifier: Apache-2.0
// The report: one JSON document, from which the terminal table and the HTML page are drawn. Schema: docs/reading-a-report.md.
#ifndef OMNI_BENCH_REPORT_H
#define OMNI_BENCH_REPORT_H

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "bench/harness.h"
#include "bench/verdict.h"

namespace omnibench {

constexpr int kSchemaVersion = 1;

/// What is known of a case besides its times.
struct CaseSetting {
  Case c;
  int64_t copies = 1;         ///< of the operands that rotate
  double rotation_bytes = 0;  ///< copies * rotated bytes
  std::string pages;          ///< "transparent 2 MiB", "explicit 2 MiB", "4 KiB"
  std::vector<std::string> notes;
};

/// One element of results[].
nlohmann::json result_json(const CaseSetting& setting, const CaseRun& run, double min_effect);

/// The frame around the results. `settings` says how the run was asked for, `warnings` concern all of it. A run of the suite adds
/// its figures under "suite" afterwards.
nlohmann::json report_json(nlohmann::json settings, nlohmann::json machine, nlohmann::json results,
                           const std::vector<std::string>& warnings, bool success);

/// A table per result and the verdicts.
std::string report_terminal(const nlohmann::json& report);
/// One self-contained page. `plots_missing` says whether gnuplot could not draw.
std::string report_html(const nlohmann::json& report, bool* plots_missing);

/// Not finite becomes null: JSON has no NaN.
nlohmann::json number(double value);

// Shared by the renderers.
std::string format_time(const nlohmann::json& ns);
std::string format_number(const nlohmann::json& value, int digits);
std::string format_percent(const nlohmann::json& fraction);
std::string case_line(const nlohmann::json& result);
std::string bytes_line(const nlohmann::json& result);
/// Columns wide enough for their widest line; the first and the last flush left.
std::string text_table(const std::vector<std::vector<std::string>>& lines);

}  // namespace omnibench
#endif
