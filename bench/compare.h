// SPDX-License-Identifier: Apache-2.0
#ifndef OMNI_BENCH_COMPARE_H
#define OMNI_BENCH_COMPARE_H

#include <nlohmann/json.hpp>
#include <string>

namespace omnibench {

/// Reads a report and checks its schema and version. Throws with the file and what is wrong.
nlohmann::json read_report(const std::string& path);

struct ComparisonReport {
  ComparisonReport() : rows(nlohmann::json::array()) {}
  std::string text;
  nlohmann::json rows;  ///< [{case, arm, ratio, low, high, spread, ranking}], ratio = time in b over time in a
  bool slower = false;  ///< b is ranked slower somewhere
};

/// The rules of a run applied to two reports, arm by arm and case by case. Two runs are not interleaved, so there are no pairs: the
/// spread joins those of both sides, and what differs between the machines is said first.
ComparisonReport compare_reports(const nlohmann::json& a, const nlohmann::json& b, double min_effect);

}  // namespace omnibench
#endif
