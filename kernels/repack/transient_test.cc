// SPDX-License-Identifier: Apache-2.0
// The shapes of a real decoder: chunked against whole-matrix packing, and what a repack holds while it runs, by a counting
// allocator and by resident memory.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <new>
#include <string>
#include <vector>

#include "omni/omni.h"
#include "tests/support/reference_formats.h"
#include "tests/support/synthetic.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define OMNI_TEST_SANITIZED 1
#else
#define OMNI_TEST_SANITIZED 0
#endif

namespace {

std::atomic<size_t> live_bytes{0}, most_bytes{0};

#if !OMNI_TEST_SANITIZED
void* counted(size_t bytes, size_t alignment) {
  alignment = std::max(alignment, size_t{16});
  auto* block = static_cast<unsigned char*>(std::aligned_alloc(alignment, (bytes + 2 * alignment - 1) / alignment * alignment));
  if (block == nullptr) throw std::bad_alloc();
  std::memcpy(block, &bytes, sizeof bytes);
  const size_t live = live_bytes += bytes;
  for (size_t most = most_bytes; most < live && !most_bytes.compare_exchange_weak(most, live);) {
  }
  return block + alignment;
}
void uncounted(void* pointer, size_t alignment) noexcept {
  if (pointer == nullptr) return;
  auto* block = static_cast<unsigned char*>(pointer) - std::max(alignment, size_t{16});
  size_t bytes = 0;
  std::memcpy(&bytes, block, sizeof bytes);
  live_bytes -= bytes;
  std::free(block);
}
#endif

}  // namespace

#if !OMNI_TEST_SANITIZED
void* operator new(size_t bytes) { return counted(bytes, 0); }
void* operator new(size_t bytes, const std::nothrow_t&) noexcept { return counted(bytes, 0); }
void* operator new(size_t bytes, std::align_val_t alignment) { return counted(bytes, static_cast<size_t>(alignment)); }
void operator delete(void* pointer) noexcept { uncounted(pointer, 0); }
void operator delete(void* pointer, size_t) noexcept { uncounted(pointer, 0); }
void operator delete(void* pointer, std::align_val_t alignment) noexcept { uncounted(pointer, static_cast<size_t>(alignment)); }
void operator delete(void* pointer, size_t, std::align_val_t alignment) noexcept {
  uncounted(pointer, static_cast<size_t>(alignment));
}
#endif

namespace okl::test {
namespace {

std::vector<uint8_t> synthetic_codes(int64_t n, int64_t k, uint64_t seed) {
  std::vector<uint8_t> codes(static_cast<size_t>(n * k));
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(splitmix64(seed + i) >> 60);
  return codes;
}

omni_status repack(omni_format from, const std::vector<uint8_t>& source, omni_format to, std::vector<uint8_t>& out, int64_t n,
                   int64_t k, const std::vector<int32_t>* g_idx = nullptr, std::vector<int32_t>* permutation = nullptr) {
  omni_repack_args args = {};
  args.size = sizeof args;
  args.source_format = static_cast<uint16_t>(from);
  args.destination_format = static_cast<uint16_t>(to);
  args.n = n, args.k = k;
  args.source = source.data();
  args.source_bytes = source.size();
  args.destination = out.data();
  args.destination_bytes = out.size();
  if (g_idx != nullptr) args.g_idx = g_idx->data(), args.group = 128, args.k_permutation = permutation->data();
  return omni_repack(&args);
}

size_t status_kib(const char* field) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(field)) return static_cast<size_t>(std::strtoull(line.c_str() + std::strlen(field), nullptr, 10));
  }
  return 0;
}

// Runs `work` and returns the most bytes that it held on the heap, and by how much resident memory rose above its start.
struct Held {
  size_t heap;
  size_t resident;  // 0 where the high-water mark cannot be restarted
};
template <typename Work>
Held measure(const Work& work) {
  std::ofstream("/proc/self/clear_refs") << "5";  // restarts the high-water mark
  const size_t resident = status_kib("VmRSS:"), live = live_bytes;
  const bool restarted = status_kib("VmHWM:") < resident + 512;
  most_bytes = live;
  work();
  const size_t most = most_bytes, peak = status_kib("VmHWM:");
  return {most - live, restarted && peak > resident ? (peak - resident) << 10 : 0};
}

