// SPDX-License-Identifier: Apache-2.0
// The pool itself, with as many running threads as asked for, whatever the machine has.
#include <gtest/gtest.h>
#include <sched.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <memory>
#include <random>
#include <string_view>
#include <thread>
#include <vector>

#include "kernels/parallel/pool.h"

namespace okl {
namespace {

constexpr uint32_t kNoCap = 1024;

struct Counts {
  explicit Counts(int64_t count) : times(static_cast<size_t>(count)) {}
  std::vector<std::atomic<uint32_t>> times;
  static void task(void* context, int64_t index) {
    static_cast<Counts*>(context)->times.at(static_cast<size_t>(index)).fetch_add(1, std::memory_order_relaxed);
  }
  bool each_is(uint32_t expected) const {
    for (const auto& value : times) {
      if (value.load(std::memory_order_relaxed) != expected) return false;
    }
    return true;
  }
};

bool runs_each_index_once(Pool& pool, int64_t count) {
  Counts counts(count);
  pool.parallel_for(count, Counts::task, &counts);
  return counts.each_is(1);
}

TEST(Pool, EveryIndexOnceForEveryCount) {
  for (const uint32_t threads : {1U, 2U, 3U, 4U, 7U}) {
    Pool pool(threads, kNoCap);
    ASSERT_EQ(pool.running(), threads);
    for (int64_t count = 0; count <= 1000; ++count) ASSERT_TRUE(runs_each_index_once(pool, count)) << threads << " " << count;
  }
}

// AC-038: more threads than blocks.
TEST(Pool, EveryIndexOnceForEveryThreadCount) {
  for (uint32_t threads = 1; threads <= 130; ++threads) {
    Pool pool(threads, kNoCap);
    ASSERT_EQ(pool.threads(), threads);
    for (const int64_t count : {0, 1, 2, 3, 4, 16, 63, 64, 65, 129, 130, 131, 520, 1000}) {
      ASSERT_TRUE(runs_each_index_once(pool, count)) << threads << " " << count;
    }
  }
}

TEST(Pool, NegativeCountIsNothing) {
  Pool pool(2, kNoCap);
  pool.parallel_for(
      -5, [](void*, int64_t) { FAIL(); }, nullptr);
}

// Many regions back to back, so that workers come late to most of them: a stale claim would run an index of another region.
TEST(Pool, ManyShortRegions) {
  for (const uint32_t threads : {2U, 3U, 5U}) {
    Pool pool(threads, kNoCap);
    std::mt19937 random(threads);
    uint64_t expected = 0;
    std::atomic<uint64_t> sum = 0;
    struct Context {
      std::atomic<uint64_t>* sum;
      int64_t count;
    };
    for (int i = 0; i < 20000; ++i) {
      Context context = {&sum, std::uniform_int_distribution<int64_t>(1, 40)(random)};
      expected += static_cast<uint64_t>(context.count * (context.count + 1) / 2);
      pool.parallel_for(
          context.count,
          [](void* pointer, int64_t index) {
            const auto* own = static_cast<Context*>(pointer);
            ASSERT_LT(index, own->count);
            own->sum->fetch_add(static_cast<uint64_t>(index) + 1, std::memory_order_relaxed);
          },
          &context);
      ASSERT_EQ(sum.load(), expected) << "region " << i;
      if (i % 1000 == 0) std::this_thread::sleep_for(std::chrono::microseconds(200));  // let the workers fall asleep
    }
  }
}

// What a task writes with plain stores is the caller's to read after the region, and what the caller wrote is the task's (TSan).
TEST(Pool, RegionsOrderMemory) {
  Pool pool(3, kNoCap);
  struct Data {
    std::vector<uint64_t> in, out;
  } data = {std::vector<uint64_t>(100), std::vector<uint64_t>(100)};
  for (uint64_t round = 1; round <= 2000; ++round) {
    for (size_t i = 0; i < 100; ++i) data.in[i] = round * i;
    pool.parallel_for(
        100,
        [](void* pointer, int64_t index) {
          auto* own = static_cast<Data*>(pointer);
          own->out[static_cast<size_t>(index)] = own->in[static_cast<size_t>(index)] + 1;
        },
        &data);
    for (size_t i = 0; i < 100; ++i) ASSERT_EQ(data.out[i], round * i + 1);
  }
}

void busy_wait(std::chrono::microseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
  }
}

// The processors that this thread may run on, narrowed for the life of the object.
class Affinity {
 public:
  Affinity() { sched_getaffinity(0, sizeof before_, &before_); }
  ~Affinity() { sched_setaffinity(0, sizeof before_, &before_); }
  int first() const {
    for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
      if (CPU_ISSET(cpu, &before_)) return cpu;
    }
    return -1;
  }
  int count() const { return CPU_COUNT(&before_); }
  void only(int cpu) const {
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
  }
  void all_but(int cpu) const {
    cpu_set_t set = before_;
    CPU_CLR(cpu, &set);
    sched_setaffinity(0, sizeof set, &set);
  }

