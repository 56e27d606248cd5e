// SPDX-License-Identifier: Apache-2.0
// AC-039: a pool that was used before fork() works in the child, and goes on working in the parent.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <iterator>
#include <memory>
#include <thread>

#include "kernels/parallel/pool.h"
#include "omni/parallel.h"

namespace okl {
namespace {

using RunRegion = std::function<void(int64_t count, omni_task task, void* context)>;

bool sums_up(const RunRegion& run) {
  std::atomic<int64_t> sum = 0;
  run(
      100,
      [](void* context, int64_t index) {
        const auto end = std::chrono::steady_clock::now() + std::chrono::microseconds(20);
        while (std::chrono::steady_clock::now() < end) {
        }
        static_cast<std::atomic<int64_t>*>(context)->fetch_add(index);
      },
      &sum);
  return sum == 4950;
}

// Exit status of a child that runs `body` under an alarm.
int in_child(const std::function<bool()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(5);
    _exit(body() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

int64_t threads_of_process() {
  const std::filesystem::directory_iterator tasks("/proc/self/task");
  return std::distance(begin(tasks), end(tasks));
}

class PoolFork : public ::testing::Test {
 protected:
  void SetUp() override {
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "ThreadSanitizer ends children of fork() that start threads (\"dup thread with used id\")";
#endif
  }
};

TEST_F(PoolFork, ChildStartsItsOwnWorkers) {
  Pool pool(3, 3);
  const RunRegion run = [&](int64_t count, omni_task task, void* context) { pool.parallel_for(count, task, context); };
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(sums_up(run));
    EXPECT_EQ(in_child([&] {
                if (!sums_up(run) || threads_of_process() != 3) return false;
                return WIFEXITED(in_child([&] { return sums_up(run); })) && sums_up(run);  // a grandchild, too
              }),
              0);
    ASSERT_TRUE(sums_up(run));
  }
}

TEST_F(PoolFork, ForkWhileAnotherThreadRunsARegion) {
  Pool pool(3, 3);
  const RunRegion run = [&](int64_t count, omni_task task, void* context) { pool.parallel_for(count, task, context); };
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    while (!stop) sums_up(run);
  });
  for (int i = 0; i < 20; ++i) EXPECT_EQ(in_child([&] { return sums_up(run) && sums_up(run); }), 0);
  stop = true;
  busy.join();
  EXPECT_TRUE(sums_up(run));
}

TEST_F(PoolFork, ChildMayDestroyTheParentsPool) {
  auto pool = std::make_unique<Pool>(3, 3);
  EXPECT_EQ(in_child([&] {
              pool.reset();
              return true;
            }),
            0);
  pool->parallel_for(
      10, [](void*, int64_t) {}, nullptr);
}

TEST_F(PoolFork, ProcessWidePool) {
  ASSERT_EQ(omni_set_num_threads(4), OMNI_OK);
  omni_parallel parallel = {};
  parallel.size = sizeof parallel;
  ASSERT_EQ(omni_default_parallel(&parallel), OMNI_OK) << omni_last_error();
  const RunRegion run = [&](int64_t count, omni_task task, void* context) {
    parallel.parallel_for(parallel.context, count, task, context);
  };
  ASSERT_TRUE(sums_up(run));
  EXPECT_EQ(in_child([&] { return sums_up(run) && omni_set_num_threads(2) == OMNI_OK && sums_up(run); }), 0);
  std::atomic<bool> stop = false;
  std::thread busy([&] {
    while (!stop) sums_up(run);
  });
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(in_child([&] { return sums_up(run) && omni_set_num_threads(2) == OMNI_OK && sums_up(run); }), 0);
  }
  stop = true;
  busy.join();
  EXPECT_TRUE(sums_up(run));
}

}  // namespace
}  // namespace okl
