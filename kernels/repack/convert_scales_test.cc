// SPDX-License-Identifier: Apache-2.0
// Scale arrays of w4s and w8s, and the conversion between tg4 and w4s: lossless, or refused with the place.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/format/bf16.h"
#include "omni/repack.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/synthetic.h"

namespace okl::test {
namespace {

constexpr int64_t kN = 37, kK = 200, kGroups = 4;
constexpr uint32_t kGroup = 64;
constexpr size_t kElements = kN * kGroups;

omni_layout layout_of(omni_format format, omni_dtype type, bool zeros = false) {
  omni_layout layout = {};
  EXPECT_EQ(omni_layout_init(&layout, format, kN, kK, kGroup, type), OMNI_OK) << omni_last_error();
  if (zeros) layout.flags |= OMNI_LAYOUT_ZEROS;
  return layout;
}
uint8_t zero_point(size_t i) { return static_cast<uint8_t>(splitmix64(i) >> 60); }
uint16_t scale_bits(size_t i) {
  return synthetic_scale_zero(1, kN, static_cast<int64_t>(i) / kN, static_cast<int64_t>(i) % kN).scale;
}

omni_status convert(const omni_layout& from, const void* source, size_t source_bytes, const omni_layout& to, GuardedBuffer& out) {
  omni_convert_scales_args args = {};
  args.size = sizeof args;
  args.source_layout = from;
  args.destination_layout = to;
  args.source = source;
  args.source_bytes = source_bytes;
  args.destination = out.data();
  args.destination_bytes = out.size();
  return omni_convert_scales(&args);
}

TEST(PackScales, W4sWithAndWithoutZeroPoints) {
  std::vector<float> scales;
  std::vector<uint8_t> points;
  for (size_t i = 0; i < kElements; ++i) {
    scales.push_back(bf16_to_float(scale_bits(i)));
    points.push_back(zero_point(i));
  }
  for (const omni_dtype type : {OMNI_DTYPE_F32, OMNI_DTYPE_BF16}) {
    const size_t element = type == OMNI_DTYPE_F32 ? 4 : 2;
    GuardedBuffer out(kElements * (element + 1), Flush::kBack, element);
    omni_scales_args args = {};
    args.size = sizeof args;
    args.scale_type = OMNI_DTYPE_F32;
    args.zeros_kind = OMNI_ZEROS_U8;
    args.layout = layout_of(OMNI_FORMAT_W4S, type, true);
    args.scales = scales.data();
    args.zeros = points.data();
    args.out = out.data();
    args.out_bytes = out.size();
    ASSERT_EQ(omni_pack_scales(&args), OMNI_OK) << omni_last_error();
    for (size_t i = 0; i < kElements; ++i) {
      EXPECT_EQ(type == OMNI_DTYPE_F32 ? out.as<float>()[i] : bf16_to_float(out.as<uint16_t>()[i]), scales[i]) << i;
      EXPECT_EQ(out.data()[kElements * element + i], points[i]) << i;
    }
    args.out_bytes -= 1;
    EXPECT_EQ(omni_pack_scales(&args), OMNI_ERR_BUFFER_SIZE);
    args.out_bytes = out.size();
    args.layout = layout_of(OMNI_FORMAT_W4S, type);
    EXPECT_EQ(omni_pack_scales(&args), OMNI_ERR_INEXACT);
    EXPECT_NE(std::strstr(omni_last_error(), "group 0, channel 0"), nullptr) << omni_last_error();
    args.zeros_kind = OMNI_ZEROS_SYMMETRIC;
    args.zeros = nullptr;
    args.out_bytes = kElements * element;
    EXPECT_EQ(omni_pack_scales(&args), OMNI_OK) << omni_last_error();
    args.layout = layout_of(OMNI_FORMAT_W8S, type);
    EXPECT_EQ(omni_pack_scales(&args), OMNI_OK) << omni_last_error();
    args.zeros_kind = OMNI_ZEROS_U8;
    args.zeros = points.data();
    EXPECT_EQ(omni_pack_scales(&args), OMNI_ERR_TYPE);
  }
}

// Every zero point, with scales of either sign, comes through tg4 and back as it was.
TEST(ConvertScales, RoundTrip) {
  for (const omni_dtype type : {OMNI_DTYPE_F32, OMNI_DTYPE_BF16}) {
    const size_t element = type == OMNI_DTYPE_F32 ? 4 : 2;
    const omni_layout w4s = layout_of(OMNI_FORMAT_W4S, type, true), tg4 = layout_of(OMNI_FORMAT_TG4, OMNI_DTYPE_F32);
    GuardedBuffer source(kElements * (element + 1), Flush::kBack, element), pairs(kElements * 8, Flush::kFront, 4),
        back(kElements * (element + 1), Flush::kFront, element);
    for (size_t i = 0; i < kElements; ++i) {
      const float scale = bf16_to_float(scale_bits(i)) * (i % 3 == 0 ? -1.0F : 1.0F);
      if (type == OMNI_DTYPE_F32) {
        source.as<float>()[i] = scale * 1.00001F;
      } else {
        source.as<uint16_t>()[i] = bf16_round_ieee(scale);
      }
      source.data()[kElements * element + i] = zero_point(i);
    }
    ASSERT_EQ(convert(w4s, source.data(), source.size(), tg4, pairs), OMNI_OK) << omni_last_error();
    for (size_t i = 0; i < kElements; ++i) {
      const float scale = pairs.as<float>()[2 * i];
      EXPECT_EQ(pairs.as<float>()[2 * i + 1], static_cast<float>(8 - zero_point(i)) * scale) << i;
    }
    ASSERT_EQ(convert(tg4, pairs.data(), pairs.size(), w4s, back), OMNI_OK) << omni_last_error();
    EXPECT_EQ(std::memcmp(back.data(), source.data(), source.size()), 0);
    EXPECT_TRUE(pairs.intact() && back.intact());
  }
}

TEST(ConvertScales, RefusesWhatWouldBeRoundedAndNamesIt) {
  const omni_layout tg4 = layout_of(OMNI_FORMAT_TG4, OMNI_DTYPE_F32), with = layout_of(OMNI_FORMAT_W4S, OMNI_DTYPE_F32, true),
                    without = layout_of(OMNI_FORMAT_W4S, OMNI_DTYPE_F32),
                    narrow = layout_of(OMNI_FORMAT_W4S, OMNI_DTYPE_BF16, true);
  std::vector<float> pairs(2 * kElements, 0.0F);
  for (size_t i = 0; i < kElements; ++i) pairs[2 * i] = 0.3F;
  GuardedBuffer out(kElements * 5, Flush::kBack, 4);
  const size_t at = 2 * kN + 5;  // group 2, channel 5
  const auto expect = [&](const omni_layout& to, omni_status status, const char* words) {
    std::memset(out.data(), 0x77, out.size());
    ASSERT_EQ(convert(tg4, pairs.data(), pairs.size() * 4, to, out), status) << omni_last_error();
    if (status == OMNI_OK) return;
    EXPECT_NE(std::strstr(omni_last_error(), words), nullptr) << omni_last_error();
    for (size_t i = 0; i < out.size(); ++i) ASSERT_EQ(out.data()[i], 0x77) << "written at " << i;
  };
  expect(without, OMNI_OK, "");
  expect(narrow, OMNI_ERR_INEXACT, "group 0, channel 0 is no bf16 number");
  pairs[2 * at + 1] = -0.0F;
  expect(without, OMNI_OK, "");
  pairs[2 * at + 1] = 5 * 0.3F;  // zero point 3
  expect(with, OMNI_OK, "");
  EXPECT_EQ(out.data()[kElements * 4 + at], 3);
  expect(without, OMNI_ERR_INEXACT, "zero point of group 2, channel 5 is 3");
  for (const float zero : {0.1F, std::nextafter(5 * 0.3F, 2.0F), 9 * 0.3F, -8 * 0.3F, std::numeric_limits<float>::quiet_NaN(),
                           std::numeric_limits<float>::infinity()}) {
    pairs[2 * at + 1] = zero;
    expect(with, OMNI_ERR_INEXACT, "zero of group 2, channel 5 is no integer zero point");
  }
}

TEST(ConvertScales, RefusesBadArguments) {
  const omni_layout tg4 = layout_of(OMNI_FORMAT_TG4, OMNI_DTYPE_F32), w4s = layout_of(OMNI_FORMAT_W4S, OMNI_DTYPE_F32);
  std::vector<float> pairs(2 * kElements, 0.0F);
  GuardedBuffer out(kElements * 4, Flush::kBack, 4);
  omni_convert_scales_args good = {};
  good.size = sizeof good;
  good.source_layout = tg4;
  good.destination_layout = w4s;
  good.source = pairs.data();
  good.source_bytes = pairs.size() * 4;
  good.destination = out.data();
  good.destination_bytes = out.size();
  ASSERT_EQ(omni_convert_scales(&good), OMNI_OK) << omni_last_error();
  EXPECT_EQ(omni_convert_scales(nullptr), OMNI_ERR_NULL);
  const auto refused = [&](omni_status status, const auto& change) {
    omni_convert_scales_args bad = good;
    change(bad);
    EXPECT_EQ(omni_convert_scales(&bad), status) << omni_last_error();
  };
  refused(OMNI_ERR_STRUCT_SIZE, [](auto& a) { a.size -= 8; });
  refused(OMNI_ERR_LAYOUT, [](auto& a) { a.source_layout = layout_of(OMNI_FORMAT_W8S, OMNI_DTYPE_F32); });
  refused(OMNI_ERR_SHAPE, [](auto& a) { a.source_layout.group = 32; });
  refused(OMNI_ERR_NULL, [](auto& a) { a.source = nullptr; });
  refused(OMNI_ERR_NULL, [](auto& a) { a.destination = nullptr; });
  refused(OMNI_ERR_BUFFER_SIZE, [](auto& a) { a.source_bytes -= 1; });
  refused(OMNI_ERR_BUFFER_SIZE, [](auto& a) { a.destination_bytes -= 1; });
  refused(OMNI_ERR_ALIGNMENT, [](auto& a) { a.source = static_cast<const char*>(a.source) + 1; });
}

}  // namespace
}  // namespace okl::test
