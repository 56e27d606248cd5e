// SPDX-License-Identifier: Apache-2.0
#include "kernels/memory/packed_memory.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string>

#include "omni/memory.h"

namespace {

constexpr size_t kHuge = size_t{2} << 20;

// What the hooks saw and what they refuse.
struct Fake {
  size_t explicit_pages_free = SIZE_MAX;  // MAP_HUGETLB beyond this many pages gives ENOMEM
  bool fake_pool = false;                 // serve MAP_HUGETLB from plain memory
  int madvise_error = 0;
  bool refuse_all = false;
  const char* off = nullptr;
  int64_t mapped = 0;  // bytes mapped and not unmapped
  int advice = -1;
} fake;

void* fake_mmap(void* address, size_t bytes, int protection, int flags, int fd, off_t offset) {
  const bool pool = (flags & MAP_HUGETLB) != 0;
  if (fake.refuse_all || (pool && bytes / kHuge > fake.explicit_pages_free)) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  if (pool && fake.fake_pool) flags &= ~(MAP_HUGETLB | (0x3f << MAP_HUGE_SHIFT));
  void* memory = ::mmap(address, bytes, protection, flags, fd, offset);
  if (memory != MAP_FAILED) fake.mapped += static_cast<int64_t>(bytes);
  return memory;
}

int fake_munmap(void* address, size_t bytes) {
  fake.mapped -= static_cast<int64_t>(bytes);
  return ::munmap(address, bytes);
}

int fake_madvise(void*, size_t, int advice) {
  fake.advice = advice;
  errno = fake.madvise_error;
  return fake.madvise_error == 0 ? 0 : -1;
}

const char* fake_off() { return fake.off; }

constexpr okl::MemoryCalls kFakeCalls = {fake_mmap, fake_munmap, fake_madvise, fake_off};

omni_packed_memory empty() {
  omni_packed_memory memory = {};
  memory.size = sizeof memory;
  return memory;
}

bool error_has(const std::string& text) { return std::string(omni_last_error()).find(text) != std::string::npos; }

class PackedMemory : public ::testing::Test {
 protected:
  void SetUp() override {
    fake = {};
    okl::set_memory_calls(&kFakeCalls);
  }
  void TearDown() override {
    omni_packed_free(&memory_);
    EXPECT_EQ(fake.mapped, 0) << "leaked or freed twice";
    okl::set_memory_calls(nullptr);
  }
  // Every byte is there, zero and writable.
  void check_block(size_t bytes) const {
    EXPECT_EQ(memory_.bytes, bytes);
    EXPECT_GE(memory_.mapped_bytes, bytes);
    EXPECT_EQ(memory_.huge_pages, (bytes + kHuge - 1) / kHuge);
    auto* const data = static_cast<uint8_t*>(memory_.data);
    EXPECT_TRUE(std::all_of(data, data + bytes, [](uint8_t byte) { return byte == 0; }));
    std::memset(data, 1, bytes);
  }
  omni_packed_memory memory_ = empty();
};

TEST_F(PackedMemory, TransparentByDefault) {
  for (const size_t bytes : {size_t{1}, kHuge - 1, kHuge, kHuge + 1, 3 * kHuge + 12345}) {
    ASSERT_EQ(omni_packed_alloc(bytes, OMNI_ALLOC_DEFAULT, &memory_), OMNI_OK);
    EXPECT_STREQ(omni_last_error(), "");
    EXPECT_EQ(memory_.pages, OMNI_PAGES_TRANSPARENT);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory_.data) % kHuge, 0U);
    EXPECT_EQ(memory_.mapped_bytes, memory_.huge_pages * kHuge);
    EXPECT_EQ(fake.mapped, static_cast<int64_t>(memory_.mapped_bytes));
    EXPECT_EQ(fake.advice, MADV_HUGEPAGE);
    check_block(bytes);
    omni_packed_free(&memory_);
    EXPECT_EQ(memory_.data, nullptr);
  }
}

TEST_F(PackedMemory, PlainOnPurpose) {
  for (const size_t bytes : {size_t{1}, kHuge - 1, kHuge, 2 * kHuge + 1}) {
    ASSERT_EQ(omni_packed_alloc(bytes, OMNI_ALLOC_PLAIN, &memory_), OMNI_OK);
    EXPECT_EQ(memory_.pages, OMNI_PAGES_PLAIN);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(memory_.data) % (bytes < kHuge ? 64 : kHuge), 0U);
    EXPECT_EQ(fake.advice, MADV_NOHUGEPAGE);
    EXPECT_LT(memory_.mapped_bytes - bytes, 4096U * 16);
    check_block(bytes);
    omni_packed_free(&memory_);
  }
}

TEST_F(PackedMemory, ExplicitFromThePool) {
  fake.fake_pool = true;
  fake.explicit_pages_free = 3;
  ASSERT_EQ(omni_packed_alloc(2 * kHuge + 1, OMNI_ALLOC_EXPLICIT_HUGE, &memory_), OMNI_OK);
  EXPECT_EQ(memory_.pages, OMNI_PAGES_EXPLICIT);
  EXPECT_EQ(memory_.huge_pages, 3U);
  EXPECT_STREQ(omni_last_error(), "");
  check_block(2 * kHuge + 1);
}

