// SPDX-License-Identifier: Apache-2.0
#include "bench/output_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <stdexcept>
#include <utility>

namespace omnibench {
namespace {

[[noreturn]] void fail(const std::string& path) { throw std::runtime_error(path + ": " + std::strerror(errno)); }

int create(const std::string& path) { return open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644); }

bool write_all(int descriptor, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote = write(descriptor, text.data() + done, text.size() - done);
    if (wrote < 0 && errno != EINTR) return false;
    done += wrote > 0 ? static_cast<size_t>(wrote) : 0;
  }
  return fsync(descriptor) == 0 || errno == EINVAL || errno == EROFS;
}

}  // namespace

OutputFile::OutputFile(std::string path) : path_(std::move(path)) {
  struct stat existing {};
  const bool exists = stat(path_.c_str(), &existing) == 0;
  if (path_.empty() || (exists && S_ISDIR(existing.st_mode))) {
    errno = path_.empty() ? ENOENT : EISDIR;
    fail(path_);
  }
  // rename() would put a file in the place of a device or a pipe: as root, of /dev/null itself.
  if (exists && !S_ISREG(existing.st_mode)) throw std::runtime_error(path_ + ": is no regular file");
  std::error_code unresolved;  // a link stays and its target is replaced
  const std::filesystem::path target = std::filesystem::canonical(path_, unresolved);
  if (!unresolved) path_ = target.string();
  aside_ = path_ + ".part" + std::to_string(getpid());
  const int descriptor = create(aside_);
  if (descriptor < 0) fail(path_);
  close(descriptor);
  unlink(aside_.c_str());
}

void OutputFile::commit(const std::string& text) const {
  const int descriptor = create(aside_);
  if (descriptor < 0) fail(path_);
  const bool written = write_all(descriptor, text);
  const int reason = errno;
  close(descriptor);
  if (written && std::rename(aside_.c_str(), path_.c_str()) == 0) return;
  if (!written) errno = reason;
  const int error = errno;
  unlink(aside_.c_str());
  errno = error;
  fail(path_);
}

}  // namespace omnibench
