// SPDX-License-Identifier: Apache-2.0
#include "jit/memory/executable_memory.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <thread>
#include <vector>

namespace okl::jit {
namespace {

std::vector<uint8_t> code_returning(uint16_t value, size_t bytes = 0) {
#if defined(__x86_64__)
  std::vector<uint8_t> code = {0xb8, static_cast<uint8_t>(value), static_cast<uint8_t>(value >> 8), 0, 0, 0xc3};
#else
  const uint32_t words[] = {0x52800000u | uint32_t{value} << 5, 0xd65f03c0u};
  std::vector<uint8_t> code(sizeof words);
  std::memcpy(code.data(), words, sizeof words);
#endif
  if (code.size() < bytes) code.resize(bytes, 0x5a);
  return code;
}

int call(const void* entry) {
  int (*function)() = nullptr;
  std::memcpy(&function, &entry, sizeof function);
  return function();
}

// The permissions of the mapping that holds `address`, e.g. "r-xp".
std::string permissions_of(const void* address) {
  std::ifstream maps("/proc/self/maps");
  const auto wanted = reinterpret_cast<uintptr_t>(address);
  for (std::string line; std::getline(maps, line);) {
    size_t used = 0;
    const uintptr_t begin = std::stoull(line, &used, 16);
    const uintptr_t end = std::stoull(line.substr(used + 1), nullptr, 16);
    if (begin <= wanted && wanted < end) return line.substr(line.find(' ') + 1, 4);
  }
  return "";
}

class ExecutableMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    if (code_state() == CodeState::kRefused) GTEST_SKIP() << code_state_reason();
  }
};

TEST_F(ExecutableMemory, EveryStateHasItsReason) { EXPECT_EQ(code_state_reason().empty(), code_state() == CodeState::kMapped); }

TEST_F(ExecutableMemory, CodeOfEverySizeIsCopiedAlignedAndReadOnly) {
  std::vector<std::pair<const void*, uint16_t>> kernels;
  uint16_t value = 1;
  for (const size_t bytes : {6, 63, 64, 4031, 4032, 4033, 65471, 65472, 65473, 1 << 20, 6}) {
    const std::vector<uint8_t> code = code_returning(value, bytes);
    const void* entry = publish(code.data(), code.size(), "size");
    ASSERT_NE(entry, nullptr) << bytes;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(entry) % 64, 0U);
    EXPECT_EQ(std::memcmp(entry, code.data(), code.size()), 0) << bytes;
    EXPECT_EQ(permissions_of(entry).substr(0, 3), "r-x");
    EXPECT_EQ(permissions_of(static_cast<const char*>(entry) - 16).substr(0, 3), "r-x");
    EXPECT_EQ(permissions_of(static_cast<const char*>(entry) + code.size() - 1).substr(0, 3), "r-x");
    kernels.emplace_back(entry, value++);
  }
  for (const auto& [entry, expected] : kernels) EXPECT_EQ(call(entry), expected);
}

TEST_F(ExecutableMemory, NothingIsWritableAndExecutable) {
  for (uint16_t i = 0; i < 50; ++i) {
    const std::vector<uint8_t> code = code_returning(i);
    ASSERT_NE(publish(code.data(), code.size(), "wx"), nullptr);
  }
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) EXPECT_EQ(line.find(" rwx"), std::string::npos) << line;
}

TEST_F(ExecutableMemory, RefusesEmptyAndAbsurdSizes) {
  EXPECT_EQ(publish("", 0, "empty"), nullptr);
  EXPECT_EQ(publish("", size_t{1} << 62, "absurd"), nullptr);
}

TEST_F(ExecutableMemory, ThreadsPublishAndRunAtOnce) {
  std::vector<std::thread> threads;
  std::vector<int> wrong(4);
  for (uint16_t t = 0; t < 4; ++t) {
    threads.emplace_back([t, &wrong] {
      for (uint16_t i = 0; i < 200; ++i) {
        const auto value = static_cast<uint16_t>(t * 1000 + i);
        const std::vector<uint8_t> code = code_returning(value);
        const void* entry = publish(code.data(), code.size(), "thread");
        if (entry == nullptr || call(entry) != value) ++wrong[t];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, std::vector<int>(4));
}

TEST_F(ExecutableMemory, ForkedChildRunsAndPublishes) {
  const std::vector<uint8_t> code = code_returning(41);
  const void* entry = publish(code.data(), code.size(), "parent");
  ASSERT_NE(entry, nullptr);
  const pid_t child = fork();
  if (child == 0) {
    const std::vector<uint8_t> more = code_returning(42);
    const void* own = publish(more.data(), more.size(), "child");
    _exit(own != nullptr && call(own) == 42 && call(entry) == 41 ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(call(entry), 41);
}

}  // namespace
}  // namespace okl::jit
