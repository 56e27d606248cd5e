// SPDX-License-Identifier: Apache-2.0
// What verification found: one entry for each (file, tensor or digest, kernel).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include "omni/omni.hpp"

namespace omnibench {

enum class Outcome { kPassed, kFailed, kNotRun, kNotCovered };

/// Thrown by a check: the bits differ; what() says where.
struct Differs : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// Thrown by a check: the kernel cannot run here; what() says why.
struct NotRun : std::runtime_error {
  using std::runtime_error::runtime_error;
};
/// A file that cannot be read; what() is one line that begins with its path.
struct Malformed : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Entry {
  std::string what;    ///< tensor or digest
  std::string kernel;  ///< "" when no kernel is at issue
  Outcome outcome = Outcome::kPassed;
  std::string detail;  ///< where the bits differ, or why there is nothing to say
};

class FileRecord {
 public:
  explicit FileRecord(std::string path_in) : path(std::move(path_in)) {}

  void add(std::string what, std::string kernel, Outcome outcome, std::string detail = "") {
    entries.push_back({std::move(what), std::move(kernel), outcome, std::move(detail)});
  }

  /// Runs one check and records how it ended. A library call that fails is a failure, unless it says that the kernel cannot run.
  template <typename Function>
  void attempt(const std::string& what, const std::string& kernel, const Function& check) {
    try {
      check();
      add(what, kernel, Outcome::kPassed);
    } catch (const Differs& difference) {
      add(what, kernel, Outcome::kFailed, difference.what());
    } catch (const NotRun& reason) {
      add(what, kernel, Outcome::kNotRun, reason.what());
    } catch (const omni::Error& error) {
      const bool absent = error.status() == OMNI_ERR_NO_KERNEL || error.status() == OMNI_ERR_JIT;
      add(what, kernel, absent ? Outcome::kNotRun : Outcome::kFailed, error.what());
    }
  }

  [[nodiscard]] size_t count(Outcome outcome) const {
    size_t result = 0;
    for (const Entry& entry : entries) result += entry.outcome == outcome ? 1 : 0;
    return result;
  }

  std::string path;
  std::string kind;       ///< as the file says; "digests" for digest files
  std::string malformed;  ///< the one line, else ""
  std::vector<Entry> entries;
};

}  // namespace omnibench
