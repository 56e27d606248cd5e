// SPDX-License-Identifier: Apache-2.0
// omni_repack against whole-matrix packing by definition: every source, every destination, ragged shapes, strides, guard pages.
#include "omni/repack.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "kernels/format/format.h"
#include "kernels/repack/code_tile.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/reference_formats.h"
#include "tests/support/threads.h"

namespace okl::test {
namespace {

omni_repack_args arguments(omni_format from, omni_format to, int64_t n, int64_t k) {
  omni_repack_args args = {};
  args.size = sizeof args;
  args.source_format = static_cast<uint16_t>(from);
  args.destination_format = static_cast<uint16_t>(to);
  args.n = n;
  args.k = k;
  return args;
}

struct Shape {
  int64_t n, k;
};

// Each class of N mod 64, and K around bytes, words, the kernels' steps and the tiles of 512.
constexpr Shape shapes[] = {{1, 1},     {8, 80},     {4, 4304},  {15, 31},    {16, 32},   {17, 33},   {32, 96},  {33, 7},
                            {47, 64},   {48, 160},   {49, 63},   {63, 65},    {64, 64},   {64, 127},  {65, 128}, {80, 513},
                            {96, 1024}, {112, 1030}, {113, 96},  {127, 31},   {128, 16},  {130, 97},  {192, 48}, {208, 80},
                            {64, 512},  {64, 1056},  {72, 1024}, {120, 2080}, {256, 130}, {100, 4304}};

TEST(Repack, EverySourceToEveryDestination) {
  const uint32_t three = 3;
  const omni_parallel runners[] = {backwards(1), backwards(2), fresh_threads(&three)};
  size_t turn = 0;
  for (const Shape& shape : shapes) {
    const Codes codes = Codes::synthetic(shape.n, shape.k, 7);
    for (const omni_format from : kSources) {
      const std::vector<uint8_t> source = reference_pack(from, codes);
      for (const omni_format to : kDestinations) {
        const std::vector<uint8_t> expected = reference_pack(to, codes);
        const Flush flush = turn % 2 == 0 ? Flush::kFront : Flush::kBack;
        GuardedBuffer in(source.size(), flush, static_cast<size_t>(element_bytes(from)));
        std::memcpy(in.data(), source.data(), source.size());
        in.make_read_only();
        GuardedBuffer out(expected.size(), flush, is_blocked(to) ? 16 : static_cast<size_t>(element_bytes(to)));
        omni_repack_args args = arguments(from, to, shape.n, shape.k);
        args.source = in.data();
        args.source_bytes = source.size();
        args.destination = out.data();
        args.destination_bytes = expected.size();
        args.parallel = &runners[turn++ % 3];
        ASSERT_EQ(omni_repack(&args), OMNI_OK) << omni_last_error();
        ASSERT_EQ(std::memcmp(out.data(), expected.data(), expected.size()), 0)
            << format_name(from) << " to " << format_name(to) << ", n " << shape.n << ", k " << shape.k;
        ASSERT_TRUE(out.intact());
      }
    }
  }
}

// Rows of a larger array: what lies between them is neither looked at nor written.
TEST(Repack, LeadingDimensions) {
  for (const Shape& shape : {Shape{8, 80}, Shape{65, 513}, Shape{130, 97}}) {
    const Codes codes = Codes::synthetic(shape.n, shape.k, 8);
    for (const omni_format from : kSources) {
      for (const omni_format to : kDestinations) {
        const std::vector<uint8_t> source = reference_pack(from, codes), expected = reference_pack(to, codes);
        omni_repack_args args = arguments(from, to, shape.n, shape.k);
        const auto spread = [&](omni_format format, int64_t extra, const std::vector<uint8_t>& dense, uint8_t fill) {
          if (is_blocked(format)) return dense;
          const size_t row = static_cast<size_t>(dense_ld(format, shape.n, shape.k) * element_bytes(format));
          const size_t pitch = row + static_cast<size_t>(extra * element_bytes(format)), rows = dense.size() / row;
          std::vector<uint8_t> wide((rows - 1) * pitch + row, fill);
          for (size_t r = 0; r < rows; ++r) std::memcpy(wide.data() + r * pitch, dense.data() + r * row, row);
          return wide;
        };
        const std::vector<uint8_t> wide_source = spread(from, 5, source, 0xFF), wide_expected = spread(to, 3, expected, 0xA5);
        GuardedBuffer in = GuardedBuffer::copy_of(std::span<const uint8_t>(wide_source));
        GuardedBuffer aligned_in(wide_source.size(), Flush::kBack, 4);
        std::memcpy(aligned_in.data(), wide_source.data(), wide_source.size());
        GuardedBuffer out(wide_expected.size(), Flush::kBack, 16);
        args.source = element_bytes(from) == 1 ? in.data() : aligned_in.data();
        args.source_bytes = wide_source.size();
        args.source_ld = is_blocked(from) ? 0 : dense_ld(from, shape.n, shape.k) + 5;
        args.destination = out.data();
        args.destination_bytes = wide_expected.size();
        args.destination_ld = is_blocked(to) ? 0 : dense_ld(to, shape.n, shape.k) + 3;
        ASSERT_EQ(omni_repack(&args), OMNI_OK) << omni_last_error();
        ASSERT_EQ(std::memcmp(out.data(), wide_expected.data(), wide_expected.size()), 0)
            << format_name(from) << " to " << format_name(to) << ", n " << shape.n << ", k " << shape.k;
      }
    }
  }
}

// Rows of 80 codes in blocks of 32 are stored as 96 nibbles; the 16 at the end of each row are 15.
TEST(Repack, PaddingNibblesOfRowsAreNotLookedAt) {
  for (const Shape& shape : {Shape{8, 80}, Shape{4, 4304}}) {
    const int64_t nibbles = (shape.k + 31) / 32 * 32;
    Codes codes{shape.n, shape.k, std::vector<uint8_t>(static_cast<size_t>(shape.n * shape.k))};
    std::vector<uint8_t> source(static_cast<size_t>(shape.n * nibbles / 2), 0xFF);
    for (int64_t c = 0; c < shape.n; ++c) {
      for (int64_t i = 0; i < shape.k; ++i) codes.values[static_cast<size_t>(c * shape.k + i)] = static_cast<uint8_t>(8 + c);
      for (int64_t j = 0; j < shape.k / 2; ++j)
        source[static_cast<size_t>(c * nibbles / 2 + j)] = static_cast<uint8_t>((8 + c) * 17);
    }
    const std::vector<uint8_t> expected = reference_pack(OMNI_FORMAT_TG4, codes);
    GuardedBuffer out(expected.size(), Flush::kBack, 16);
    omni_repack_args args = arguments(OMNI_FORMAT_ROW_PAIRS, OMNI_FORMAT_TG4, shape.n, shape.k);
    args.source = source.data();
    args.source_bytes = source.size();
    args.source_ld = nibbles / 2;
    args.destination = out.data();
    args.destination_bytes = out.size();
    ASSERT_EQ(omni_repack(&args), OMNI_OK) << omni_last_error();
    EXPECT_EQ(std::memcmp(out.data(), expected.data(), expected.size()), 0);
  }
}

std::vector<uint8_t> to_codes(omni_format from, const std::vector<uint32_t>& words, int64_t n, int64_t k, int64_t ld) {
  std::vector<uint8_t> codes(static_cast<size_t>(n * k), 0xEE);
  omni_repack_args args = arguments(from, OMNI_FORMAT_CODES_U8, n, k);
  args.source = words.data();
  args.source_bytes = words.size() * 4;
  args.source_ld = ld;
  args.destination = codes.data();
  args.destination_bytes = codes.size();
  EXPECT_EQ(omni_repack(&args), OMNI_OK) << omni_last_error();
  return codes;
}

TEST(Repack, WordOrders) {
  // AWQ: columns 0..7 of one word.
  EXPECT_EQ(to_codes(OMNI_FORMAT_AWQ, {0x76543210}, 8, 1, 0), (std::vector<uint8_t>{0, 4, 1, 5, 2, 6, 3, 7}));
  // compressed-tensors: inputs in order, stored value = signed + 8.
  const std::vector<uint8_t> row = to_codes(OMNI_FORMAT_CT_PACKED, {0x76543210, 0xFEDCBA98}, 1, 16, 0);
  for (int i = 0; i < 16; ++i) EXPECT_EQ(row[static_cast<size_t>(i)] - 8, i - 8);
  // GPTQ: inputs of one channel in one word.
  EXPECT_EQ(to_codes(OMNI_FORMAT_GPTQ, {0x76543210, 0xFEDCBA98}, 2, 3, 0), (std::vector<uint8_t>{0, 1, 2, 8, 9, 10}));
}

TEST(Repack, RowsOfWordsAreNotShiftedByTheirPadding) {
  const std::vector<uint8_t> codes = to_codes(OMNI_FORMAT_CT_PACKED, {0x99999999, 0xFFFF9999, 0xAAAAAAAA, 0x0000AAAA}, 2, 12, 2);
  for (int i = 0; i < 12; ++i) {
    EXPECT_EQ(codes[static_cast<size_t>(i)], 9);
    EXPECT_EQ(codes[static_cast<size_t>(12 + i)], 10);
  }
}

// The first position by row, then column, whatever the order in which tiles are read.
TEST(Repack, RefusesCodesAbove15AndNamesTheFirst) {
  const int64_t n = 200, k = 1300;
  const uint32_t three = 3;
  const omni_parallel runners[] = {backwards(1), backwards(8), fresh_threads(&three)};
  for (const omni_format to : kDestinations) {
    for (const omni_parallel& runner : runners) {
      Codes codes = Codes::synthetic(n, k, 9);
      for (const int64_t at : {70 * k + 1200, 71 * k + 3, 199 * k, 70 * k + 1299}) codes.values[static_cast<size_t>(at)] = 0x1F;
      std::vector<uint8_t> out(static_cast<size_t>(n * k * 4 + 64));
      omni_repack_args args = arguments(OMNI_FORMAT_CODES_U8, to, n, k);
      args.source = codes.values.data();
      args.source_bytes = codes.values.size();
      args.destination = out.data() + (64 - reinterpret_cast<uintptr_t>(out.data()) % 64);
      args.destination_bytes = out.size() - 64;
      args.parallel = &runner;
      EXPECT_EQ(omni_repack(&args), OMNI_ERR_CODE);
      EXPECT_STREQ(omni_last_error(), "code of row 70, column 1200 is 31, above 15");

      std::vector<int32_t> words(codes.values.size());
      std::transform(codes.values.begin(), codes.values.end(), words.begin(), [](uint8_t code) { return code & 15; });
      words[150 * k + 7] = 16;
      words[3 * k + 1299] = -1;
      words[3 * k + 1298] = 256 + 3;  // a byte of 3
      args.source_format = OMNI_FORMAT_CODES_I32;
      args.source = words.data();
      args.source_bytes = words.size() * 4;
      EXPECT_EQ(omni_repack(&args), OMNI_ERR_CODE);
      EXPECT_STREQ(omni_last_error(), "code of row 3, column 1298 is 259, above 15");
      words[3 * k + 1298] = 3;
      EXPECT_EQ(omni_repack(&args), OMNI_ERR_CODE);
      EXPECT_STREQ(omni_last_error(), "code of row 3, column 1299 is -1, above 15");
    }
  }
}

TEST(Repack, EachCodeBeyondTheNibbleIsSeenAtEveryPosition) {
  const int64_t n = 64, k = 160;  // one block; k ends inside a kernel's step
  std::vector<uint8_t> out(static_cast<size_t>(n * k));
  GuardedBuffer packed(static_cast<size_t>(n * k / 2), Flush::kBack, 16);
  Codes codes = Codes::synthetic(n, k, 10);
  omni_repack_args args = arguments(OMNI_FORMAT_CODES_U8, OMNI_FORMAT_TG4, n, k);
  args.source = codes.values.data();
  args.source_bytes = codes.values.size();
  args.destination = packed.data();
  args.destination_bytes = packed.size();
  const omni_parallel serial = backwards(1);
  args.parallel = &serial;
  for (int64_t at = 0; at < n * k; at += 7) {
    uint8_t& code = codes.values[static_cast<size_t>(at)];
    const uint8_t good = code;
    code = static_cast<uint8_t>(16 << at % 4);
    EXPECT_EQ(omni_repack(&args), OMNI_ERR_CODE) << at;
    code = good;
  }
  EXPECT_EQ(omni_repack(&args), OMNI_OK);
}

TEST(Repack, ActOrder) {
  const int64_t n = 70, k = 300, group = 64;
  std::vector<int32_t> g_idx(static_cast<size_t>(k)), order(static_cast<size_t>(k));
  for (int64_t i = 0; i < k; ++i) order[static_cast<size_t>(i)] = static_cast<int32_t>(i);
  std::stable_sort(order.begin(), order.end(), [](int32_t a, int32_t b) { return splitmix64(a) < splitmix64(b); });
  for (int64_t i = 0; i < k; ++i) g_idx[static_cast<size_t>(order[static_cast<size_t>(i)])] = static_cast<int32_t>(i / group);
  std::vector<int32_t> sorted(static_cast<size_t>(k));
  for (int64_t i = 0; i < k; ++i) sorted[static_cast<size_t>(i)] = static_cast<int32_t>(i);
  std::stable_sort(sorted.begin(), sorted.end(), [&](int32_t a, int32_t b) { return g_idx[a] < g_idx[b]; });

  const Codes codes = Codes::synthetic(n, k, 11);
  for (const omni_format from : kSources) {
    for (const omni_format to : kDestinations) {
      const std::vector<uint8_t> source = reference_pack(from, codes), expected = reference_pack(to, codes.permuted(sorted));
      GuardedBuffer in(source.size(), Flush::kBack, 4);
      std::memcpy(in.data(), source.data(), source.size());
      GuardedBuffer out(expected.size(), Flush::kBack, 16);
      std::vector<int32_t> permutation(static_cast<size_t>(k), -1);
      omni_repack_args args = arguments(from, to, n, k);
      args.source = in.data();
      args.source_bytes = in.size();
      args.destination = out.data();
      args.destination_bytes = out.size();
      args.g_idx = g_idx.data();
      args.group = static_cast<uint32_t>(group);
      args.k_permutation = permutation.data();
      ASSERT_EQ(omni_repack(&args), OMNI_OK) << omni_last_error();
      EXPECT_EQ(permutation, sorted);
      EXPECT_EQ(std::memcmp(out.data(), expected.data(), expected.size()), 0) << format_name(from) << " to " << format_name(to);
    }
  }

  // Groups of other sizes cannot be folded; nothing is written.
  std::vector<uint8_t> untouched(static_cast<size_t>(n * k), 0x77);
  std::vector<int32_t> permutation(static_cast<size_t>(k), -1);
  omni_repack_args args = arguments(OMNI_FORMAT_CODES_U8, OMNI_FORMAT_CODES_U8, n, k);
  args.source = codes.values.data();
  args.source_bytes = codes.values.size();
  args.destination = untouched.data();
  args.destination_bytes = untouched.size();
  args.g_idx = g_idx.data();
  args.k_permutation = permutation.data();
  args.group = static_cast<uint32_t>(group);
  for (const auto& [at, value] : std::initializer_list<std::pair<size_t, int32_t>>{{5, -1}, {6, 5}, {7, (g_idx[7] + 1) % 4}}) {
    const int32_t good = g_idx[at];
    g_idx[at] = value;
    EXPECT_EQ(omni_repack(&args), OMNI_ERR_GROUP) << at;
    g_idx[at] = good;
  }
  args.group = 48;
  EXPECT_EQ(omni_repack(&args), OMNI_ERR_GROUP);
  args.group = 64;
  args.k_permutation = nullptr;
  EXPECT_EQ(omni_repack(&args), OMNI_ERR_NULL);
  EXPECT_TRUE(std::all_of(untouched.begin(), untouched.end(), [](uint8_t byte) { return byte == 0x77; }));
  EXPECT_TRUE(std::all_of(permutation.begin(), permutation.end(), [](int32_t input) { return input == -1; }));
}

// Whatever the threads, so few tasks run at once that their tiles fit the limit.
TEST(Repack, TasksAreBoundedByTheTransientLimit) {
  const Codes codes = Codes::synthetic(40000, 8, 13);
  std::vector<uint8_t> out(codes.values.size());
  int64_t tasks = 0;
  const omni_parallel counting = {sizeof(omni_parallel), 1000000, &tasks,
                                  [](void* seen, int64_t count, omni_task task, void* context) {
                                    *static_cast<int64_t*>(seen) = count;
                                    for (int64_t i = 0; i < count; ++i) task(context, i);
                                  }};
  omni_repack_args args = arguments(OMNI_FORMAT_CODES_U8, OMNI_FORMAT_CODES_U8, codes.n, codes.k);
  args.source = codes.values.data();
  args.source_bytes = codes.values.size();
  args.destination = out.data();
  args.destination_bytes = out.size();
  args.parallel = &counting;
  ASSERT_EQ(omni_repack(&args), OMNI_OK) << omni_last_error();
  EXPECT_EQ(out, codes.values);
  EXPECT_GT(tasks, 32);
  EXPECT_LE(static_cast<size_t>(tasks) * sizeof(CodeTile), OMNI_REPACK_TRANSIENT_LIMIT);
}

TEST(Repack, BadArguments) {
  const Codes codes = Codes::synthetic(80, 96, 12);
  GuardedBuffer out(80 * 96 / 2, Flush::kBack, 16);
  omni_repack_args good = arguments(OMNI_FORMAT_CODES_U8, OMNI_FORMAT_TG4, 80, 96);
  good.source = codes.values.data();
  good.source_bytes = codes.values.size();
  good.destination = out.data();
  good.destination_bytes = out.size();
  const auto status = [&](const auto& change) {
    omni_repack_args args = good;
    change(args);
    const omni_status result = omni_repack(&args);
    EXPECT_TRUE(result == OMNI_OK || omni_last_error()[0] != '\0');
    for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out.data()[i], 0xA5);
    return result;
  };
  EXPECT_EQ(omni_repack(nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(status([](auto& a) { a.size = 8; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(status([](auto& a) { a.source_format = 0; }), OMNI_ERR_LAYOUT);
  EXPECT_EQ(status([](auto& a) { a.source_format = 27; }), OMNI_ERR_LAYOUT);
  EXPECT_EQ(status([](auto& a) { a.destination_format = OMNI_FORMAT_GPTQ; }), OMNI_ERR_LAYOUT);
  EXPECT_EQ(status([](auto& a) { a.n = -1; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(status([](auto& a) { a.k = 0; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(status([](auto& a) { a.n = int64_t{1} << 62; }), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(status([](auto& a) { a.k = INT64_MAX; }), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(status([](auto& a) { a.source = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(status([](auto& a) { a.destination = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(status([](auto& a) { --a.source_bytes; }), OMNI_ERR_BUFFER_SIZE);
  EXPECT_EQ(status([](auto& a) { --a.destination_bytes; }), OMNI_ERR_BUFFER_SIZE);
  EXPECT_EQ(status([](auto& a) { a.source_ld = 95; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(status([](auto& a) { a.source_ld = -96; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(status([](auto& a) { a.destination_ld = 48; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(status([](auto& a) { a.source_ld = 97; }), OMNI_ERR_BUFFER_SIZE);
  EXPECT_EQ(status([](auto& a) { a.source_ld = INT64_MAX; }), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(status([](auto& a) { a.destination = static_cast<uint8_t*>(a.destination) - 8; }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(status([](auto& a) { a.source_format = OMNI_FORMAT_AWQ, a.source = static_cast<const uint8_t*>(a.source) + 1; }),
            OMNI_ERR_ALIGNMENT);
  int32_t permutation[96];
  EXPECT_EQ(status([&](auto& a) { a.k_permutation = permutation; }), OMNI_ERR_NULL);
  omni_parallel parallel = backwards(1);
  EXPECT_EQ(status([&](auto& a) { a.parallel = &parallel, parallel.size = 1; }), OMNI_ERR_STRUCT_SIZE);
  parallel = backwards(0);
  EXPECT_EQ(status([&](auto& a) { a.parallel = &parallel; }), OMNI_ERR_RANGE);
  parallel = backwards(1);
  parallel.parallel_for = nullptr;
  EXPECT_EQ(status([&](auto& a) { a.parallel = &parallel; }), OMNI_ERR_NULL);
  EXPECT_EQ(status([](auto& a) { a.n = 0, a.source = nullptr, a.destination = nullptr; }), OMNI_OK);
  EXPECT_STREQ(omni_last_error(), "");
}

}  // namespace
}  // namespace okl::test
