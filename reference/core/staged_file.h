// SPDX-License-Identifier: Apache-2.0
// A file that appears under its name only when it is complete.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "reference/core/error.h"

namespace ref {

class StagedFile {
 public:
  // Makes `.NAME.partial-PID-N` beside `destination` and removes those that killed processes left. A link is followed: what it
  // leads to is replaced. Throws OutputError.
  explicit StagedFile(const std::filesystem::path& destination);
  // Removes what was staged, unless it was committed.
  ~StagedFile();
  StagedFile(const StagedFile&) = delete;
  StagedFile& operator=(const StagedFile&) = delete;

  int descriptor() const { return descriptor_; }
  // What error lines name.
  const std::string& name() const { return name_; }
  // Appends all of it. Throws OutputError.
  void write(std::span<const std::byte> bytes);
  // Syncs the file and gives it its name, in place of what was there. Throws OutputError.
  void commit();

 private:
  std::filesystem::path destination_, staged_;
  std::string name_;
  int descriptor_ = -1;
};

}  // namespace ref
