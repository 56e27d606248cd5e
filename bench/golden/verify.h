// SPDX-License-Identifier: Apache-2.0
// `omni-bench verify`: golden files against every kernel of the registry, bit for bit. How it is used: docs/verify.md.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace omnibench {

struct VerifyOptions {
  std::vector<std::string> paths;             ///< files, or folders whose *.safetensors and *.json are taken (not below them)
  std::vector<uint32_t> threads = {1, 2, 8};  ///< a pool for each; every kernel runs on all of them
  bool exhaustive = false;                    ///< the portable tier on every shape of a digest file, not on the smallest alone
  std::string json_path;                      ///< "" = no JSON
};

/// Exit statuses, the gravest of all files.
enum VerifyStatus : int {
  kVerifyPassed = 0,     ///< something was checked and all of it has the bits
  kVerifyFailed = 1,     ///< an element differs, or the library refused what it must do
  kVerifyNothing = 2,    ///< no file, or none that this version covers
  kVerifyMalformed = 3,  ///< a file cannot be read
};

/// Prints what differs and a summary to standard output, malformed files to standard error. Throws UsageError for a path that is
/// not there, before anything is checked.
int run_verify(const VerifyOptions& options);

}  // namespace omnibench
