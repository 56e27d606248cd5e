// SPDX-License-Identifier: Apache-2.0
// Packs into one block of memory, on 2 MiB pages where the system grants them.
#pragma once

#include <memory>

#include "omni/omni.hpp"
#include "reference/pack/image.h"
#include "reference/pack/sink.h"

namespace ref {

// What the machine, or the cgroup of this process, has left, in bytes.
uint64_t available_memory();

class MemorySink : public Sink {
 public:
  // Throws Error, with both figures, when the image is larger than what is available.
  MemorySink(const Image& image, const std::string& name);
  std::span<std::byte> acquire(size_t tensor, uint64_t offset, size_t bytes) override;
  void commit() override {}
  std::shared_ptr<const omni::PackedMemory> memory() const { return memory_; }

 private:
  const Image& image_;
  std::shared_ptr<omni::PackedMemory> memory_;
};

// A block of `bytes`, checked against what is available. `name` begins the error line.
std::shared_ptr<omni::PackedMemory> allocate_weights(uint64_t bytes, const std::string& name);

}  // namespace ref
