// SPDX-License-Identifier: Apache-2.0
// Executable memory under policies that refuse parts of it (AC-034). Every test forks before anything was tried.
#include <gtest/gtest.h>

#include <cstring>
#include <fstream>

#include "jit/cache/code_cache.h"
#include "jit/memory/executable_memory.h"
#include "jit/memory/sandbox_for_test.h"

namespace okl::jit {
namespace {

using test::kNoSandbox;
using test::Policy;
using test::status_of_child;

// x86: mov eax, value; ret. AArch64: movz w0, value; ret.
CodeBytes code_returning(uint16_t value) {
#if defined(__x86_64__)
  return {0xb8, static_cast<uint8_t>(value), static_cast<uint8_t>(value >> 8), 0, 0, 0xc3};
#else
  const uint32_t words[] = {0x52800000u | uint32_t{value} << 5, 0xd65f03c0u};
  CodeBytes bytes(sizeof words);
  std::memcpy(bytes.data(), words, sizeof words);
  return bytes;
#endif
}

int call(const void* entry) {
  int (*function)() = nullptr;
  std::memcpy(&function, &entry, sizeof function);
  return function();
}

bool mapped_writable_and_executable() {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(" rwx") != std::string::npos) return true;
  }
  return false;
}

// 0 when 100 kernels from the cache return what they should and the state is as expected.
int run_kernels(CodeState expected) {
  if (code_state() != expected) return 1;
  if (code_state_reason().empty() != (expected == CodeState::kMapped)) return 2;
  for (uint16_t i = 0; i < 100; ++i) {
    const GeneratedCode code = find_or_generate("policy_test", i, [i] { return code_returning(i); });
    if (expected == CodeState::kRefused) {
      if (code.entry != nullptr) return 3;
    } else if (code.entry == nullptr || call(code.entry) != i) {
      return 4;
    }
  }
  return mapped_writable_and_executable() ? 5 : 0;
}

int run_under(Policy policy, CodeState expected) {
  return status_of_child([&] { return test::enter_policy(policy) ? run_kernels(expected) : kNoSandbox; });
}

#define EXPECT_CHILD_OK(call)                                                              \
  do {                                                                                     \
    const int status = call;                                                               \
    ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);             \
    if (WEXITSTATUS(status) == kNoSandbox) GTEST_SKIP() << "the policy cannot be entered"; \
    EXPECT_EQ(WEXITSTATUS(status), 0);                                                     \
  } while (false)

TEST(JitPolicy, KillOnWriteAndExec) { EXPECT_CHILD_OK(run_under(Policy::kKillWriteExec, CodeState::kMapped)); }

TEST(JitPolicy, MprotectExecDenied) { EXPECT_CHILD_OK(run_under(Policy::kDenyMprotectExec, CodeState::kDoubleMapped)); }

TEST(JitPolicy, AllExecDenied) { EXPECT_CHILD_OK(run_under(Policy::kDenyAnyExec, CodeState::kRefused)); }

TEST(JitPolicy, FilterReallyKills) {
  const int status = status_of_child([] {
    if (!test::enter_policy(Policy::kKillWriteExec)) return kNoSandbox;
    return mmap(nullptr, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) == MAP_FAILED ? 1 : 0;
  });
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNoSandbox) GTEST_SKIP() << "the policy cannot be entered";
  ASSERT_TRUE(WIFSIGNALED(status));
  EXPECT_EQ(WTERMSIG(status), SIGSYS);
}

TEST(JitPolicy, ReasonNamesEveryRefusal) {
  EXPECT_CHILD_OK(status_of_child([] {
    if (!test::enter_policy(Policy::kDenyAnyExec)) return kNoSandbox;
    const std::string reason = code_state_reason();
    const bool both = reason.find("mprotect") != std::string::npos && reason.find("memfd") != std::string::npos;
    return both && reason.find('\n') == std::string::npos ? 0 : 1;
  }));
}

// The kernel's own memory-deny-write-execute: mprotect may not add PROT_EXEC, executable file mappings are allowed.
TEST(JitPolicy, MemoryDenyWriteExecute) {
  constexpr int set_mdwe = 65;  // PR_SET_MDWE, Linux 6.3
  EXPECT_CHILD_OK(status_of_child([] {
    if (prctl(set_mdwe, 1UL, 0UL, 0UL, 0UL) != 0) return kNoSandbox;
    return run_kernels(CodeState::kDoubleMapped);
  }));
}

TEST(JitPolicy, SandboxEnteredAfterTheTrial) {
  EXPECT_CHILD_OK(status_of_child([] {
    const CodeBytes first = code_returning(7);
    const void* before = publish(first.data(), first.size(), "before");
    if (code_state() != CodeState::kMapped || before == nullptr) return 10;
    if (!test::enter_policy(Policy::kDenyMprotectExec)) return kNoSandbox;
    const CodeBytes second = code_returning(8);
    const void* after = publish(second.data(), second.size(), "after");
    if (after == nullptr || call(after) != 8 || call(before) != 7) return 11;
    return code_state() == CodeState::kDoubleMapped ? 0 : 12;
  }));
}

// Parent and child go on publishing into what was one shared memory object: neither may see the other's code.
TEST(JitPolicy, DoubleMappingAcrossFork) {
  EXPECT_CHILD_OK(status_of_child([] {
    if (!test::enter_policy(Policy::kDenyMprotectExec)) return kNoSandbox;
    const auto make = [](uint16_t value) {
      const CodeBytes bytes = code_returning(value);
      return publish(bytes.data(), bytes.size(), "fork");
    };
    const void* shared = make(1);
    int to_child[2];
    int to_parent[2];
    char byte = 0;
    if (shared == nullptr || pipe(to_child) != 0 || pipe(to_parent) != 0) return 20;
    const pid_t child = fork();
    if (child == 0) {
      const void* own = make(2);
      // Called only after the parent has published, too.
      const bool met = write(to_parent[1], &byte, 1) == 1 && read(to_child[0], &byte, 1) == 1;
      _exit(met && own != nullptr && call(shared) == 1 && call(own) == 2 ? 0 : 1);
    }
    if (read(to_parent[0], &byte, 1) != 1) return 21;
    const void* mine = make(3);
    if (write(to_child[1], &byte, 1) != 1) return 22;
    int status = -1;
    waitpid(child, &status, 0);
    return status == 0 && mine != nullptr && call(shared) == 1 && call(mine) == 3 ? 0 : 23;
  }));
}

}  // namespace
}  // namespace okl::jit
