// SPDX-License-Identifier: Apache-2.0
// The system calls behind omni_packed_alloc(), replaceable so that tests can refuse each of them.
#pragma once

#include <sys/types.h>

#include <cstddef>

namespace okl {

struct MemoryCalls {
  void* (*mmap)(void* address, size_t bytes, int protection, int flags, int fd, off_t offset);
  int (*munmap)(void* address, size_t bytes);
  int (*madvise)(void* address, size_t bytes, int advice);
  // Why the system would accept MADV_HUGEPAGE and yet give no 2 MiB page; nullptr when it may give some.
  const char* (*transparent_pages_off)();
};

const MemoryCalls& system_memory_calls();
// nullptr restores the system's. Not thread-safe: for tests, while no other thread allocates.
void set_memory_calls(const MemoryCalls* calls);

}  // namespace okl
