// SPDX-License-Identifier: Apache-2.0
// omni_kernel_code() and omni_set_jit_profile() with OMNI_JIT_PROFILE.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>

#include "jit/cache/code_cache.h"
#include "jit/memory/executable_memory.h"
#include "omni/omni.h"

namespace {

bool error_has(const std::string& text) { return std::string(omni_last_error()).find(text) != std::string::npos; }

// The library reads the environment once, so every case needs a process of its own.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(KernelCode, CopiesWhatTheCacheHolds) {
  if (okl::jit::code_state() == okl::jit::CodeState::kRefused) GTEST_SKIP() << okl::jit::code_state_reason();
  okl::jit::CodeBytes bytes = {0x90, 0x90, 0xc3};
  const okl::jit::GeneratedCode code = okl::jit::find_or_generate("api_test", 1, [&] { return bytes; });
  std::array<uint8_t, 4> buffer = {0xaa, 0xaa, 0xaa, 0xaa};
  size_t needed = 0;
  uint64_t address = 0;
  ASSERT_EQ(omni_kernel_code("api_test", nullptr, 0, &needed, &address), OMNI_OK);
  EXPECT_EQ(needed, 3U);
  EXPECT_EQ(address, reinterpret_cast<uintptr_t>(code.entry));
  ASSERT_EQ(omni_kernel_code("api_test", buffer.data(), 2, &needed, nullptr), OMNI_OK);
  EXPECT_EQ(buffer, (std::array<uint8_t, 4>{0x90, 0x90, 0xaa, 0xaa}));
  ASSERT_EQ(omni_kernel_code("api_test", buffer.data(), 4, nullptr, nullptr), OMNI_OK);
  EXPECT_EQ(buffer, (std::array<uint8_t, 4>{0x90, 0x90, 0xc3, 0xaa}));
}

TEST(KernelCode, BadArgumentsTouchNothing) {
  size_t needed = 77;
  uint64_t address = 78;
  EXPECT_EQ(omni_kernel_code(nullptr, nullptr, 0, &needed, &address), OMNI_ERR_NULL);
  EXPECT_EQ(omni_kernel_code("api_test", nullptr, 5, &needed, &address), OMNI_ERR_NULL);
  EXPECT_EQ(omni_kernel_code("never_generated", nullptr, 0, &needed, &address), OMNI_ERR_UNKNOWN_NAME);
  EXPECT_TRUE(error_has("never_generated"));
  EXPECT_EQ(needed, 77U);
  EXPECT_EQ(address, 78U);
}

TEST(JitProfile, UnknownWordIsAnError) {
  EXPECT_EQ(in_child([] {
              if (omni_set_jit_profile("perfmap,vtune") != OMNI_ERR_UNKNOWN_NAME || !error_has("vtune")) return 1;
              return omni_set_jit_profile(nullptr) == OMNI_OK && omni_set_jit_profile("") == OMNI_OK ? 0 : 2;
            }),
            0);
}

TEST(JitProfile, FromTheEnvironment) {
  std::string directory = (std::filesystem::temp_directory_path() / "omni-jit-XXXXXX").string();
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  const int good = in_child([&] {
    setenv("OMNI_JIT_PROFILE", ("jitdump=" + directory).c_str(), 1);
    if (omni_initialize() != OMNI_OK) return 1;
    return std::filesystem::exists(directory + "/jit-" + std::to_string(getpid()) + ".dump") ? 0 : 2;
  });
  std::filesystem::remove_all(directory);
  EXPECT_EQ(good, 0);
  EXPECT_EQ(in_child([] {
              setenv("OMNI_JIT_PROFILE", "vtune", 1);
              if (omni_initialize() != OMNI_ERR_ENVIRONMENT) return 1;
              if (!error_has("OMNI_JIT_PROFILE") || !error_has("vtune")) return 2;
              return omni_set_jit_profile("") == OMNI_ERR_ENVIRONMENT ? 0 : 3;
            }),
            0);
}

}  // namespace
