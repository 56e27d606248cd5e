// SPDX-License-Identifier: Apache-2.0
#include "tools/probe/bandwidth.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstring>
#include <thread>

#include "omni/omni.h"

namespace probe {
namespace {

constexpr int kPasses = 5;

// Sixteen bytes: what every x86-64 and AArch64 processor loads at once.
typedef uint64_t Vector __attribute__((vector_size(16)));

// Eight independent chains hide the latency of the OR; a result that is used keeps the loads alive.
uint64_t read_all(const Vector* data, size_t count) {
  Vector acc[8] = {};
  for (size_t i = 0; i + 8 <= count; i += 8) {
    for (size_t j = 0; j < 8; ++j) acc[j] |= data[i + j];
  }
  Vector all = {};
  for (const Vector& a : acc) all |= a;
  return all[0] | all[1];
}

uint64_t buffer_bytes(uint64_t last_level_cache) {
  constexpr uint64_t kMiB = 1 << 20;
  uint64_t bytes = std::clamp(2 * last_level_cache, 256 * kMiB, 1024 * kMiB);
  const long pages = sysconf(_SC_AVPHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  if (pages > 0 && page > 0) bytes = std::min(bytes, static_cast<uint64_t>(pages) * static_cast<uint64_t>(page) / 4);
  return std::max(bytes / (2 * kMiB) * (2 * kMiB), 2 * kMiB);
}

// Each thread reads one contiguous share, forward; the time is that of the slowest.
double best_seconds(const omni_packed_memory& memory, uint32_t threads, std::atomic<uint64_t>& sink) {
  const size_t count = memory.bytes / sizeof(Vector), share = count / threads;
  double best = 1e9;
  std::chrono::steady_clock::time_point start;
  std::barrier begin(threads, [&start]() noexcept { start = std::chrono::steady_clock::now(); });
  std::barrier end(threads, [&]() noexcept {
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  });
  const auto work = [&](uint32_t thread) {
    const Vector* data = static_cast<const Vector*>(memory.data) + thread * share;
    for (int pass = 0; pass < kPasses; ++pass) {
      begin.arrive_and_wait();
      sink.fetch_or(read_all(data, share), std::memory_order_relaxed);
      end.arrive_and_wait();
    }
  };
  std::vector<std::jthread> others;
  for (uint32_t t = 1; t < threads; ++t) others.emplace_back(work, t);
  work(0);
  return best;
}

const char* page_text(omni_page_kind pages) {
  switch (pages) {
    case OMNI_PAGES_PLAIN:
      return "4 KiB";
    case OMNI_PAGES_TRANSPARENT:
      return "2 MiB transparent";
    case OMNI_PAGES_EXPLICIT:
      return "2 MiB pool";
  }
  return "unknown";
}

}  // namespace

std::vector<Bandwidth> measure_bandwidth(uint64_t last_level_cache, uint32_t threads, std::string* error) {
  std::vector<Bandwidth> results;
  std::atomic<uint64_t> sink{0};
  for (const uint32_t flags : {uint32_t{OMNI_ALLOC_PLAIN}, uint32_t{OMNI_ALLOC_EXPLICIT_HUGE}}) {
    omni_packed_memory memory{};
    memory.size = sizeof memory;
    if (omni_packed_alloc(buffer_bytes(last_level_cache), flags, &memory) != OMNI_OK) {
      *error = omni_last_error();
      continue;
    }
    std::memset(memory.data, 1, memory.bytes);  // untouched pages would all be the one zero page
    for (const uint32_t count : {1U, threads}) {
      if (count == 1 && !results.empty() && results.back().pages == page_text(memory.pages)) break;  // the second kind was refused
      const double seconds = best_seconds(memory, count, sink);
      const uint64_t bytes = memory.bytes / sizeof(Vector) / count * count * sizeof(Vector);
      results.push_back({count, page_text(memory.pages), bytes, static_cast<double>(bytes) / seconds * 1e-9});
      if (threads == 1) break;
    }
    omni_packed_free(&memory);
  }
  return results;
}

}  // namespace probe
