// SPDX-License-Identifier: Apache-2.0
#include "reference/cache/budget.h"

#include <gtest/gtest.h>

#include "reference/cache/available.h"
#include "reference/cache/kv.h"
#include "reference/core/error.h"
#include "tests/support/temporary_directory.h"

namespace ref {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;

// Spark 1.7B and 4B: every fourth layer sees everything.
CacheModel spark(int64_t layers, int64_t kv_heads) {
  CacheModel model{kv_heads, 256, {}};
  for (int64_t i = 0; i < layers; ++i) model.windows.push_back(i % 4 == 3 ? 0 : 512);
  return model;
}

TEST(CacheBudget, OfTheReleasedModels) {
  // 14 KiB a token in 7 full layers; 21 rings of 512 slots of 2 KiB with chunks of one row.
  const CacheBudget small = cache_budget(spark(28, 2), {4096, 1, OMNI_DTYPE_BF16});
  EXPECT_EQ(small.hybrid, 4096 * 14 * 1024 + 21 * kMiB);
  EXPECT_EQ(small.flat, 4096u * 28 * 2 * 1024);
  EXPECT_EQ(small.needed, small.hybrid + small.hybrid / 4);
  // Chunks of 512 rows need rings of 1,024 slots.
  EXPECT_EQ(cache_budget(spark(28, 2), {4096, 512, OMNI_DTYPE_BF16}).hybrid, 4096 * 14 * 1024 + 42 * kMiB);
  EXPECT_EQ(cache_budget(spark(36, 4), {8192, 1, OMNI_DTYPE_BF16}).hybrid, 8192 * 36 * 1024 + 54 * kMiB);
  EXPECT_EQ(cache_budget(spark(28, 2), {4096, 1, OMNI_DTYPE_F32}).hybrid, 2 * small.hybrid);
  EXPECT_EQ(cache_budget(spark(28, 2), {4096, 1, OMNI_DTYPE_S8}).flat, 4096u * 28 * 2 * 520);
}

TEST(CacheBudget, RoundsToBlocksAndNeverBeyondTheContext) {
  EXPECT_EQ(cache_slots(0, {1, 1, OMNI_DTYPE_BF16}), 64);
  EXPECT_EQ(cache_slots(0, {64, 1, OMNI_DTYPE_BF16}), 64);
  EXPECT_EQ(cache_slots(0, {65, 1, OMNI_DTYPE_BF16}), 128);
  EXPECT_EQ(cache_slots(512, {4096, 1, OMNI_DTYPE_BF16}), 512);
  EXPECT_EQ(cache_slots(512, {4096, 2, OMNI_DTYPE_BF16}), 576);
  EXPECT_EQ(cache_slots(512, {600, 512, OMNI_DTYPE_BF16}), 640);
  EXPECT_EQ(cache_slots(512, {100, 100, OMNI_DTYPE_BF16}), 128);
}

TEST(CacheBudget, TellsBothFiguresInUnitsThatAreTrue) {
  const CacheRequest request = {1 << 20, 512, OMNI_DTYPE_BF16};
  const CacheBudget budget = cache_budget(spark(28, 2), request);
  check_budget("m", request, budget, budget.needed);
  try {
    check_budget("m", request, budget, budget.needed - 1);
    FAIL();
  } catch (const MemoryError& error) {
    EXPECT_STREQ(error.what(),
                 "m: the KV cache of 1048576 tokens takes 14.04 GiB (56.00 GiB if every layer kept the whole context), with a "
                 "quarter of headroom 17.55 GiB; 17.55 GiB of memory is available");
  }
  EXPECT_EQ(bytes_text(0), "0.0 MiB");
  EXPECT_EQ(bytes_text(1024 * kMiB - kMiB), "1023.0 MiB");
  EXPECT_EQ(bytes_text(1024 * kMiB), "1.00 GiB");
}

TEST(CacheBudget, RefusesSizesThatAreNone) {
  EXPECT_THROW(cache_budget(spark(28, 2), {0, 1, OMNI_DTYPE_BF16}), Error);
  EXPECT_THROW(cache_budget(spark(28, 2), {INT64_MAX, 1, OMNI_DTYPE_BF16}), Error);
  EXPECT_THROW(cache_budget(spark(28, 2), {100, 0, OMNI_DTYPE_BF16}), Error);
  EXPECT_THROW(cache_budget({1 << 16, 256, std::vector<int64_t>(1 << 20, 0)}, {1 << 24, 1, OMNI_DTYPE_F32}), Error);
}

TEST(CacheBudget, IsWhatIsAllocated) {
  for (const omni_dtype type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32, OMNI_DTYPE_S8}) {
    const CacheRequest request = {3000, 100, type};
    const KvCaches caches(spark(5, 2), request);
    EXPECT_EQ(caches.bytes(), cache_budget(spark(5, 2), request).hybrid);
  }
}

TEST(CacheTable, HasARowForEachContext) {
  const std::vector<CacheRow> table = cache_table(spark(28, 2), {2048, 131072}, 512, OMNI_DTYPE_BF16);
  ASSERT_EQ(table.size(), 2u);
  EXPECT_EQ(table[1].context, 131072);
  EXPECT_EQ(table[1].budget.hybrid, 131072u * 14 * 1024 + 42 * kMiB);
}

class AvailableMemory : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(directory_ / "proc" / "self");
    std::filesystem::create_directories(directory_ / "cgroup" / "a" / "b");
    std::filesystem::create_directories(directory_ / "cgroup" / "memory" / "a");
    write("proc/meminfo", "MemTotal:       2000 kB\nMemFree:         100 kB\nMemAvailable:   1000 kB\n");
    files_ = {directory_ / "proc", directory_ / "cgroup"};
  }
  void write(const std::string& name, const std::string& text) { directory_.write(name, text); }

  omni_files::TemporaryDirectory directory_;
  MemoryFiles files_;
};

TEST_F(AvailableMemory, OfTheSystem) { EXPECT_EQ(available_memory(files_), 1000u * 1024); }

TEST_F(AvailableMemory, NothingToldIsNoLimit) {
  EXPECT_EQ(available_memory({directory_ / "nowhere", directory_ / "nowhere"}), UINT64_MAX);
}

TEST_F(AvailableMemory, OfGroupsAboveTheProcess) {
  write("proc/self/cgroup", "0::/a/b\n");
  write("cgroup/a/memory.max", "600000\n");
  write("cgroup/a/memory.current", "500000\n");
  write("cgroup/a/memory.stat", "anon 1\ninactive_file 200000\n");
  write("cgroup/a/b/memory.max", "max\n");
  write("cgroup/a/b/memory.current", "1\n");
  EXPECT_EQ(available_memory(files_), 300'000u);
  write("cgroup/a/b/memory.max", "100000\n");
  write("cgroup/a/b/memory.current", "150000\n");
  EXPECT_EQ(available_memory(files_), 0u);
}

TEST_F(AvailableMemory, OfTheControllerOfVersionOne) {
  write("proc/self/cgroup", "5:cpu,cpuacct:/x\n4:hugetlb,memory:/a\n");
  write("cgroup/memory/a/memory.limit_in_bytes", "400000\n");
  write("cgroup/memory/a/memory.usage_in_bytes", "100000\n");
  write("cgroup/memory/a/memory.stat", "total_inactive_file 50000\n");
  EXPECT_EQ(available_memory(files_), 350'000u);
}

}  // namespace
}  // namespace ref
