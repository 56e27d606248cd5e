// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/directory_sink.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <new>

namespace ref {
namespace {

const std::string kNoDigest(64, '0');

}  // namespace

DirectorySink::DirectorySink(const Image& image, StagedDirectory& directory, const std::string& file)
    : image_(image),
      path_(directory.display_path(file)),
      descriptor_(directory.create(file)),
      data_(0),
      buffer_(nullptr, std::free),
      digests_(image.tensors.size(), kNoDigest) {
  const std::string header = header_text(image_, digests_);
  data_ = header.size();
  const uint64_t size = data_ + image_.bytes;
  // Not posix_fallocate(), which writes every block where the file system cannot reserve.
  if (::fallocate(descriptor_, 0, 0, static_cast<off_t>(size)) == 0) return;
  const int error = errno;
  if (error != ENOSPC && error != EFBIG && error != EDQUOT && error != EIO) return;
  ::close(descriptor_);
  throw OutputError(path_ + ": cannot hold " + std::to_string(size) + " bytes (" + std::strerror(error) + ")");
}

DirectorySink::~DirectorySink() { ::close(descriptor_); }

std::span<std::byte> DirectorySink::acquire(size_t tensor, uint64_t offset, size_t bytes) {
  if (bytes > capacity_) {
    buffer_.reset();
    capacity_ = (bytes + 63) / 64 * 64;
    buffer_.reset(static_cast<std::byte*>(std::aligned_alloc(64, capacity_)));
    if (buffer_ == nullptr) throw std::bad_alloc();
  }
  tensor_ = tensor;
  offset_ = offset;
  piece_ = {buffer_.get(), bytes};
  return piece_;
}

void DirectorySink::commit() {
  const StoredTensor& tensor = image_.tensors[tensor_];
  write_at(descriptor_, piece_, data_ + tensor.offset + offset_, path_);
  digest_.add(piece_);
  if (offset_ + piece_.size() == tensor.bytes) digests_[tensor_] = digest_.finish();
}

void DirectorySink::finish() {
  // A tensor without elements has a digest, too.
  for (size_t i = 0; i < digests_.size(); ++i) {
    if (image_.tensors[i].bytes == 0) digests_[i] = digest_.finish();
  }
  const std::string header = header_text(image_, digests_);
  write_at(descriptor_, std::as_bytes(std::span(header)), 0, path_);
  if (::fsync(descriptor_) != 0) throw OutputError(path_ + ": cannot be written (" + std::strerror(errno) + ")");
}

}  // namespace ref
