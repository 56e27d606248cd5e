// SPDX-License-Identifier: Apache-2.0
#include "kernels/memory/packed_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string_view>

#include "kernels/api/error.h"
#include "omni/memory.h"

namespace okl {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr int kExplicitHuge = MAP_HUGETLB | (21 << MAP_HUGE_SHIFT);  // 2^21 bytes, whatever the default size of the pool
constexpr uint32_t kKnownFlags = OMNI_ALLOC_EXPLICIT_HUGE | OMNI_ALLOC_PLAIN | OMNI_ALLOC_STRICT;

const char* transparent_pages_off() {
  if (::prctl(PR_GET_THP_DISABLE, 0, 0, 0, 0) == 1) return "prctl(PR_SET_THP_DISABLE) holds for this process";
  std::array<char, 64> text = {};
  const int fd = ::open("/sys/kernel/mm/transparent_hugepage/enabled", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;  // not mounted, or a kernel without them: then madvise says so
  const ssize_t length = ::read(fd, text.data(), text.size());
  ::close(fd);
  if (length <= 0) return nullptr;
  const std::string_view words(text.data(), static_cast<size_t>(length));
  return words.find("[never]") == std::string_view::npos ? nullptr : "transparent_hugepage/enabled is never";
}

constexpr MemoryCalls kSystemCalls = {::mmap, ::munmap, ::madvise, transparent_pages_off};
const MemoryCalls* calls = &kSystemCalls;

struct Block {
  void* data = nullptr;
  size_t mapped = 0;
  omni_page_kind pages = OMNI_PAGES_PLAIN;
};

void* map(size_t bytes, int extra_flags) {
  void* memory = calls->mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | extra_flags, -1, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

// `bytes` (a multiple of the page size) at an address that is a multiple of 2 MiB: maps 2 MiB more and gives both ends back.
void* map_aligned(size_t bytes) {
  char* const base = static_cast<char*>(map(bytes + kHugePage, 0));
  if (base == nullptr) return nullptr;
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(base) % kHugePage) % kHugePage;
  if (before > 0) calls->munmap(base, before);
  if (before < kHugePage) calls->munmap(base + before + bytes, kHugePage - before);
  return base + before;
}

size_t round_up(size_t bytes, size_t unit) { return (bytes + unit - 1) / unit * unit; }

Block allocate_plain(size_t bytes) {
  Block block;
  block.mapped = round_up(bytes, static_cast<size_t>(::sysconf(_SC_PAGESIZE)));
  block.data = bytes < kHugePage ? map(block.mapped, 0) : map_aligned(block.mapped);
  return block;
}

// Transparent pages, or plain ones on the same address range with the refusal in *reason.
Block allocate_transparent(size_t bytes, const char** reason) {
  Block block;
  block.mapped = round_up(bytes, kHugePage);
  block.data = map_aligned(block.mapped);
  if (block.data == nullptr) return block;
  *reason = calls->transparent_pages_off();
  if (*reason == nullptr && calls->madvise(block.data, block.mapped, MADV_HUGEPAGE) != 0) *reason = strerrordesc_np(errno);
  if (*reason == nullptr) block.pages = OMNI_PAGES_TRANSPARENT;
  return block;
}

Block allocate_explicit(size_t bytes, const char** reason) {
  Block block;
  block.mapped = round_up(bytes, kHugePage);
  block.data = map(block.mapped, kExplicitHuge);
  block.pages = OMNI_PAGES_EXPLICIT;
  if (block.data == nullptr) *reason = strerrordesc_np(errno);
  return block;
}

omni_status out_of_memory(size_t bytes) {
  return fail(OMNI_ERR_OUT_OF_MEMORY, "mmap of %zu bytes: %s", bytes, strerrordesc_np(errno));
}

void fill(size_t bytes, const Block& block, omni_packed_memory* out) {
  out->pages = block.pages;
  out->data = block.data;
  out->bytes = bytes;
  out->mapped_bytes = block.mapped;
  out->huge_pages = (bytes + kHugePage - 1) / kHugePage;
}

omni_status allocate(size_t bytes, uint32_t flags, omni_packed_memory* out) {
  if (out == nullptr) return fail(OMNI_ERR_NULL, "out is NULL");
  if (out->size < sizeof(omni_packed_memory)) return fail(OMNI_ERR_STRUCT_SIZE, "omni_packed_memory.size is %u", out->size);
  if ((flags & ~kKnownFlags) != 0) return fail(OMNI_ERR_RANGE, "flags 0x%x: unknown bits 0x%x", flags, flags & ~kKnownFlags);
  if ((flags & OMNI_ALLOC_PLAIN) != 0 && (flags & OMNI_ALLOC_EXPLICIT_HUGE) != 0) {
    return fail(OMNI_ERR_RANGE, "flags 0x%x ask for plain and for explicit huge pages", flags);
  }
  if (bytes > SIZE_MAX / 2 - 2 * kHugePage) return fail(OMNI_ERR_OVERFLOW, "bytes is %zu", bytes);
  if (bytes == 0) {
    fill(0, Block(), out);
    return succeed();
  }
  const bool strict = (flags & OMNI_ALLOC_STRICT) != 0;
  const size_t huge_pages = (bytes + kHugePage - 1) / kHugePage;

  if ((flags & OMNI_ALLOC_PLAIN) != 0) {
    const Block block = allocate_plain(bytes);
    if (block.data == nullptr) return out_of_memory(bytes);
    // Where transparent pages are "always", plain ones must be asked for; a kernel without them refuses the advice, rightly.
    static_cast<void>(calls->madvise(block.data, block.mapped, MADV_NOHUGEPAGE));
    fill(bytes, block, out);
    return succeed();
  }

  const char* pool_reason = nullptr;
  if ((flags & OMNI_ALLOC_EXPLICIT_HUGE) != 0) {
    const Block block = allocate_explicit(bytes, &pool_reason);
    if (block.data != nullptr) {
      fill(bytes, block, out);
      return succeed();
    }
    if (strict) {
      return fail(OMNI_ERR_OUT_OF_MEMORY, "%zu huge pages of 2 MiB are not to be had: %s (vm.nr_hugepages)", huge_pages,
                  pool_reason);
    }
  }

  const char* transparent_reason = nullptr;
  const Block block = allocate_transparent(bytes, &transparent_reason);
  if (block.data == nullptr) return out_of_memory(bytes);
  if (transparent_reason != nullptr && strict) {
    calls->munmap(block.data, block.mapped);
    return fail(OMNI_ERR_OUT_OF_MEMORY, "%zu transparent pages of 2 MiB are not to be had: %s", huge_pages, transparent_reason);
  }
  fill(bytes, block, out);
  if (pool_reason != nullptr && transparent_reason != nullptr) {
    return succeed_with("plain pages for %zu huge pages of 2 MiB: no explicit ones (%s), no transparent ones (%s)", huge_pages,
                        pool_reason, transparent_reason);
  }
  if (pool_reason != nullptr) {
    return succeed_with("transparent pages for %zu explicit huge pages of 2 MiB: %s (vm.nr_hugepages)", huge_pages, pool_reason);
  }
  if (transparent_reason != nullptr) {
    return succeed_with("plain pages for %zu transparent pages of 2 MiB: %s", huge_pages, transparent_reason);
  }
  return succeed();
}

}  // namespace

const MemoryCalls& system_memory_calls() { return kSystemCalls; }

void set_memory_calls(const MemoryCalls* replacement) { calls = replacement == nullptr ? &kSystemCalls : replacement; }

}  // namespace okl

extern "C" {

omni_status omni_packed_alloc(size_t bytes, uint32_t flags, omni_packed_memory* out) { return okl::allocate(bytes, flags, out); }

void omni_packed_free(omni_packed_memory* memory) {
  if (memory == nullptr || memory->data == nullptr) return;
  okl::calls->munmap(memory->data, memory->mapped_bytes);
  memory->data = nullptr;
  memory->bytes = memory->mapped_bytes = 0;
  memory->huge_pages = 0;
}

}  // extern "C"
