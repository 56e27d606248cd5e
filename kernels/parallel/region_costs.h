// SPDX-License-Identifier: Apache-2.0
// What regions like this one took lately: the pool's ground for waking sleepers before the work has begun.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "omni/parallel.h"

namespace okl {

// A direct-mapped table from (task, count) to the ticks that one thread would need. Different matrices share an entry when they run
// the same task on as many blocks; that misjudges a wake-up, never a result. Not thread-safe: the running region owns it.
class RegionCosts {
 public:
  uint64_t estimate(omni_task task, int64_t count) const {
    const Entry& entry = entries_[slot(task, count)];
    return entry.task == task && entry.count == count ? entry.ticks : 0;
  }

  // A shorter time is believed at once, a longer one by a quarter: interruptions only ever add.
  void record(omni_task task, int64_t count, uint64_t ticks) {
    Entry& entry = entries_[slot(task, count)];
    if (entry.task != task || entry.count != count) {
      entry = {task, count, ticks};
    } else if (ticks < entry.ticks) {
      entry.ticks = ticks;
    } else {
      entry.ticks += (ticks - entry.ticks) / 4;
    }
  }

 private:
  struct Entry {
    omni_task task = nullptr;
    int64_t count = 0;
    uint64_t ticks = 0;
  };

  static size_t slot(omni_task task, int64_t count) {
    const uint64_t key = reinterpret_cast<uintptr_t>(task) ^ (static_cast<uint64_t>(count) << 20);
    return (key * 0x9E3779B97F4A7C15U) >> 58;
  }

  std::array<Entry, 64> entries_;
};

}  // namespace okl
