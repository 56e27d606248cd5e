// SPDX-License-Identifier: Apache-2.0
// A file mapped for reading. Header only, for programs and tests.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>

namespace omni_files {

class FileError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

class MappedFile {
 public:
  // Throws FileError, one line that begins with the path. Only regular files: a pipe would block, a device has no size.
  static MappedFile open(const std::string& path) {
    const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0) throw FileError(path + ": cannot be opened (" + std::strerror(errno) + ")");
    struct stat status {};
    const bool regular = ::fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode);
    const auto size = regular ? static_cast<size_t>(status.st_size) : 0;
    void* address = size == 0 ? nullptr : ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    const int error = errno;
    ::close(descriptor);
    if (!regular) throw FileError(path + ": is no regular file");
    if (address == MAP_FAILED) throw FileError(path + ": cannot be mapped (" + std::strerror(error) + ")");
    return MappedFile(static_cast<const std::byte*>(address), size);
  }

  MappedFile(MappedFile&& other) noexcept : bytes_(std::exchange(other.bytes_, {})) {}
  MappedFile& operator=(MappedFile&& other) noexcept {
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~MappedFile() {
    if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  }

  std::span<const std::byte> bytes() const { return bytes_; }

 private:
  MappedFile(const std::byte* data, size_t size) : bytes_(data, size) {}

  std::span<const std::byte> bytes_;
};

}  // namespace omni_files
