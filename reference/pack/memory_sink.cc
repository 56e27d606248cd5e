// SPDX-License-Identifier: Apache-2.0
#include "reference/pack/memory_sink.h"

#include <algorithm>
#include <fstream>
#include <string>

#include "reference/core/error.h"

namespace ref {
namespace {

// A number that a file begins with; `otherwise` when there is none ("max", or no such file).
uint64_t read_number(const char* path, uint64_t otherwise) {
  std::ifstream file(path);
  uint64_t value = 0;
  return file >> value ? value : otherwise;
}

uint64_t available_in_machine() {
  std::ifstream file("/proc/meminfo");
  std::string key;
  uint64_t kib = 0;
  for (std::string unit; file >> key >> kib; std::getline(file, unit)) {
    if (key == "MemAvailable:") return kib * 1024;
  }
  return UINT64_MAX;
}

}  // namespace

uint64_t available_memory() {
  const uint64_t limit = read_number("/sys/fs/cgroup/memory.max", UINT64_MAX);
  const uint64_t used = read_number("/sys/fs/cgroup/memory.current", 0);
  const uint64_t left = limit == UINT64_MAX ? limit : limit - std::min(limit, used);
  return std::min(available_in_machine(), left);
}

std::shared_ptr<omni::PackedMemory> allocate_weights(uint64_t bytes, const std::string& name) {
  if (const uint64_t available = available_memory(); bytes > available) {
    throw Error(name + ": its packed weights need " + std::to_string(bytes >> 20) + " MiB, this machine has " +
                std::to_string(available >> 20) + " MiB available");
  }
  try {
    return std::make_shared<omni::PackedMemory>(std::max<uint64_t>(bytes, 1));
  } catch (const omni::Error& error) {
    throw Error(name + ": " + error.what());
  }
}

MemorySink::MemorySink(const Image& image, const std::string& name) : image_(image), memory_(allocate_weights(image.bytes, name)) {}

std::span<std::byte> MemorySink::acquire(size_t tensor, uint64_t offset, size_t bytes) {
  return memory_->bytes().subspan(image_.tensors[tensor].offset + offset, bytes);
}

}  // namespace ref
