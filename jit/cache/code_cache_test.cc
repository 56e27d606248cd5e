// SPDX-License-Identifier: Apache-2.0
#include "jit/cache/code_cache.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <vector>

#include "jit/memory/executable_memory.h"

namespace okl::jit {
namespace {

const CodeBytes kReturn = {0xc3};

std::span<const std::byte> bytes_of(std::string_view text) { return std::as_bytes(std::span(text.data(), text.size())); }

class CodeCache : public ::testing::Test {
 protected:
  void SetUp() override {
    if (code_state() == CodeState::kRefused) GTEST_SKIP() << code_state_reason();
  }
};

TEST_F(CodeCache, EachKeyIsGeneratedOnce) {
  struct Config {
    uint32_t k, m;
  };
  int calls = 0;
  const auto generate = [&] {
    ++calls;
    return CodeBytes{0xc3, 0x90};
  };
  const CacheStatistics before = cache_statistics();
  const GeneratedCode first = find_or_generate("once", Config{2048, 1}, generate);
  EXPECT_NE(first.entry, nullptr);
  EXPECT_EQ(first.bytes, 2U);
  EXPECT_EQ(find_or_generate("once", Config{2048, 1}, generate).entry, first.entry);
  EXPECT_EQ(calls, 1);
  EXPECT_NE(find_or_generate("once", Config{2048, 2}, generate).entry, first.entry);
  EXPECT_EQ(calls, 2);
  const CacheStatistics after = cache_statistics();
  EXPECT_EQ(after.kernels - before.kernels, 2U);
  EXPECT_EQ(after.bytes - before.bytes, 4U);
  EXPECT_EQ(after.generated - before.generated, 2U);
  EXPECT_EQ(after.hits - before.hits, 1U);
}

TEST_F(CodeCache, NameAndConfigurationDoNotRunTogether) {
  const auto generate = [] { return kReturn; };
  const GeneratedCode a = find_or_generate("ab", bytes_of("c"), generate);
  const GeneratedCode b = find_or_generate("a", bytes_of("bc"), generate);
  const GeneratedCode c = find_or_generate("abc", bytes_of(""), generate);
  EXPECT_NE(a.entry, b.entry);
  EXPECT_NE(a.entry, c.entry);
  EXPECT_NE(b.entry, c.entry);
  EXPECT_NE(find_or_generate("ba", bytes_of("c"), generate).entry, a.entry);
}

TEST_F(CodeCache, FindsTheFirstByName) {
  EXPECT_EQ(find_by_name("by_name").entry, nullptr);
  const GeneratedCode first = find_or_generate("by_name", bytes_of("1"), [] { return kReturn; });
  find_or_generate("by_name", bytes_of("2"), [] { return kReturn; });
  EXPECT_EQ(find_by_name("by_name").entry, first.entry);
  EXPECT_EQ(find_by_name("by_name").bytes, 1U);
  EXPECT_EQ(find_by_name("by_nam").entry, nullptr);
}

TEST_F(CodeCache, FailureIsReportedAndNotCached) {
  int calls = 0;
  const auto fails = [&]() -> CodeBytes {
    if (++calls == 2) throw std::runtime_error("generator gave up");
    return {};
  };
  for (int i = 1; i <= 3; ++i) {
    const GeneratedCode code = find_or_generate("fails", bytes_of("x"), fails);
    EXPECT_EQ(code.entry, nullptr);
    EXPECT_EQ(code.bytes, 0U);
    EXPECT_EQ(calls, i);
  }
  EXPECT_EQ(find_by_name("fails").entry, nullptr);
  EXPECT_NE(find_or_generate("fails", bytes_of("x"), [] { return kReturn; }).entry, nullptr);
}

TEST_F(CodeCache, ConcurrentAskersShareOneGeneration) {
  constexpr int kThreads = 8;
  constexpr int kKeys = 20;
  std::atomic<int> calls[kKeys] = {};
  std::atomic<int> waiting = 0;
  const void* entries[kThreads][kKeys] = {};
  std::vector<std::thread> threads;
  threads.reserve(kThreads);
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([&, t] {
      ++waiting;
      while (waiting < kThreads) std::this_thread::yield();
      for (int key = 0; key < kKeys; ++key) {
        entries[t][key] = find_or_generate("concurrent", key, [&, key] {
                            ++calls[key];
                            std::this_thread::sleep_for(std::chrono::milliseconds(1));
                            return kReturn;
                          }).entry;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (int key = 0; key < kKeys; ++key) {
    EXPECT_EQ(calls[key], 1) << key;
    for (int t = 0; t < kThreads; ++t) {
      EXPECT_NE(entries[t][key], nullptr);
      EXPECT_EQ(entries[t][key], entries[0][key]) << key;
    }
  }
}

TEST_F(CodeCache, WaitersLearnOfAFailure) {
  std::atomic<bool> started = false;
  std::atomic<bool> finish = false;
  std::thread generator([&] {
    EXPECT_EQ(find_or_generate("slow_failure", bytes_of("x"),
                               [&] {
                                 started = true;
                                 while (!finish) std::this_thread::yield();
                                 return CodeBytes();
                               })
                  .entry,
              nullptr);
  });
  while (!started) std::this_thread::yield();
  const size_t hits = cache_statistics().hits;
  std::thread waiter([] { EXPECT_EQ(find_or_generate("slow_failure", bytes_of("x"), [] { return kReturn; }).entry, nullptr); });
  while (cache_statistics().hits == hits) std::this_thread::yield();
  finish = true;
  generator.join();
  waiter.join();
}

// A child is forked while another thread generates: that thread does not exist in it, so it must not wait for it.
TEST_F(CodeCache, ForkDuringGeneration) {
  std::atomic<bool> started = false;
  std::atomic<bool> finish = false;
  std::thread generator([&] {
    find_or_generate("forked", bytes_of("x"), [&] {
      started = true;
      while (!finish) std::this_thread::yield();
      return kReturn;
    });
  });
  while (!started) std::this_thread::yield();
  const pid_t child = fork();
  if (child == 0) {
    alarm(20);
    _exit(find_or_generate("forked", bytes_of("x"), [] { return kReturn; }).entry != nullptr ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  finish = true;
  generator.join();
  EXPECT_NE(find_by_name("forked").entry, nullptr);
}

}  // namespace
}  // namespace okl::jit
