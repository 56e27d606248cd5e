// SPDX-License-Identifier: Apache-2.0
#ifndef OMNI_BENCH_OUTPUT_FILE_H
#define OMNI_BENCH_OUTPUT_FILE_H

#include <string>

namespace omnibench {

/// A file written aside and renamed into place: a reader never sees half a report, and a failed run leaves the old one.
class OutputFile {
 public:
  /// Creates and removes the file aside, so that a path that cannot be written is known before anything is measured. Throws.
  explicit OutputFile(std::string path);
  /// Writes, syncs and renames. Throws; the path then holds what it held.
  void commit(const std::string& text) const;

 private:
  std::string path_, aside_;
};

}  // namespace omnibench
#endif