struct Case {
  const char* name;
  int64_t n, k;
};
constexpr Case cases[] = {
    {"gate_up", 13312, 2048}, {"down", 2048, 6656}, {"qkv", 3072, 2048}, {"head", 131072, 2048}, {"ragged", 5000, 2500}};

class Chunked : public testing::TestWithParam<Case> {};

TEST_P(Chunked, BytesOfTheWholeMatrixPathWithinTheTransient) {
  const auto [name, n, k] = GetParam();
  const Codes codes{n, k, synthetic_codes(n, k, 1)};
  std::vector<int32_t> g_idx(static_cast<size_t>(k)), sorted(static_cast<size_t>(k)), permutation(static_cast<size_t>(k), 0);
  const int64_t groups = (k + 127) / 128;
  for (int64_t i = 0, at = 0; i < groups; ++i) {
    for (int64_t j = i; j < k; j += groups) sorted[static_cast<size_t>(at++)] = static_cast<int32_t>(j);
  }
  for (int64_t i = 0; i < k; ++i) g_idx[static_cast<size_t>(sorted[static_cast<size_t>(i)])] = static_cast<int32_t>(i / 128);
  const std::vector<uint8_t> packed = reference_pack(OMNI_FORMAT_TG4, codes);

  const omni_format sources[] = {OMNI_FORMAT_CODES_U8,  OMNI_FORMAT_GPTQ,       OMNI_FORMAT_AWQ,
                                 OMNI_FORMAT_CT_PACKED, OMNI_FORMAT_ROW_HALVES, OMNI_FORMAT_TG4};
  for (const omni_format from : sources) {
    if (n > 100000 && from != OMNI_FORMAT_CODES_U8 && from != OMNI_FORMAT_GPTQ) continue;  // memory and time
    const omni_format to = from == OMNI_FORMAT_TG4 ? OMNI_FORMAT_ROW_HALVES : OMNI_FORMAT_TG4;
    const std::vector<uint8_t> source = reference_pack(from, codes),
                               expected = to == OMNI_FORMAT_TG4 ? packed : reference_pack(to, codes);
    std::vector<uint8_t> out(expected.size(), 0xEE);
    const auto run = [&] { ASSERT_EQ(repack(from, source, to, out, n, k), OMNI_OK) << omni_last_error(); };
    run();  // starts threads and generates code
    const Held held = measure(run);
    EXPECT_EQ(std::memcmp(out.data(), expected.data(), expected.size()), 0) << name << " from format " << from;
    if (OMNI_TEST_SANITIZED == 0) {
      EXPECT_LE(held.heap, OMNI_REPACK_TRANSIENT_LIMIT);
      EXPECT_LE(held.resident, OMNI_REPACK_TRANSIENT_LIMIT) << "from format " << from;
    }
    if (from != OMNI_FORMAT_GPTQ || k % 128 != 0) continue;
    const std::vector<uint8_t> reordered = reference_pack(OMNI_FORMAT_TG4, codes.permuted(sorted));
    const Held act_order = measure([&] { ASSERT_EQ(repack(from, source, to, out, n, k, &g_idx, &permutation), OMNI_OK); });
    EXPECT_EQ(permutation, sorted);
    EXPECT_EQ(std::memcmp(out.data(), reordered.data(), reordered.size()), 0) << name << ", act-order";
    if (OMNI_TEST_SANITIZED == 0) {
      EXPECT_GT(act_order.heap, 0U);  // the counters do count: one word a group
      EXPECT_LE(act_order.heap, OMNI_REPACK_TRANSIENT_LIMIT);
      EXPECT_LE(act_order.resident, OMNI_REPACK_TRANSIENT_LIMIT);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Chunked, testing::ValuesIn(cases), [](const auto& info) { return std::string(info.param.name); });

// What the measure would say about a whole-matrix transient.
TEST(Held, SeesATransientOfTheMatrix) {
  if (OMNI_TEST_SANITIZED != 0) GTEST_SKIP() << "the allocator is the sanitizer's";
  const Held held = measure([] {
    std::vector<uint8_t> transient(size_t{8} << 20, 1);
    ASSERT_EQ(transient[transient.size() / 2], 1);
  });
  EXPECT_GT(held.heap, OMNI_REPACK_TRANSIENT_LIMIT);
  if (held.resident == 0) GTEST_SKIP() << "/proc/self/clear_refs is refused here: resident memory is not measured";
  EXPECT_GT(held.resident, OMNI_REPACK_TRANSIENT_LIMIT);
}

}  // namespace
}  // namespace okl::test
