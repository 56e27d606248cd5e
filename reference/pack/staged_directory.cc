// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/staged_directory.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <set>

namespace ref {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void fail(const std::string& path, const char* what, int error) {
  throw OutputError(path + ": " + what + " (" + std::strerror(error) + ")");
}

bool has_entry(const fs::path& path) {
  struct stat status {};
  return ::lstat(path.c_str(), &status) == 0;
}

constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// "folder" of "folder/name", else "".
std::string folder_of(const std::string& name) {
  const size_t slash = name.find('/');
  return slash == name.npos ? "" : name.substr(0, slash);
}

// A path of a directory without a trailing slash, so that it has a name and a parent.
fs::path named(const fs::path& path) {
  fs::path normal = path.lexically_normal();
  return normal.has_filename() ? normal : normal.parent_path();
}

fs::path parent_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

void sync_directory(const fs::path& directory) {
  const int descriptor = ::open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (descriptor < 0) return;
  ::fsync(descriptor);  // some file systems know no such thing; the files themselves are synced
  ::close(descriptor);
}

// `.NAME.partial-`, then comes the process number.
std::string partial_prefix(const fs::path& destination) {
  std::string prefix = destination.filename().string() + ".partial-";
  prefix.insert(prefix.begin(), '.');
  return prefix;
}

// The process number of `.NAME.partial-PID`, or 0.
pid_t owner_of(const std::string& entry, const std::string& prefix) {
  if (!entry.starts_with(prefix)) return 0;
  const std::string digits = entry.substr(prefix.size());
  if (digits.empty() || digits.size() > 9 || digits.find_first_not_of("0123456789") != digits.npos) return 0;
  return static_cast<pid_t>(std::stol(digits));
}

// Where this file system cannot exchange two names there is a moment without any.
bool exchange(const fs::path& a, const fs::path& b) {
  if (::renameat2(AT_FDCWD, a.c_str(), AT_FDCWD, b.c_str(), RENAME_EXCHANGE) == 0) return true;
  if (errno != EINVAL && errno != ENOSYS) return false;
  const fs::path aside = a.string() + ".old";
  if (::rename(b.c_str(), aside.c_str()) != 0) return false;
  if (::rename(a.c_str(), b.c_str()) == 0) return ::rename(aside.c_str(), a.c_str()) == 0;
  const int error = errno;
  ::rename(aside.c_str(), b.c_str());
  errno = error;
  return false;
}

}  // namespace

bool remove_known_files(const fs::path& directory, std::span<const std::string> names) {
  const int descriptor = ::open(directory.c_str(), kDirectoryFlags);
  if (descriptor < 0) return false;
  std::set<std::string> folders;
  for (const std::string& name : names) {
    if (const std::string folder = folder_of(name); !folder.empty()) {
      folders.insert(folder);
    } else {
      ::unlinkat(descriptor, name.c_str(), 0);
    }
  }
  for (const std::string& folder : folders) {
    const int inner = ::openat(descriptor, folder.c_str(), kDirectoryFlags);
    if (inner < 0) continue;
    for (const std::string& name : names) {
      if (folder_of(name) == folder) ::unlinkat(inner, name.c_str() + folder.size() + 1, 0);
    }
    ::close(inner);
    ::unlinkat(descriptor, folder.c_str(), AT_REMOVEDIR);
  }
  ::close(descriptor);
  return ::rmdir(directory.c_str()) == 0;
}

StagedDirectory::StagedDirectory(const fs::path& destination, std::vector<std::string> names, bool replace)
    : destination_(named(destination)), names_(std::move(names)), replace_(replace) {
  check_destination();
  remove_stale();
  staged_ = parent_of(destination_) / (partial_prefix(destination_) + std::to_string(::getpid()));
  if (::mkdir(staged_.c_str(), 0777) != 0) fail(staged_.string(), "cannot be made", errno);
  // Tells others that somebody still works here, even where process numbers mean nothing to them.
  lock_ = ::open(staged_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ >= 0) ::flock(lock_, LOCK_EX | LOCK_NB);
}

StagedDirectory::~StagedDirectory() {
  if (!committed_) remove_known_files(staged_, names_);
  if (lock_ >= 0) ::close(lock_);
}

void StagedDirectory::check_destination() const {
  const std::string name = destination_.filename().string();
  if (name.empty() || name == "." || name == "..") throw OutputError(destination_.string() + ": is no name of a new directory");
  std::error_code ignored;
  const fs::path parent = parent_of(destination_);
  if (!fs::is_directory(parent, ignored)) throw OutputError(parent.string() + ": is no directory");
  if (!has_entry(destination_)) return;
  if (!replace_) throw OutputError(destination_.string() + ": exists");
  if (fs::is_symlink(destination_, ignored) || !fs::is_directory(destination_, ignored)) {
    throw OutputError(destination_.string() + ": exists and is no directory");
  }
  for (const fs::directory_entry& entry : fs::directory_iterator(destination_, ignored)) {
    const std::string file = entry.path().filename().string();
    if (std::find(names_.begin(), names_.end(), file) == names_.end()) {
      throw OutputError(destination_.string() + ": is not replaced, as it holds " + file + ", which is no part of a packed model");
    }
  }
}

void StagedDirectory::remove_stale() const {
  const std::string prefix = partial_prefix(destination_);
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(parent_of(destination_), ignored)) {
    const pid_t owner = owner_of(entry.path().filename().string(), prefix);
    if (owner <= 0) continue;
    const bool gone = owner == ::getpid() || (::kill(owner, 0) != 0 && errno == ESRCH);
    const int descriptor = gone ? ::open(entry.path().c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (descriptor < 0) continue;
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) remove_known_files(entry.path(), names_);
    ::close(descriptor);
  }
}

int StagedDirectory::create(const std::string& name) {
  const std::string folder = folder_of(name);
  if (!folder.empty() && ::mkdir((staged_ / folder).c_str(), 0777) != 0 && errno != EEXIST) {
    fail(display_path(folder), "cannot be made", errno);
  }
  const int descriptor = ::open((staged_ / name).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor < 0) fail(display_path(name), "cannot be made", errno);
  return descriptor;
}

void StagedDirectory::commit() {
  for (const std::string& name : names_) {
    if (const std::string folder = folder_of(name); !folder.empty()) sync_directory(staged_ / folder);
  }
  sync_directory(staged_);
  // Without replacement rename() would still take the place of an empty directory that came up meanwhile.
  const bool replacing = replace_ && has_entry(destination_);
  const bool renamed = replacing ? exchange(staged_, destination_)
                                 : ::renameat2(AT_FDCWD, staged_.c_str(), AT_FDCWD, destination_.c_str(), RENAME_NOREPLACE) == 0 ||
                                       (errno == EINVAL && ::rename(staged_.c_str(), destination_.c_str()) == 0);
  if (!renamed) fail(destination_.string(), "cannot be given its name", errno);
  committed_ = true;
  sync_directory(parent_of(destination_));
  if (replacing) remove_known_files(staged_, names_);
}

void write_at(int descriptor, std::span<const std::byte> bytes, uint64_t offset, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::pwrite(descriptor, bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) fail(path, "cannot be written", errno);
    if (wrote == 0) fail(path, "cannot be written", ENOSPC);
    offset += static_cast<uint64_t>(wrote);
    bytes = bytes.subspan(static_cast<size_t>(wrote));
  }
}

}  // namespace ref
