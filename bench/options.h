// SPDX-License-Identifier: Apache-2.0
#ifndef OMNI_BENCH_OPTIONS_H
#define OMNI_BENCH_OPTIONS_H

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "bench/cases.h"
#include "bench/golden/verify.h"

namespace omnibench {

/// Bad input: one line, exit status 2.
struct UsageError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

enum class Cache { kUsual, kCold, kHot, kBoth };

/// One entry of --arms.
struct ArmRequest {
  std::string name;     ///< as it appears in the report
  std::string arm;      ///< arm name, kernel name, or empty for the two external forms
  std::string command;  ///< of cmd: (worker) or run: (whole command)
  bool worker = false;
};

struct RunOptions {
  std::vector<Case> cases;  ///< in order: entry of --shape, operation, shape, M; the state of the cache is given by cases_of()
  Cache cache = Cache::kUsual;
  std::string isa;       ///< cap; "" = none
  uint32_t threads = 0;  ///< resolved: never 0 after parsing
  int passes = 30;
  double min_effect_percent = 8;
  std::vector<ArmRequest> arms;  ///< empty: every arm that exists here
  bool add_arms = false;         ///< --arms began with "+": beside the default ones
  bool only_chosen = false;      ///< of our arms only what the library chooses, and of the peers those in `wanted`: the suite
  std::vector<std::string> wanted;
  std::string peers;  ///< command in front of the name of a worker of bench/peers; "" = none
  std::string json_path, html_path;
  std::string command_line;  ///< for the report: words as a shell takes them, without those that say where files go
};

struct SuiteOptions {
  double minutes = 10;       ///< budget
  std::string only;          ///< part of the names of the rows to run; "" = all
  std::string summary_path;  ///< Markdown
};

enum class Action { kRun, kSuite, kList, kCompare, kWorker, kVerify, kHelp };

struct Options {
  Action action = Action::kRun;
  std::string help;
  RunOptions run;
  SuiteOptions suite;
  std::vector<std::string> files;  ///< of compare: two
  double compare_min_effect_percent = 8;
  bool fail_on_slower = false;
  VerifyOptions verify;
};

/// Throws UsageError naming the flag and its value.
Options parse_options(int argc, const char* const* argv);

/// The cases that the options ask for, each with the state of its cache. Throws UsageError.
std::vector<Case> cases_of(const RunOptions& options, uint64_t l3_bytes, std::vector<std::string>* notes);

/// Tier names, lowest first, as omni_set_max_isa takes them.
const std::vector<std::string>& tier_names();

}  // namespace omnibench
#endif
