// SPDX-License-Identifier: Apache-2.0
#include "reference/io/pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>

namespace ref {
namespace {

// Whole pages of a range that lie in it.
std::span<const std::byte> whole_pages(std::span<const std::byte> bytes) {
  const auto page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(bytes.data()), end = begin + bytes.size();
  const uintptr_t first = (begin + page - 1) / page * page, last = end / page * page;
  if (bytes.empty() || first >= last) return {};
  return {reinterpret_cast<const std::byte*>(first), last - first};
}

}  // namespace

void release_pages(std::span<const std::byte> bytes) {
  const auto pages = whole_pages(bytes);
  // Only advice about a file mapping: the next access reads the pages back from the cache.
  if (!pages.empty()) ::madvise(const_cast<std::byte*>(pages.data()), pages.size(), MADV_DONTNEED);
}

void request_pages(std::span<const std::byte> bytes) {
  const auto pages = whole_pages(bytes);
  if (!pages.empty()) ::madvise(const_cast<std::byte*>(pages.data()), pages.size(), MADV_WILLNEED);
}

}  // namespace ref