 private:
  cpu_set_t before_ = {};
};

struct ByWorkers {
  std::thread::id caller = std::this_thread::get_id();
  std::atomic<int> blocks = 0;
  static void task(void* context, int64_t) {
    busy_wait(std::chrono::microseconds(200));
    auto* own = static_cast<ByWorkers*>(context);
    if (std::this_thread::get_id() != own->caller) ++own->blocks;
  }
};

// Workers inherit the affinity of the thread that makes the pool.
TEST(Pool, WorkersElsewhereTakePart) {
  const Affinity affinity;
  if (affinity.count() < 2) GTEST_SKIP() << "one processor";
  affinity.all_but(affinity.first());
  Pool pool(3, kNoCap);
  affinity.only(affinity.first());
  ByWorkers by_workers;
  // Beside busy programs a worker may be late for one region, but no scheduler starves it for all.
  for (int i = 0; i < 2000 && by_workers.blocks == 0; ++i) pool.parallel_for(16, ByWorkers::task, &by_workers);
  EXPECT_GT(by_workers.blocks, 0);
}

TEST(Pool, WorkersOnTheCallersProcessorLeaveItToTheCaller) {
  const Affinity affinity;
  affinity.only(affinity.first());
  Pool pool(3, kNoCap);
  ByWorkers by_workers;
  for (int i = 0; i < 50; ++i) pool.parallel_for(16, ByWorkers::task, &by_workers);
  EXPECT_EQ(by_workers.blocks, 0);
}

// A scheduler that leaves threads where they sleep, and moves one that has stayed runnable: after ten thousand looks at the
// processor. A worker that sleeps at once looks a few times for each wake-up, some hundred times in this test.
std::atomic<bool> caller_looked = false;
int cpu_of_idle_machine() {
  static const thread_local bool worker = [] {
    std::array<char, 16> name = {};
    pthread_getname_np(pthread_self(), name.data(), name.size());
    return std::string_view(name.data()).starts_with("omni-");
  }();
  if (!worker) {
    caller_looked = true;
    return 0;
  }
  static thread_local int looks = 0;
  if (caller_looked) ++looks;  // until then a worker looks while it spins, wherever it is
  return looks > 10'000 ? 1 : 0;
}

TEST(Pool, WorkerWokenOnTheCallersProcessorStaysUntilItIsMoved) {
  caller_looked = false;
  Pool pool(2, kNoCap, cpu_of_idle_machine);
  ByWorkers by_workers;
  for (int i = 0; i < 50; ++i) pool.parallel_for(16, ByWorkers::task, &by_workers);
  EXPECT_GT(by_workers.blocks, 0);
}

// A processor that never becomes idle: the caller keeps nearly all of its own.
TEST(Pool, StaysAreShortAndRare) {
  constexpr uint64_t second = 1'000'000;
  Staying staying(1);
  ASSERT_EQ(staying.longest_ticks(), kLongestStayMicroseconds);
  uint64_t stayed = 0;
  int stays = 0;
  for (uint64_t now = 1; now < 60 * second; now += 100) {
    if (!staying.begin(now)) continue;
    EXPECT_FALSE(staying.begin(now)) << "one worker at a time";
    now += staying.longest_ticks();
    stayed += staying.longest_ticks();
    staying.end(now, false);
    ++stays;
    if (now < second) {
      EXPECT_LE(stays, 3);
    }
  }
  EXPECT_LE(stayed, 60 * second / 100);
  EXPECT_GE(stays, 20) << "a processor that becomes idle later is found within seconds";
}

TEST(Pool, AStayThatHelpedShortensTheNextPause) {
  Staying staying(1);
  uint64_t now = 1;
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(staying.begin(now));
    now += staying.longest_ticks();
    staying.end(now, i == 9);
    if (i < 9) now += kLongestPauseInStays * staying.longest_ticks();
  }
  EXPECT_FALSE(staying.begin(now + kFirstPauseInStays * staying.longest_ticks() - 1));
  EXPECT_TRUE(staying.begin(now + kFirstPauseInStays * staying.longest_ticks()));
}

