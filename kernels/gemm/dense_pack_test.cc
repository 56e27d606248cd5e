// SPDX-License-Identifier: Apache-2.0
// omni_pack_dense and omni_unpack_dense: every byte's place, padding, rounding, scrubbing, round trips, threads, bad arguments.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "kernels/format/bf16.h"
#include "kernels/format/f16.h"
#include "omni/omni.h"
#include "tests/support/guarded_buffer.h"

namespace okl::test {
namespace {

int64_t bytes_of(omni_dtype type) { return type == OMNI_DTYPE_F32 ? 4 : 2; }

float value_of(omni_dtype type, uint32_t bits) {
  if (type == OMNI_DTYPE_F32) return std::bit_cast<float>(bits);
  return type == OMNI_DTYPE_F16 ? f16_to_float(static_cast<uint16_t>(bits)) : bf16_to_float(static_cast<uint16_t>(bits));
}

struct Problem {
  Problem(omni_format format, omni_dtype source_type, int64_t n, int64_t k, Flush flush, uint64_t seed, int64_t padding = 0)
      : type(source_type), ld(k + padding) {
    EXPECT_EQ(omni_layout_init(&layout, format, n, k, static_cast<uint32_t>(k), OMNI_DTYPE_NONE), OMNI_OK) << omni_last_error();
    const int64_t elements = n == 0 ? 0 : (n - 1) * ld + k;
    source = GuardedBuffer(static_cast<size_t>(elements * bytes_of(type)), flush, static_cast<size_t>(bytes_of(type)), 0xFF);
    std::mt19937_64 random(seed);
    for (int64_t row = 0; row < n; ++row) {
      for (int64_t i = 0; i < k; ++i) put(row, i, static_cast<uint32_t>(random()));
    }
    size_t bytes = 0;
    EXPECT_EQ(omni_packed_size(&layout, &bytes), OMNI_OK);
    packed = GuardedBuffer(bytes, flush, 16, 0xA5);
  }
  void put(int64_t row, int64_t i, uint32_t bits) {
    if (type == OMNI_DTYPE_F32) {
      source.as<uint32_t>()[row * ld + i] = bits;
    } else {
      source.as<uint16_t>()[row * ld + i] = static_cast<uint16_t>(bits);
    }
  }
  uint32_t get(int64_t row, int64_t i) const {
    return type == OMNI_DTYPE_F32 ? source.as<uint32_t>()[row * ld + i] : source.as<uint16_t>()[row * ld + i];
  }
  omni_pack_dense_args args() {
    omni_pack_dense_args a{};
    a.size = sizeof a;
    a.source_type = static_cast<uint16_t>(type);
    a.layout = layout;
    a.source = source.data();
    a.source_bytes = source.size();
    a.source_ld = ld;
    a.out = packed.data();
    a.out_bytes = packed.size();
    return a;
  }
  omni_unpack_dense_args unpack_args(GuardedBuffer& out, omni_dtype out_type) {
    omni_unpack_dense_args a{};
    a.size = sizeof a;
    a.out_type = static_cast<uint16_t>(out_type);
    a.layout = layout;
    a.weights = packed.data();
    a.weights_bytes = packed.size();
    a.n1 = layout.n;
    a.out = out.data();
    a.out_bytes = out.size();
    return a;
  }
  omni_pack_dense_result pack() {
    omni_pack_dense_result result{};
    result.size = sizeof result;
    const omni_pack_dense_args a = args();
    EXPECT_EQ(omni_pack_dense(&a, &result), OMNI_OK) << omni_last_error();
    return result;
  }