// AC-040: no pool, and a pool one page short.
TEST_F(PackedMemory, ShortPoolFallsBackWithTheRightPageCount) {
  for (const size_t free_pages : {0, 6}) {
    fake.explicit_pages_free = free_pages;
    ASSERT_EQ(omni_packed_alloc(6 * kHuge + 1, OMNI_ALLOC_EXPLICIT_HUGE, &memory_), OMNI_OK);
    EXPECT_EQ(memory_.pages, OMNI_PAGES_TRANSPARENT);
    EXPECT_EQ(memory_.huge_pages, 7U);
    EXPECT_TRUE(error_has("7 explicit huge pages")) << omni_last_error();
    EXPECT_FALSE(error_has("\n"));
    check_block(6 * kHuge + 1);
    omni_packed_free(&memory_);
    ASSERT_EQ(omni_packed_alloc(6 * kHuge + 1, OMNI_ALLOC_EXPLICIT_HUGE | OMNI_ALLOC_STRICT, &memory_), OMNI_ERR_OUT_OF_MEMORY);
    EXPECT_TRUE(error_has("7 huge pages")) << omni_last_error();
    EXPECT_EQ(memory_.data, nullptr);
    EXPECT_EQ(memory_.huge_pages, 0U);
  }
}

TEST_F(PackedMemory, RefusedAdviceFallsBackToPlain) {
  fake.madvise_error = EINVAL;
  ASSERT_EQ(omni_packed_alloc(kHuge, OMNI_ALLOC_DEFAULT, &memory_), OMNI_OK);
  EXPECT_EQ(memory_.pages, OMNI_PAGES_PLAIN);
  EXPECT_TRUE(error_has("1 transparent pages") && error_has("Invalid argument")) << omni_last_error();
  check_block(kHuge);
  omni_packed_free(&memory_);
  EXPECT_EQ(omni_packed_alloc(kHuge, OMNI_ALLOC_STRICT, &memory_), OMNI_ERR_OUT_OF_MEMORY);
  EXPECT_EQ(memory_.data, nullptr);
}

TEST_F(PackedMemory, SwitchedOffTransparentPagesArePlain) {
  fake.off = "transparent_hugepage/enabled is never";
  fake.explicit_pages_free = 0;
  ASSERT_EQ(omni_packed_alloc(kHuge, OMNI_ALLOC_EXPLICIT_HUGE, &memory_), OMNI_OK);
  EXPECT_EQ(memory_.pages, OMNI_PAGES_PLAIN);
  EXPECT_TRUE(error_has("never") && error_has("Cannot allocate memory")) << omni_last_error();
  EXPECT_EQ(omni_packed_alloc(kHuge, OMNI_ALLOC_STRICT, &memory_), OMNI_ERR_OUT_OF_MEMORY);
  EXPECT_NE(memory_.data, nullptr) << "a failure must leave the struct alone";
}

TEST_F(PackedMemory, NothingAtAll) {
  fake.refuse_all = true;
  for (const uint32_t flags : {0U, 1U, 2U, 4U, 5U, 6U}) {
    EXPECT_EQ(omni_packed_alloc(12345, flags, &memory_), OMNI_ERR_OUT_OF_MEMORY) << flags;
    EXPECT_EQ(memory_.data, nullptr);
  }
}

TEST_F(PackedMemory, BadArgumentsTouchNothing) {
  EXPECT_EQ(omni_packed_alloc(1, 0, nullptr), OMNI_ERR_NULL);
  omni_packed_memory small = empty();
  small.size = sizeof(omni_packed_memory) - 1;
  small.bytes = 77;
  EXPECT_EQ(omni_packed_alloc(1, 0, &small), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(small.bytes, 77U);
  EXPECT_EQ(omni_packed_alloc(1, 8, &memory_), OMNI_ERR_RANGE);
  EXPECT_EQ(omni_packed_alloc(1, OMNI_ALLOC_PLAIN | OMNI_ALLOC_EXPLICIT_HUGE, &memory_), OMNI_ERR_RANGE);
  for (const size_t bytes : {SIZE_MAX, SIZE_MAX / 2, SIZE_MAX - kHuge}) {
    EXPECT_EQ(omni_packed_alloc(bytes, 0, &memory_), OMNI_ERR_OVERFLOW) << bytes;
  }
  EXPECT_EQ(omni_packed_alloc(size_t{1} << 60, 0, &memory_), OMNI_ERR_OUT_OF_MEMORY);
}

TEST_F(PackedMemory, ZeroBytesAndNothingToFree) {
  ASSERT_EQ(omni_packed_alloc(0, 0, &memory_), OMNI_OK);
  EXPECT_EQ(memory_.data, nullptr);
  EXPECT_EQ(memory_.huge_pages, 0U);
  omni_packed_free(&memory_);
  omni_packed_free(nullptr);
  omni_packed_memory zeroed = {};
  omni_packed_free(&zeroed);
}

// The real system calls, in a child with the given limit.
int in_child(const std::function<int()>& body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = -1;
  waitpid(child, &status, 0);
  return status;
}

TEST(PackedMemorySystem, LockedMemoryLimitZero) {
  EXPECT_EQ(in_child([] {
              const rlimit none = {0, 0};
              if (setrlimit(RLIMIT_MEMLOCK, &none) != 0) return 1;
              omni_packed_memory memory = empty();
              if (omni_packed_alloc(5 * kHuge - 1, OMNI_ALLOC_EXPLICIT_HUGE, &memory) != OMNI_OK) return 2;
              if (memory.huge_pages != 5) return 3;
              if (memory.pages != OMNI_PAGES_EXPLICIT && !error_has("5 ")) return 4;
              std::memset(memory.data, 1, memory.bytes);
              omni_packed_free(&memory);
              return 0;
            }),
            0);
}

TEST(PackedMemorySystem, ProcessWithoutTransparentPages) {
  EXPECT_EQ(in_child([] {
              if (prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0) != 0) return 1;
              omni_packed_memory memory = empty();
              if (omni_packed_alloc(kHuge, 0, &memory) != OMNI_OK || memory.pages != OMNI_PAGES_PLAIN) return 2;
              return error_has("PR_SET_THP_DISABLE") ? 0 : 3;
            }),
            0);
}

}  // namespace
