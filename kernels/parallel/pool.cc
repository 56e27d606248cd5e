// SPDX-License-Identifier: Apache-2.0
#include "kernels/parallel/pool.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>

#include "kernels/parallel/futex.h"
#include "kernels/parallel/ticks.h"

namespace okl {
namespace {

// Regions of a decoder follow each other within a few microseconds; a spinner that waits longer takes the core that its partner, or
// another program, needs.
constexpr uint64_t kSpinMicroseconds = 50;
// A wake-up costs the caller 7 us and the worker runs 20 to 26 us later: below 40 us of work it loses.
constexpr uint64_t kWakeMicroseconds = 40;
// About 4 blocks for each thread are best and 64 are clearly worse; longer index ranges are cut into this many.
constexpr uint32_t kMostBlocksPerThread = 8;

constexpr uint32_t kMostFutileWakes = 6;

constexpr uint32_t kJoinSleeps = 1U << 31;

constexpr uint32_t kFieldBits = 12;
constexpr uint64_t kFieldMask = (uint64_t{1} << kFieldBits) - 1;
constexpr uint64_t kFrontStep = 1;
constexpr uint64_t kBackStep = uint64_t{1} << kFieldBits;
static_assert(2 * kMostBlocksPerThread + 1 <= kFieldMask);

uint32_t front_of(uint64_t word) { return word & kFieldMask; }
uint32_t back_of(uint64_t word) { return (word >> kFieldBits) & kFieldMask; }

// Children of fork() count one more than their parent, which is how a pool notices that its workers are not there.
std::atomic<uint64_t> fork_count = 0;
[[gnu::constructor]] void register_fork_handler() {
  pthread_atfork(nullptr, nullptr, [] { fork_count.fetch_add(1, std::memory_order_relaxed); });
}

}  // namespace

Pool::Pool(uint32_t threads, uint32_t cap, CurrentCpu current_cpu)
    : threads_(threads),
      current_cpu_(current_cpu),
      spin_ticks_(kSpinMicroseconds * ticks_per_microsecond()),
      worth_a_wake_ticks_(kWakeMicroseconds * ticks_per_microsecond()),
      workers_(std::min(threads, cap) - 1),
      lanes_((std::min(threads, cap) + 1) / 2),
      owner_(fork_count.load(std::memory_order_relaxed) << 1),
      staying_(ticks_per_microsecond()) {
  start_workers(static_cast<uint32_t>(workers_.size()));
}

Pool::~Pool() {
  if (owner_.load(std::memory_order_relaxed) >> 1 != fork_count.load(std::memory_order_relaxed)) return;
  stop_.store(true, std::memory_order_relaxed);
  signal_.fetch_add(1, std::memory_order_seq_cst);
  futex_wake(&signal_, INT32_MAX);
  for (uint32_t i = 0; i < started_; ++i) pthread_join(workers_[i].thread, nullptr);
}

void Pool::start_workers(uint32_t wanted) {
  // The host's signal handlers are for the host's threads. Faults of the worker itself must stay deliverable.
  sigset_t blocked;
  sigfillset(&blocked);
  for (const int signal : {SIGILL, SIGSEGV, SIGBUS, SIGFPE, SIGTRAP, SIGSYS, SIGABRT, SIGPROF}) sigdelset(&blocked, signal);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setsigmask_np(&attributes, &blocked);
  started_ = 0;
  while (started_ < wanted) {
    Worker& worker = workers_[started_];
    worker = {.pool = this, .index = started_ + 1, .seen = signal_.load(std::memory_order_relaxed), .thread = {}};
    if (pthread_create(&worker.thread, &attributes, worker_main, &worker) != 0) break;
    ++started_;
  }
  pthread_attr_destroy(&attributes);
}

void* Pool::worker_main(void* argument) {
  const Worker& worker = *static_cast<Worker*>(argument);
  std::array<char, 16> name = {};
  std::snprintf(name.data(), name.size(), "omni-%u", worker.index);
  pthread_setname_np(pthread_self(), name.data());
  worker.pool->work(worker.index, worker.seen);
  return nullptr;
}

void Pool::work(uint32_t index, uint32_t seen) {
  for (;;) {
    seen = next_signal(seen);
    if (stop_.load(std::memory_order_relaxed)) return;
    uint32_t block = 0;
    while (!on_callers_cpu() && claim(index, &block)) {
      run_block(block);
      if ((done_.fetch_add(1, std::memory_order_acq_rel) & kJoinSleeps) != 0) futex_wake(&done_, 1);
    }
  }
}

// Returns when signal_ is no longer `seen`, or after a wake-up, which may mean that the same region has become worth it.
uint32_t Pool::next_signal(uint32_t seen) {
  const uint64_t start = ticks();
  do {
    const uint32_t now = signal_.load(std::memory_order_acquire);
    if (now != seen) return now;
    if (on_callers_cpu()) break;
    spin_hint();
  } while (ticks() - start < spin_ticks_);
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  futex_wait(&signal_, seen);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
  if (on_callers_cpu()) stay_until_moved();
  return signal_.load(std::memory_order_acquire);
}

// A woken worker starts where it slept when the kernel takes no other processor for idle, and a virtual machine does not take one
// that has halted. The balancer of an idle processor moves threads that are runnable: one that went back to sleep at once would be
// woken beside the caller for ever.
void Pool::stay_until_moved() {
  const uint64_t start = ticks();
  if (!staying_.begin(start)) return;
  uint64_t now = start;
  bool here = true;
  while (here && now - start < staying_.longest_ticks() && !stop_.load(std::memory_order_relaxed)) {
    spin_hint();
    here = on_callers_cpu();
    now = ticks();
  }
  staying_.end(now, !here);
}

void Pool::publish_cpu() {
  const int cpu = current_cpu_();
  if (cpu != callers_cpu_.load(std::memory_order_relaxed)) callers_cpu_.store(cpu, std::memory_order_relaxed);
}

// A worker that runs where the caller ran is keeping the caller from running.
bool Pool::on_callers_cpu() const { return callers_cpu_.load(std::memory_order_relaxed) == current_cpu_(); }

void Pool::parallel_for(int64_t count, omni_task task, void* context) noexcept {
  if (count <= 1 || workers_.empty() || !enter()) {
    for (int64_t i = 0; i < count; ++i) task(context, i);
    return;
  }
  const uint32_t blocks = open_region(count, task, context);
  bool woken = wake(costs_.estimate(task, count));
  const uint64_t start = ticks();
  uint64_t elapsed = 0;
  uint32_t own = 0;
  for (uint32_t block = 0; claim(0, &block);) {
    run_block(block);
    ++own;
    elapsed = ticks() - start;
    publish_cpu();
    const uint32_t finished = own + done_.load(std::memory_order_relaxed);
    if (!woken) woken = wake(elapsed / own * (blocks - finished));
  }
  if (own > 0) costs_.record(task, count, elapsed / own * blocks);
  join(blocks - own);
  judge_wake(blocks - own);
  leave();
}

bool Pool::enter() {
  const uint64_t forks = fork_count.load(std::memory_order_relaxed);
  uint64_t state = forks << 1;
  if (owner_.compare_exchange_strong(state, state | 1, std::memory_order_acquire)) return true;
  if (state >> 1 == forks) return false;
  // The first region of a forked child. Whatever the parent was doing, no region and no worker of it exists here.
  if (!owner_.compare_exchange_strong(state, (forks << 1) | 1, std::memory_order_acquire)) return false;
  sleepers_.store(0, std::memory_order_relaxed);
  staying_.reset();
  start_workers(static_cast<uint32_t>(workers_.size()));
  return true;
}

void Pool::leave() { owner_.fetch_sub(1, std::memory_order_release); }

// Publishes a region and returns its number of blocks. No claim can succeed before the lanes open: all of them are empty.
uint32_t Pool::open_region(int64_t count, omni_task task, void* context) {
  const uint32_t threads = running();
  const int64_t most = int64_t{threads} * kMostBlocksPerThread;
  const int64_t grain = 1 + (count - 1) / most;
  const auto blocks = static_cast<uint32_t>(1 + (count - 1) / grain);
  region_ = {.task = task, .context = context, .count = count, .grain = grain};
  done_.store(0, std::memory_order_relaxed);
  woke_ = false;
  publish_cpu();
  ++epoch_;
  uint32_t first = 0;
  for (uint32_t i = 0; i < lanes_.size(); ++i) {
    const uint32_t end = blocks * std::min(2 * (i + 1), threads) / threads;
    lanes_[i].first = first;
    lanes_[i].word.store(epoch_ << (2 * kFieldBits) | (end - first) * kBackStep, std::memory_order_release);
    first = end;
  }
  signal_.store(static_cast<uint32_t>(epoch_), std::memory_order_seq_cst);
  return blocks;
}

// The next block of the thread's own lane, then of the lanes after it. Even threads go up, odd ones down, wherever they are.
bool Pool::claim(uint32_t thread, uint32_t* block) {
  const size_t lanes = lanes_.size();
  const bool up = thread % 2 == 0;
  for (size_t i = 0; i < lanes; ++i) {
    Lane& lane = lanes_[(thread / 2 + i) % lanes];
    uint64_t word = lane.word.load(std::memory_order_acquire);
    while (front_of(word) < back_of(word)) {
      const uint64_t next = up ? word + kFrontStep : word - kBackStep;
      if (lane.word.compare_exchange_weak(word, next, std::memory_order_acq_rel, std::memory_order_acquire)) {
        *block = lane.first + (up ? front_of(word) : back_of(next));
        return true;
      }
    }
  }
  return false;
}

void Pool::run_block(uint32_t block) const {
  const int64_t begin = block * region_.grain;
  const int64_t end = begin + std::min(region_.grain, region_.count - begin);
  for (int64_t i = begin; i < end; ++i) region_.task(region_.context, i);
}

// Wakes as many sleepers as the work pays for. False: that is none so far, so ask again when more is known.
bool Pool::wake(uint64_t work_ticks) {
  const uint64_t asleep = sleepers_.load(std::memory_order_seq_cst);
  const uint64_t wanted = std::min(asleep, work_ticks / worth_a_wake_ticks_);
  if (wanted == 0) return false;
  if (wakes_to_skip_ > 0) {
    --wakes_to_skip_;
    return true;
  }
  woke_ = true;
  futex_wake(&signal_, static_cast<uint32_t>(wanted));
  return true;
}

// Workers that are woken and get no processor of their own cost the caller its turn on a busy machine: each wake-up is a chance for
// the scheduler to run something else. Every futile one doubles the pause, up to 64 regions, and the first help ends it.
void Pool::judge_wake(uint32_t blocks_of_workers) {
  if (blocks_of_workers > 0) {
    futile_wakes_ = wakes_to_skip_ = 0;
  } else if (woke_) {
    futile_wakes_ = std::min(futile_wakes_ + 1, kMostFutileWakes);
    wakes_to_skip_ = 1U << futile_wakes_;
  }
}

// Every block has been claimed: waits for those that workers still run.
void Pool::join(uint32_t blocks_of_workers) {
  const uint64_t start = ticks();
  uint32_t done = done_.load(std::memory_order_acquire);
  while (done != blocks_of_workers && ticks() - start < spin_ticks_) {
    spin_hint();
    done = done_.load(std::memory_order_acquire);
  }
  while ((done & ~kJoinSleeps) != blocks_of_workers) {
    const uint32_t asleep = done | kJoinSleeps;
    if (done == asleep || done_.compare_exchange_weak(done, asleep, std::memory_order_relaxed)) futex_wait(&done_, asleep);
    done = done_.load(std::memory_order_acquire);
  }
}

}  // namespace okl