// Two threads: the caller goes up from the front and the worker down from the back, each over one contiguous range.
TEST(Pool, TwoThreadsMeetInTheMiddle) {
  Pool pool(2, kNoCap);
  struct Context {
    std::thread::id caller = std::this_thread::get_id();
    std::vector<int64_t> up, down;
  };
  for (int round = 0; round < 200; ++round) {
    Context context;
    pool.parallel_for(
        8,
        [](void* pointer, int64_t index) {
          auto* own = static_cast<Context*>(pointer);
          busy_wait(std::chrono::microseconds(30));
          (std::this_thread::get_id() == own->caller ? own->up : own->down).push_back(index);
        },
        &context);
    for (size_t i = 0; i < context.up.size(); ++i) ASSERT_EQ(context.up[i], static_cast<int64_t>(i));
    for (size_t i = 0; i < context.down.size(); ++i) ASSERT_EQ(context.down[i], 7 - static_cast<int64_t>(i));
    ASSERT_EQ(context.up.size() + context.down.size(), 8U);
  }
}

TEST(Pool, HugeCountsAreCutWithoutOverflow) {
  Pool pool(3, kNoCap);
  struct Context {
    std::atomic<int64_t> calls = 0;
    std::atomic<bool> wrong = false;
  } context;
  constexpr int64_t count = 3'000'001;
  pool.parallel_for(
      count,
      [](void* pointer, int64_t index) {
        auto* own = static_cast<Context*>(pointer);
        own->calls.fetch_add(1, std::memory_order_relaxed);
        if (index < 0 || index >= count) own->wrong = true;
      },
      &context);
  EXPECT_EQ(context.calls, count);
  EXPECT_FALSE(context.wrong);
}

TEST(Pool, ConcurrentCallers) {
  Pool pool(3, kNoCap);
  std::vector<std::thread> callers;
  callers.reserve(4);
  std::atomic<int> wrong = 0;
  for (int t = 0; t < 4; ++t) {
    callers.emplace_back([&pool, &wrong] {
      for (int i = 0; i < 500; ++i) {
        if (!runs_each_index_once(pool, 1 + i % 50)) ++wrong;
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
}

TEST(Pool, RegionWithinATask) {
  Pool pool(3, kNoCap);
  struct Context {
    Pool* pool;
    std::atomic<int> calls = 0;
  } context = {&pool};
  for (int i = 0; i < 100; ++i) {
    context.calls = 0;
    pool.parallel_for(
        10,
        [](void* pointer, int64_t) {
          static_cast<Context*>(pointer)->pool->parallel_for(
              10, [](void* inner, int64_t) { ++static_cast<Context*>(inner)->calls; }, pointer);
        },
        &context);
    ASSERT_EQ(context.calls, 100);
  }
}

TEST(Pool, DestroyedRightAfterARegion) {
  for (int i = 0; i < 300; ++i) {
    auto pool = std::make_unique<Pool>(1 + i % 6, kNoCap);
    ASSERT_TRUE(runs_each_index_once(*pool, 24));
    pool.reset();
  }
}

TEST(Pool, DestroyedWhileWorkersSleep) {
  for (int i = 0; i < 20; ++i) {
    Pool pool(4, kNoCap);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

TEST(Pool, CapLimitsRunningThreadsOnly) {
  Pool pool(64, 2);
  EXPECT_EQ(pool.threads(), 64U);
  EXPECT_EQ(pool.running(), 2U);
  EXPECT_TRUE(runs_each_index_once(pool, 256));
  Pool alone(64, 1);
  EXPECT_EQ(alone.running(), 1U);
  EXPECT_TRUE(runs_each_index_once(alone, 256));
}

// AC-037: far more threads than processors make progress. Time is the test runner's limit, not a measure.
TEST(Pool, SixtyFourThreadsFinish) {
  Pool pool(64, kNoCap);
  std::atomic<int64_t> calls = 0;
  for (int i = 0; i < 300; ++i) {
    pool.parallel_for(
        256,
        [](void* pointer, int64_t) {
          busy_wait(std::chrono::microseconds(2));
          static_cast<std::atomic<int64_t>*>(pointer)->fetch_add(1);
        },
        &calls);
  }
  EXPECT_EQ(calls, 300 * 256);
}

}  // namespace
}  // namespace okl
