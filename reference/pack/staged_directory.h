// SPDX-License-Identifier: Apache-2.0
// A directory that appears under its name only when it is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "reference/core/error.h"

namespace ref {

// Removes files of these names ("name", or "folder/name"), their folders, and the directory, each when nothing else is in it. Links
// are never followed.
bool remove_known_files(const std::filesystem::path& directory, std::span<const std::string> names);

class StagedDirectory {
 public:
  // Makes `.NAME.partial-PID` beside `destination` and removes those that killed processes left. Only files of `names` will be in
  // it. `replace`: an existing directory that holds nothing but such files gives way at commit(). Throws OutputError.
  StagedDirectory(const std::filesystem::path& destination, std::vector<std::string> names, bool replace);
  // Removes what was staged, unless it was committed.
  ~StagedDirectory();
  StagedDirectory(const StagedDirectory&) = delete;
  StagedDirectory& operator=(const StagedDirectory&) = delete;

  // Creates one of `names` for writing, and its folder, and returns its descriptor. `display_path` is what error lines name.
  int create(const std::string& name);
  std::string display_path(const std::string& name) const { return (destination_ / name).string(); }
  // Syncs the directory and gives it its name. Throws OutputError.
  void commit();

 private:
  void check_destination() const;
  void remove_stale() const;

  std::filesystem::path destination_, staged_;
  std::vector<std::string> names_;
  bool replace_;
  bool committed_ = false;
  int lock_ = -1;
};

// Writes all of it at `offset`. Throws OutputError that names `path`.
void write_at(int descriptor, std::span<const std::byte> bytes, uint64_t offset, const std::string& path);

}  // namespace ref
