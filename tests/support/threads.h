// SPDX-License-Identifier: Apache-2.0
// parallel_for callbacks for tests: results must not depend on which of them runs.
#pragma once

#include <atomic>
#include <cstdint>
#include <thread>
#include <vector>

#include "omni/parallel.h"

namespace okl::test {

// On the calling thread, last index first.
inline omni_parallel backwards(uint32_t threads) {
  return {sizeof(omni_parallel), threads, nullptr, [](void*, int64_t count, omni_task task, void* context) {
            for (int64_t i = count - 1; i >= 0; --i) task(context, i);
          }};
}

// Fresh threads for every region, claiming one index at a time. `threads` must outlive its use.
inline omni_parallel fresh_threads(const uint32_t* threads) {
  return {sizeof(omni_parallel), *threads, const_cast<uint32_t*>(threads),
          [](void* opaque, int64_t count, omni_task task, void* context) {
            std::atomic<int64_t> next{0};
            std::vector<std::thread> workers;
            for (uint32_t i = 0; i < *static_cast<const uint32_t*>(opaque); ++i) {
              workers.emplace_back([&] {
                for (int64_t index = next++; index < count; index = next++) task(context, index);
              });
            }
            for (std::thread& worker : workers) worker.join();
          }};
}

}  // namespace okl::test
