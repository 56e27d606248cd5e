// SPDX-License-Identifier: Apache-2.0
// The default fork-join pool. docs/threads.md says what it does and why, with the measurements.
#pragma once

#include <pthread.h>
#include <sched.h>

#include <atomic>
#include <cstdint>
#include <vector>

#include "kernels/parallel/region_costs.h"
#include "kernels/parallel/staying.h"
#include "omni/parallel.h"

namespace okl {

// The processor that the calling thread runs on.
using CurrentCpu = int (*)();

class Pool {
 public:
  // `threads` >= 1, the caller of parallel_for included; no more than `cap` of them run. Starts min(threads, cap) - 1 workers, or
  // as many as the system allows: running() tells. `current_cpu` is for tests. Throws std::bad_alloc.
  Pool(uint32_t threads, uint32_t cap, CurrentCpu current_cpu = sched_getcpu);
  // No region may be running.
  ~Pool();
  Pool(const Pool&) = delete;
  Pool& operator=(const Pool&) = delete;

  uint32_t threads() const { return threads_; }
  uint32_t running() const { return 1 + started_; }

  // task(context, i) once for each i in [0, count). A caller that finds a region running, from another thread or from inside a
  // task, runs its own alone. In a forked child the first call starts new workers. Allocates nothing.
  void parallel_for(int64_t count, omni_task task, void* context) noexcept;

 private:
  struct Region {
    omni_task task = nullptr;
    void* context = nullptr;
    int64_t count = 0;
    int64_t grain = 1;  // indices in a block
  };

  // The blocks that two neighbouring threads share, as [epoch:40][back:12][front:12]: one claims front++, the other --back, both by
  // compare-exchange, until they meet. The epoch makes a claim fail whose word was read in an earlier region.
  struct alignas(64) Lane {
    std::atomic<uint64_t> word = 0;
    uint32_t first = 0;  // block number of front 0; written and read as region_ is
  };

  struct Worker {
    Pool* pool = nullptr;
    uint32_t index = 0;  // the caller is 0
    uint32_t seen = 0;   // signal_ when the worker was started
    pthread_t thread = {};
  };

  bool enter();
  void leave();
  void start_workers(uint32_t wanted);
  static void* worker_main(void* worker);
  void work(uint32_t index, uint32_t seen);
  uint32_t next_signal(uint32_t seen);
  void stay_until_moved();
  bool on_callers_cpu() const;
  void publish_cpu();
  uint32_t open_region(int64_t count, omni_task task, void* context);
  bool claim(uint32_t thread, uint32_t* block);
  void run_block(uint32_t block) const;
  bool wake(uint64_t work_ticks);
  void join(uint32_t blocks_of_workers);
  void judge_wake(uint32_t blocks_of_workers);

  const uint32_t threads_;
  const CurrentCpu current_cpu_;
  const uint64_t spin_ticks_;
  const uint64_t worth_a_wake_ticks_;
  uint32_t started_ = 0;
  std::vector<Worker> workers_;
  std::vector<Lane> lanes_;
  uint64_t epoch_ = 0;  // of the running region's owner
  RegionCosts costs_;   // likewise
  bool woke_ = false;   // likewise, and the next two
  uint32_t futile_wakes_ = 0;
  uint32_t wakes_to_skip_ = 0;
  Region region_;  // written before the lanes open, read after a successful claim

  alignas(64) std::atomic<uint64_t> owner_;       // [fork count][a region runs]
  alignas(64) std::atomic<uint32_t> signal_ = 0;  // low bits of the epoch; workers wait for it to change
  std::atomic<uint32_t> sleepers_ = 0;
  std::atomic<int> callers_cpu_ = -1;
  std::atomic<bool> stop_ = false;
  Staying staying_;
  alignas(64) std::atomic<uint32_t> done_ = 0;  // blocks that workers have finished, and kJoinSleeps
};

}  // namespace okl