  omni_dtype type;
  int64_t ld;
  omni_layout layout{};
  GuardedBuffer source{0}, packed{0};
};

// docs/formats/w16.md once more: where an element stands, and that everything else is zero.
TEST(DensePack, EveryElementHasItsPlaceAndPaddingIsZero) {
  for (const omni_format format : {OMNI_FORMAT_W16, OMNI_FORMAT_W32}) {
    for (const omni_dtype type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F16, OMNI_DTYPE_F32}) {
      for (const int64_t n : {1, 16, 17, 63, 64, 65, 113, 150}) {
        for (const int64_t k : {1, 2, 31, 33, 64, 1030}) {
          Problem p(format, type, n, k, n % 2 == 0 ? Flush::kFront : Flush::kBack, static_cast<uint64_t>(n * 5000 + k), k % 3);
          p.pack();
          const int64_t padded_n = (n + 15) / 16 * 16, padded_k = format == OMNI_FORMAT_W16 ? (k + 31) / 32 * 32 : k;
          ASSERT_EQ(p.packed.size(), static_cast<size_t>(padded_n * padded_k * (format == OMNI_FORMAT_W16 ? 2 : 4)));
          for (int64_t row = 0; row < padded_n; ++row) {
            const int64_t first = row / 64 * 64, width = std::min<int64_t>(64, padded_n - first);
            for (int64_t i = 0; i < padded_k; ++i) {
              const float value = row < n && i < k ? value_of(type, p.get(row, i)) : 0.0F;
              uint32_t actual, expected;
              if (format == OMNI_FORMAT_W16) {
                actual = p.packed.as<uint16_t>()[first * padded_k + (i / 2 * width + row - first) * 2 + i % 2];
                expected = row < n && i < k && type == OMNI_DTYPE_BF16 ? p.get(row, i) : bf16_round_ieee(value);
              } else {
                actual = p.packed.as<uint32_t>()[first * padded_k + i * width + row - first];
                expected = std::bit_cast<uint32_t>(value);
              }
              ASSERT_EQ(actual, expected) << format << " " << type << " n=" << n << " k=" << k << " at " << row << ", " << i;
            }
          }
          EXPECT_TRUE(p.packed.intact());
        }
      }
    }
  }
}

TEST(DensePack, ScrubsAndCountsSmallValues) {
  constexpr uint16_t kBelow = 0x237F, kAt = 0x2380;  // the last value below 2^-56, and 2^-56
  Problem p(OMNI_FORMAT_W16, OMNI_DTYPE_BF16, 3, 5, Flush::kBack, 1);
  for (int64_t i = 0; i < 15; ++i) p.put(i / 5, i % 5, 0x3F80);
  p.put(0, 1, kBelow);
  p.put(1, 4, 0x8000 | kBelow);
  p.put(2, 0, 0x0001);
  p.put(2, 1, kAt);
  p.put(2, 2, 0x8000);
  p.put(2, 3, 0x8000 | kAt);

  omni_pack_dense_result result = p.pack();
  EXPECT_EQ(result.small_values, 3);
  EXPECT_EQ(result.layout.flags & OMNI_LAYOUT_SCRUBBED, 0);
  const auto at = [&](int64_t row, int64_t i) { return p.packed.as<uint16_t>()[(i / 2 * 16 + row) * 2 + i % 2]; };
  EXPECT_EQ(at(0, 1), kBelow);

  p.layout.flags |= OMNI_LAYOUT_SCRUBBED;
  result = p.pack();
  EXPECT_EQ(result.small_values, 3);
  EXPECT_NE(result.layout.flags & OMNI_LAYOUT_SCRUBBED, 0);
  EXPECT_EQ(at(0, 1), 0);
  EXPECT_EQ(at(1, 4), 0);
  EXPECT_EQ(at(2, 0), 0);
  EXPECT_EQ(at(2, 1), kAt);
  EXPECT_EQ(at(2, 2), 0x8000) << "a zero needs no scrubbing";
  EXPECT_EQ(at(2, 3), 0x8000 | kAt);

  // Weights that need none are shown to need none.
  for (int64_t i = 0; i < 15; ++i) p.put(i / 5, i % 5, 0xBF80);
  p.layout.flags &= static_cast<uint16_t>(~OMNI_LAYOUT_SCRUBBED);
  result = p.pack();
  EXPECT_EQ(result.small_values, 0);
  EXPECT_NE(result.layout.flags & OMNI_LAYOUT_SCRUBBED, 0);
  EXPECT_EQ(omni_layout_check(&result.layout), OMNI_OK);
}

TEST(DensePack, RefusesInexactValuesByPlace) {
  Problem p(OMNI_FORMAT_W16, OMNI_DTYPE_F32, 70, 40, Flush::kBack, 1);
  for (int64_t row = 0; row < 70; ++row) {
    for (int64_t i = 0; i < 40; ++i) p.put(row, i, std::bit_cast<uint32_t>(1.5F));
  }
  p.put(0, 0, std::bit_cast<uint32_t>(std::numeric_limits<float>::quiet_NaN()));
  omni_pack_dense_args args = p.args();
  args.refuse_inexact = 1;
  EXPECT_EQ(omni_pack_dense(&args, nullptr), OMNI_OK) << omni_last_error();
  p.put(69, 39, 0x3F800001);
  p.put(66, 35, 0x3F800001);
  EXPECT_EQ(omni_pack_dense(&args, nullptr), OMNI_ERR_INEXACT);
  EXPECT_NE(std::string(omni_last_error()).find("row 66, column 35"), std::string::npos) << omni_last_error();
}

TEST(DensePack, UnpackIsTheInverse) {
  for (const int64_t n : {1, 49, 64, 130}) {
    for (const int64_t k : {1, 7, 96}) {
      for (const omni_dtype type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
        const omni_format format = type == OMNI_DTYPE_BF16 ? OMNI_FORMAT_W16 : OMNI_FORMAT_W32;
        Problem p(format, type, n, k, Flush::kBack, 9);
        p.pack();
        GuardedBuffer out(p.source.size(), Flush::kBack, static_cast<size_t>(bytes_of(type)));
        omni_unpack_dense_args args = p.unpack_args(out, type);
        ASSERT_EQ(omni_unpack_dense(&args), OMNI_OK) << omni_last_error();
        EXPECT_EQ(std::memcmp(out.data(), p.source.data(), out.size()), 0) << n << " " << k;
        EXPECT_TRUE(out.intact());
      }
    }
  }
  // A range of rows, widened, with a leading dimension.
  Problem p(OMNI_FORMAT_W16, OMNI_DTYPE_BF16, 130, 33, Flush::kBack, 4);
  p.pack();
  GuardedBuffer out(static_cast<size_t>(5 * 40 * 4), Flush::kBack, 4);
  omni_unpack_dense_args args = p.unpack_args(out, OMNI_DTYPE_F32);
  args.n0 = 61;
  args.n1 = 66;
  args.out_ld = 40;
  ASSERT_EQ(omni_unpack_dense(&args), OMNI_OK) << omni_last_error();
  for (int64_t row = 61; row < 66; ++row) {
    for (int64_t i = 0; i < 40; ++i) {
      const uint32_t bits = out.as<uint32_t>()[(row - 61) * 40 + i];
      EXPECT_EQ(bits, i < 33 ? p.get(row, i) << 16 : 0xA5A5A5A5U) << row << ", " << i;
    }
  }
}

TEST(DensePack, ThreadsDoNotChangeTheBytes) {
  Problem p(OMNI_FORMAT_W16, OMNI_DTYPE_F32, 200, 2100, Flush::kBack, 3);
  p.layout.flags |= OMNI_LAYOUT_SCRUBBED;
  const int64_t counted = p.pack().small_values;
  const std::vector<uint8_t> once(p.packed.data(), p.packed.data() + p.packed.size());
  omni_parallel backwards{};
  backwards.size = sizeof backwards;
  backwards.threads = 7;
  backwards.parallel_for = [](void*, int64_t count, omni_task task, void* context) {
    for (int64_t i = count; i-- > 0;) task(context, i);
  };
  std::memset(p.packed.data(), 0x11, p.packed.size());
  omni_pack_dense_args args = p.args();
  args.parallel = &backwards;
  omni_pack_dense_result result{};
  result.size = sizeof result;
  ASSERT_EQ(omni_pack_dense(&args, &result), OMNI_OK);
  EXPECT_EQ(result.small_values, counted);
  EXPECT_EQ(std::memcmp(once.data(), p.packed.data(), once.size()), 0);
}

TEST(DensePack, RefusesBadArguments) {
  Problem p(OMNI_FORMAT_W16, OMNI_DTYPE_F32, 20, 40, Flush::kBack, 1);
  const auto refused = [&](omni_status expected, const char* word, const std::function<void(omni_pack_dense_args*)>& spoil) {
    omni_pack_dense_args args = p.args();
    spoil(&args);
    EXPECT_EQ(omni_pack_dense(&args, nullptr), expected) << word;
    EXPECT_NE(std::string(omni_last_error()).find(word), std::string::npos) << omni_last_error();
    for (size_t i = 0; i < p.packed.size(); ++i) ASSERT_EQ(p.packed.data()[i], 0xA5) << word;
  };
  refused(OMNI_ERR_STRUCT_SIZE, "omni_pack_dense_args.size", [](auto* a) { a->size = 8; });
  refused(OMNI_ERR_TYPE, "source_type 4", [](auto* a) { a->source_type = OMNI_DTYPE_U8; });
  refused(OMNI_ERR_LAYOUT, "neither w16 nor w32",
          [](auto* a) { omni_layout_init(&a->layout, OMNI_FORMAT_W8S, 20, 40, 32, OMNI_DTYPE_F32); });
  refused(OMNI_ERR_STRIDE, "source_ld 39", [](auto* a) { a->source_ld = 39; });
  refused(OMNI_ERR_OVERFLOW, "source_ld", [](auto* a) { a->source_ld = INT64_MAX / 2; });
  refused(OMNI_ERR_NULL, "source is NULL", [](auto* a) { a->source = nullptr; });
  refused(OMNI_ERR_ALIGNMENT, "source is", [](auto* a) { a->source = static_cast<const uint8_t*>(a->source) + 1; });
  refused(OMNI_ERR_BUFFER_SIZE, "source_bytes", [](auto* a) { a->source_bytes -= 1; });
  refused(OMNI_ERR_NULL, "out is NULL", [](auto* a) { a->out = nullptr; });
  refused(OMNI_ERR_ALIGNMENT, "out is", [](auto* a) { a->out = static_cast<uint8_t*>(a->out) + 8; });
  refused(OMNI_ERR_BUFFER_SIZE, "out_bytes", [](auto* a) { a->out_bytes -= 1; });
  omni_parallel broken{};
  refused(OMNI_ERR_STRUCT_SIZE, "parallel", [&](auto* a) { a->parallel = &broken; });
  omni_pack_dense_result result{};
  const omni_pack_dense_args good = p.args();
  EXPECT_EQ(omni_pack_dense(&good, &result), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(omni_pack_dense(nullptr, nullptr), OMNI_ERR_NULL);

  p.pack();
  GuardedBuffer out(20 * 40 * 4, Flush::kBack, 4, 0x5A);
  const auto unpack_refused = [&](omni_status expected, const char* word,
                                  const std::function<void(omni_unpack_dense_args*)>& spoil) {
    omni_unpack_dense_args args = p.unpack_args(out, OMNI_DTYPE_F32);
    spoil(&args);
    EXPECT_EQ(omni_unpack_dense(&args), expected) << word;
    EXPECT_NE(std::string(omni_last_error()).find(word), std::string::npos) << omni_last_error();
    for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out.data()[i], 0x5A) << word;
  };
  unpack_refused(OMNI_ERR_STRUCT_SIZE, "omni_unpack_dense_args.size", [](auto* a) { a->size = 8; });
  unpack_refused(OMNI_ERR_TYPE, "out_type 3", [](auto* a) { a->out_type = OMNI_DTYPE_F16; });
  unpack_refused(OMNI_ERR_TYPE, "w32", [](auto* a) {
    a->out_type = OMNI_DTYPE_BF16;
    a->layout.format = OMNI_FORMAT_W32;
  });
  unpack_refused(OMNI_ERR_RANGE, "rows [3, 21)", [](auto* a) {
    a->n0 = 3;
    a->n1 = 21;
  });
  unpack_refused(OMNI_ERR_STRIDE, "out_ld 39", [](auto* a) { a->out_ld = 39; });
  unpack_refused(OMNI_ERR_BUFFER_SIZE, "out_bytes", [](auto* a) { a->out_bytes -= 1; });
  unpack_refused(OMNI_ERR_NULL, "weights", [](auto* a) { a->weights = nullptr; });
  unpack_refused(OMNI_ERR_BUFFER_SIZE, "weights_bytes", [](auto* a) { a->weights_bytes -= 1; });
  EXPECT_EQ(omni_unpack_dense(nullptr), OMNI_ERR_NULL);
}

TEST(DensePack, EmptyMatrixNeedsNoPointers) {
  omni_pack_dense_args args{};
  args.size = sizeof args;
  args.source_type = OMNI_DTYPE_F32;
  ASSERT_EQ(omni_layout_init(&args.layout, OMNI_FORMAT_W16, 0, 40, 40, OMNI_DTYPE_NONE), OMNI_OK);
  EXPECT_EQ(omni_pack_dense(&args, nullptr), OMNI_OK) << omni_last_error();
}

}  // namespace
}  // namespace okl::test
