// SPDX-License-Identifier: Apache-2.0
#include "jit/memory/perf.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>

#include "jit/memory/executable_memory.h"

namespace okl::jit {
namespace {

std::string contents(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::string map_path() { return "/tmp/perf-" + std::to_string(getpid()) + ".map"; }

class Perf : public ::testing::Test {
 protected:
  void SetUp() override {
    if (code_state() == CodeState::kRefused) GTEST_SKIP() << code_state_reason();
    std::string name = (std::filesystem::temp_directory_path() / "omni-perf-XXXXXX").string();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    directory_ = name;
  }
  void TearDown() override {
    set_perf_modes("", &error_);
    if (!directory_.empty()) std::filesystem::remove_all(directory_);
    std::filesystem::remove(map_path());
  }
  std::filesystem::path dump_path() const { return directory_ / ("jit-" + std::to_string(getpid()) + ".dump"); }

  std::filesystem::path directory_;
  std::string error_;
};

TEST_F(Perf, UnknownWordIsAnErrorAndChangesNothing) {
  EXPECT_FALSE(set_perf_modes("perfmap,flamegraph", &error_));
  EXPECT_NE(error_.find("flamegraph"), std::string::npos);
  EXPECT_FALSE(std::filesystem::exists(map_path()));
  EXPECT_FALSE(set_perf_modes("jitdump=", &error_));
  EXPECT_FALSE(set_perf_modes(",", &error_));
  EXPECT_FALSE(set_perf_modes("jitdump=/nowhere/at/all", &error_));
  EXPECT_NE(error_.find("/nowhere/at/all"), std::string::npos);
}

TEST_F(Perf, MapListsCodePublishedBeforeAndAfter) {
  const uint8_t code[] = {0xc3, 0xc3, 0xc3};
  const void* before = publish(code, 3, "kernel_before");
  ASSERT_TRUE(set_perf_modes("perfmap", &error_)) << error_;
  const void* after = publish(code, 2, "kernel_after");
  const auto line = [](const void* entry, int bytes, const char* name) {
    std::ostringstream text;
    text << std::hex << reinterpret_cast<uintptr_t>(entry) << ' ' << bytes << ' ' << name << '\n';
    return text.str();
  };
  const std::string map = contents(map_path());
  EXPECT_NE(map.find(line(before, 3, "kernel_before")), std::string::npos) << map;
  EXPECT_NE(map.find(line(after, 2, "kernel_after")), std::string::npos) << map;
}

TEST_F(Perf, LinksAreNotFollowed) {
  const std::filesystem::path victim = directory_ / "victim";
  std::ofstream(victim) << "precious";
  std::filesystem::create_symlink(victim, dump_path());
  EXPECT_FALSE(set_perf_modes("jitdump=" + directory_.string(), &error_));
  EXPECT_EQ(contents(victim), "precious");
  std::filesystem::remove(dump_path());
  std::filesystem::create_hard_link(victim, dump_path());
  EXPECT_FALSE(set_perf_modes("jitdump=" + directory_.string(), &error_));
  EXPECT_EQ(contents(victim), "precious");
}

TEST_F(Perf, JitdumpHoldsHeaderRecordsAndMarker) {
  ASSERT_TRUE(set_perf_modes("jitdump=" + directory_.string(), &error_)) << error_;
  const uint8_t code[] = {0x90, 0x90, 0xc3};
  const void* entry = publish(code, sizeof code, "dumped");
  ASSERT_NE(entry, nullptr);

  const std::string dump = contents(dump_path());
  const auto word = [&](size_t at) {
    uint32_t value = 0;
    std::memcpy(&value, dump.data() + at, sizeof value);
    return value;
  };
  const auto quad = [&](size_t at) {
    uint64_t value = 0;
    std::memcpy(&value, dump.data() + at, sizeof value);
    return value;
  };
  ASSERT_GE(dump.size(), 40U);
  EXPECT_EQ(word(0), 0x4A695444U);
  EXPECT_EQ(word(4), 1U);
  EXPECT_EQ(word(8), 40U);
  EXPECT_EQ(word(20), static_cast<uint32_t>(getpid()));
  uint64_t index = 0;
  bool found = false;
  size_t at = 40;
  for (; at + 56 <= dump.size(); at += word(at + 4)) {
    ASSERT_EQ(word(at), 0U);
    ASSERT_LE(at + word(at + 4), dump.size());
    EXPECT_EQ(quad(at + 48), index++);
    const std::string name = dump.c_str() + at + 56;
    EXPECT_EQ(word(at + 4), 56 + name.size() + 1 + quad(at + 40));
    if (name == "dumped") {
      found = true;
      EXPECT_EQ(quad(at + 32), reinterpret_cast<uintptr_t>(entry));
      EXPECT_EQ(dump.substr(at + 56 + name.size() + 1, sizeof code), std::string("\x90\x90\xc3"));
    }
  }
  EXPECT_EQ(at, dump.size());
  EXPECT_TRUE(found);
  // perf finds the file by the executable mapping of it.
  std::ifstream maps("/proc/self/maps");
  bool marker = false;
  for (std::string line; std::getline(maps, line);) {
    marker |= line.find("r-xp") != std::string::npos && line.find(dump_path().string()) != std::string::npos;
  }
  EXPECT_TRUE(marker);
}

}  // namespace
}  // namespace okl::jit
