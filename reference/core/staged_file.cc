// SPDX-License-Identifier: Apache-2.0
#include "reference/core/staged_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>

namespace ref {
namespace {

namespace fs = std::filesystem;

// Leaves room for the rest of the staged name in the 255 bytes that a name may have.
constexpr size_t kMostNameBytes = 200;

[[noreturn]] void fail(const std::string& name, const char* what, int error) {
  throw OutputError(name + ": " + what + " (" + std::strerror(error) + ")");
}

fs::path parent_of(const fs::path& path) { return path.has_parent_path() ? path.parent_path() : fs::path("."); }

// Where the bytes shall end up: a link stays one.
fs::path target_of(const fs::path& destination) {
  std::error_code error;
  if (!fs::is_symlink(destination, error)) return destination;
  const fs::path target = fs::weakly_canonical(destination, error);
  return error ? destination : target;
}

std::string partial_prefix(const fs::path& destination) {
  std::string prefix = ".";
  prefix += destination.filename().string().substr(0, kMostNameBytes);
  return prefix + ".partial-";
}

// Files of processes that are gone and that nobody holds locked: process numbers mean nothing across machines.
void remove_stale(const fs::path& directory, const std::string& prefix) {
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(directory, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(prefix)) continue;
    const long owner = std::strtol(name.c_str() + prefix.size(), nullptr, 10);
    if (owner <= 0 || ::kill(static_cast<pid_t>(owner), 0) == 0 || errno != ESRCH) continue;
    const int descriptor = ::open(entry.path().c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (descriptor < 0) continue;
    if (::flock(descriptor, LOCK_EX | LOCK_NB) == 0) ::unlink(entry.path().c_str());
    ::close(descriptor);
  }
}

}  // namespace

StagedFile::StagedFile(const fs::path& destination) : destination_(target_of(destination)), name_(destination.string()) {
  static std::atomic<unsigned> count = 0;  // one process may write several files of one name
  const std::string file = destination_.filename().string();
  if (file.empty() || file == "." || file == "..") throw OutputError(name_ + ": is no name of a file");
  std::error_code ignored;
  if (fs::is_directory(destination_, ignored)) throw OutputError(name_ + ": is a directory");
  const fs::path parent = parent_of(destination_);
  if (!fs::is_directory(parent, ignored)) throw OutputError(name_ + ": there is no directory " + parent.string());
  const std::string prefix = partial_prefix(destination_);
  remove_stale(parent, prefix);
  staged_ = parent / (prefix + std::to_string(::getpid()) + "-" + std::to_string(count++));
  descriptor_ = ::open(staged_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0666);
  if (descriptor_ < 0) fail(name_, "cannot be made", errno);
  ::flock(descriptor_, LOCK_EX | LOCK_NB);
}

StagedFile::~StagedFile() {
  if (!staged_.empty()) ::unlink(staged_.c_str());
  if (descriptor_ >= 0) ::close(descriptor_);
}

void StagedFile::write(std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t wrote = ::write(descriptor_, bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) fail(name_, "cannot be written", wrote < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<size_t>(wrote));
  }
}

void StagedFile::commit() {
  // Some file systems know no fsync; what others have to say about lost bytes they say here.
  if (::fsync(descriptor_) != 0 && errno != EINVAL && errno != ENOTSUP) fail(name_, "cannot be written", errno);
  if (::rename(staged_.c_str(), destination_.c_str()) != 0) fail(name_, "cannot be given its name", errno);
  staged_.clear();
}

}  // namespace ref
