// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <atomic>
#include <thread>
#include <vector>

#include "kernels/cpu/machine.h"
#include "omni/parallel.h"

namespace {

omni_parallel empty() {
  omni_parallel parallel = {};
  parallel.size = sizeof parallel;
  return parallel;
}

bool runs_each_index_once(const omni_parallel& parallel, int64_t count) {
  std::vector<std::atomic<int>> times(static_cast<size_t>(count));
  parallel.parallel_for(
      parallel.context, count,
      [](void* context, int64_t index) { ++(*static_cast<std::vector<std::atomic<int>>*>(context))[static_cast<size_t>(index)]; },
      &times);
  for (const std::atomic<int>& value : times) {
    if (value != 1) return false;
  }
  return true;
}

TEST(ParallelApi, PoolOfEverySize) {
  for (const uint32_t threads : {0U, 1U, 2U, 3U, 64U, 1024U}) {
    omni_pool* pool = nullptr;
    ASSERT_EQ(omni_pool_create(threads, &pool), OMNI_OK) << omni_last_error();
    omni_parallel parallel = empty();
    ASSERT_EQ(omni_pool_parallel(pool, &parallel), OMNI_OK);
    EXPECT_EQ(parallel.threads, threads == 0 ? okl::default_thread_count() : threads);
    EXPECT_EQ(parallel.size, sizeof parallel);
    for (const int64_t count : {0, 1, 7, 300}) EXPECT_TRUE(runs_each_index_once(parallel, count));
    omni_pool_destroy(pool);
  }
  omni_pool_destroy(nullptr);
}

TEST(ParallelApi, BadArgumentsTouchNothing) {
  auto* const untouched = reinterpret_cast<omni_pool*>(uintptr_t{64});
  omni_pool* pool = untouched;
  EXPECT_EQ(omni_pool_create(1, nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(omni_pool_create(1025, &pool), OMNI_ERR_RANGE);
  EXPECT_EQ(pool, untouched);
  omni_parallel parallel = empty();
  EXPECT_EQ(omni_pool_parallel(nullptr, &parallel), OMNI_ERR_NULL);
  EXPECT_EQ(omni_default_parallel(nullptr), OMNI_ERR_NULL);
  parallel.size = sizeof parallel - 1;
  EXPECT_EQ(omni_default_parallel(&parallel), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(parallel.parallel_for, nullptr);
  EXPECT_EQ(omni_set_num_threads(1025), OMNI_ERR_RANGE);
}

TEST(ParallelApi, ThreadsOfTheProcessWidePool) {
  const uint32_t machine = okl::default_thread_count();
  ASSERT_EQ(omni_set_num_threads(0), OMNI_OK);
  EXPECT_EQ(omni_num_threads(), machine);
  omni_parallel parallel = empty();
  ASSERT_EQ(omni_default_parallel(&parallel), OMNI_OK);
  EXPECT_EQ(parallel.threads, machine);
  for (const uint32_t threads : {3U, 1U, 64U, 5U}) {
    ASSERT_EQ(omni_set_num_threads(threads), OMNI_OK);
    EXPECT_EQ(omni_num_threads(), threads);
    EXPECT_TRUE(runs_each_index_once(parallel, 200)) << "a parallel taken before must go on working";
    omni_parallel now = empty();
    ASSERT_EQ(omni_default_parallel(&now), OMNI_OK);
    EXPECT_EQ(now.threads, threads);
    EXPECT_TRUE(runs_each_index_once(now, 200));
  }
  ASSERT_EQ(omni_set_num_threads(0), OMNI_OK);
  EXPECT_EQ(omni_num_threads(), machine);
}

TEST(ParallelApi, ThreadsAreNotSetWhileARegionRuns) {
  ASSERT_EQ(omni_set_num_threads(2), OMNI_OK);
  omni_parallel parallel = empty();
  ASSERT_EQ(omni_default_parallel(&parallel), OMNI_OK);
  std::atomic<int> refused = 0;
  parallel.parallel_for(
      parallel.context, 4,
      [](void* context, int64_t) {
        if (omni_set_num_threads(3) == OMNI_ERR_STATE) ++*static_cast<std::atomic<int>*>(context);
      },
      &refused);
  EXPECT_EQ(refused, 4);
  EXPECT_EQ(omni_num_threads(), 2U);
  EXPECT_EQ(omni_set_num_threads(3), OMNI_OK);
}

TEST(ParallelApi, ReplacedUnderConcurrentCallers) {
  ASSERT_EQ(omni_set_num_threads(2), OMNI_OK);
  omni_parallel parallel = empty();
  ASSERT_EQ(omni_default_parallel(&parallel), OMNI_OK);
  std::atomic<bool> stop = false;
  std::atomic<int> wrong = 0;
  std::vector<std::thread> callers;
  callers.reserve(2);
  for (int t = 0; t < 2; ++t) {
    callers.emplace_back([&] {
      while (!stop) {
        if (!runs_each_index_once(parallel, 20)) ++wrong;
        std::this_thread::yield();
      }
    });
  }
  int replaced = 0;
  for (uint32_t i = 0; i < 2000 || (replaced == 0 && i < 200000); ++i) {
    replaced += omni_set_num_threads(1 + i % 3) == OMNI_OK ? 1 : 0;
  }
  stop = true;
  for (std::thread& caller : callers) caller.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_GT(replaced, 0);
}

}  // namespace
