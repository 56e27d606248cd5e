// SPDX-License-Identifier: Apache-2.0
// A zeroed block of memory on 64 bytes, in large pages where they are granted. A page becomes resident when it is first touched.
#pragma once

#include <cstddef>
#include <utility>

#include "omni/omni.h"
#include "reference/core/check.h"

namespace ref {

class Memory {
 public:
  Memory() = default;
  explicit Memory(size_t bytes, uint32_t flags = OMNI_ALLOC_DEFAULT) {
    check(omni_packed_alloc(bytes == 0 ? 1 : bytes, flags, &block_), "memory");
  }
  Memory(Memory&& other) noexcept : block_(std::exchange(other.block_, empty())) {}
  Memory& operator=(Memory&& other) noexcept {
    if (this != &other) {
      omni_packed_free(&block_);
      block_ = std::exchange(other.block_, empty());
    }
    return *this;
  }
  ~Memory() { omni_packed_free(&block_); }

  std::byte* data() const { return static_cast<std::byte*>(block_.data); }
  size_t size() const { return block_.bytes; }

 private:
  static omni_packed_memory empty() {
    omni_packed_memory none = {};
    none.size = sizeof none;
    return none;
  }

  omni_packed_memory block_ = empty();
};

// Where parts of a block begin: each on 64 bytes.
constexpr size_t aligned64(size_t bytes) { return (bytes + 63) / 64 * 64; }

}  // namespace ref
