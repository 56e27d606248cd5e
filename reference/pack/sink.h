// SPDX-License-Identifier: Apache-2.0
// Where packed bytes go: piece by piece, each tensor from its beginning to its end.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ref {

class Sink {
 public:
  virtual ~Sink() = default;
  // Memory for the next `bytes` of a tensor of the image, 64-byte aligned, until commit().
  virtual std::span<std::byte> acquire(size_t tensor, uint64_t offset, size_t bytes) = 0;
  // They are filled.
  virtual void commit() = 0;
};

}  // namespace ref
