// SPDX-License-Identifier: Apache-2.0
// Memory between two inaccessible pages: one byte read or written outside of it is a segmentation fault, also from generated code,
// which AddressSanitizer cannot see.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <new>
#include <span>
#include <utility>

namespace okl::test {

// Which guard page the data touches. Run a test with both: the other side has up to a page of slack.
enum class Flush { kFront, kBack };

class GuardedBuffer {
 public:
  // `bytes` of data. With kBack and an alignment that does not divide `bytes`, the data ends up to alignment - 1 bytes before the
  // guard; those bytes and the rest of the slack are canaries that intact() checks. Slack and data start as `fill`.
  explicit GuardedBuffer(size_t bytes, Flush flush = Flush::kBack, size_t alignment = 1, uint8_t fill = 0xA5)
      : bytes_(bytes), fill_(fill) {
    const size_t page = static_cast<size_t>(sysconf(_SC_PAGESIZE));
    inner_bytes_ = (bytes + page - 1) / page * page;
    if (inner_bytes_ == 0) inner_bytes_ = page;  // an empty operand still gets an address
    mapped_bytes_ = inner_bytes_ + 2 * page;
    void* mapped = mmap(nullptr, mapped_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    mapped_ = static_cast<uint8_t*>(mapped);
    inner_ = mapped_ + page;
    if (mprotect(inner_, inner_bytes_, PROT_READ | PROT_WRITE) != 0) throw std::bad_alloc();
    std::memset(inner_, fill, inner_bytes_);
    data_ = flush == Flush::kFront ? inner_ : inner_ + (inner_bytes_ - bytes) / alignment * alignment;
  }
  GuardedBuffer(GuardedBuffer&& other) noexcept { swap(other); }
  GuardedBuffer& operator=(GuardedBuffer&& other) noexcept {
    swap(other);
    return *this;
  }
  GuardedBuffer(const GuardedBuffer&) = delete;
  GuardedBuffer& operator=(const GuardedBuffer&) = delete;
  ~GuardedBuffer() {
    if (mapped_ != nullptr) munmap(mapped_, mapped_bytes_);
  }

  // A copy of `source` (a span of trivially copyable elements) between guards.
  template <typename T>
  static GuardedBuffer copy_of(std::span<const T> source, Flush flush = Flush::kBack) {
    GuardedBuffer buffer(source.size_bytes(), flush, alignof(T));
    if (!source.empty()) std::memcpy(buffer.data(), source.data(), source.size_bytes());
    return buffer;
  }

  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }
  size_t size() const { return bytes_; }
  template <typename T>
  T* as() {
    return reinterpret_cast<T*>(data_);
  }
  template <typename T>
  const T* as() const {
    return reinterpret_cast<const T*>(data_);
  }
  template <typename T>
  std::span<T> span() {
    return {as<T>(), bytes_ / sizeof(T)};
  }

  // From now on a write faults.
  void make_read_only() { (void)mprotect(inner_, inner_bytes_, PROT_READ); }

  // Whether the slack around the data still holds the fill byte.
  bool intact() const {
    for (const uint8_t* p = inner_; p != inner_ + inner_bytes_; ++p) {
      if ((p < data_ || p >= data_ + bytes_) && *p != fill_) return false;
    }
    return true;
  }

 private:
  void swap(GuardedBuffer& other) noexcept {
    std::swap(mapped_, other.mapped_);
    std::swap(inner_, other.inner_);
    std::swap(data_, other.data_);
    std::swap(bytes_, other.bytes_);
    std::swap(inner_bytes_, other.inner_bytes_);
    std::swap(mapped_bytes_, other.mapped_bytes_);
    std::swap(fill_, other.fill_);
  }

  uint8_t* mapped_ = nullptr;
  uint8_t* inner_ = nullptr;
  uint8_t* data_ = nullptr;
  size_t bytes_ = 0, inner_bytes_ = 0, mapped_bytes_ = 0;
  uint8_t fill_ = 0;
};

}  // namespace okl::test
