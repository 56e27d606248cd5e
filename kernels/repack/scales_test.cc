// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/format/bf16.h"
#include "kernels/format/f16.h"
#include "omni/repack.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/synthetic.h"

namespace okl::test {
namespace {

constexpr int64_t kN = 21, kK = 100, kGroups = 4;
constexpr uint32_t kGroup = 32;

uint8_t zero_point(int64_t g, int64_t c) { return static_cast<uint8_t>(splitmix64(static_cast<uint64_t>(g * kN + c)) >> 60); }
float scale(int64_t g, int64_t c) { return bf16_to_float(synthetic_scale_zero(1, kN, g, c).scale); }

omni_scales_args arguments(omni_dtype out_type, omni_zeros kind) {
  omni_scales_args args = {};
  args.size = sizeof args;
  args.scale_type = OMNI_DTYPE_F32;
  args.zeros_kind = static_cast<uint16_t>(kind);
  EXPECT_EQ(omni_layout_init(&args.layout, OMNI_FORMAT_TG4, kN, kK, kGroup, out_type), OMNI_OK);
  return args;
}

// Words of zero points as the kind stores them; unused nibbles are 15.
std::vector<uint32_t> zero_words(omni_zeros kind) {
  static constexpr int kAwq[8] = {0, 2, 4, 6, 1, 3, 5, 7};
  const int64_t words = (kN + 7) / 8;
  std::vector<uint32_t> out;
  const auto word = [&](int64_t g, int64_t w) {
    uint32_t bits = 0;
    for (int i = 0; i < 8; ++i) {
      const int64_t c = 8 * w + (kind == OMNI_ZEROS_AWQ ? kAwq[i] : i);
      uint32_t nibble = 15;
      if (c < kN) nibble = kind == OMNI_ZEROS_GPTQ_V1 ? zero_point(g, c) - (zero_point(g, c) > 0 ? 1U : 0U) : zero_point(g, c);
      bits |= nibble << 4 * i;
    }
    out.push_back(bits);
  };
  if (kind == OMNI_ZEROS_CT_PACKED) {
    for (int64_t w = 0; w < words; ++w) {
      for (int64_t g = 0; g < kGroups; ++g) word(g, w);
    }
  } else {
    for (int64_t g = 0; g < kGroups; ++g) {
      for (int64_t w = 0; w < words; ++w) word(g, w);
    }
  }
  return out;
}

TEST(PackScales, EveryKindOfZeros) {
  for (const omni_zeros kind : {OMNI_ZEROS_SYMMETRIC, OMNI_ZEROS_U8, OMNI_ZEROS_GPTQ_V1, OMNI_ZEROS_GPTQ_V2, OMNI_ZEROS_AWQ,
                                OMNI_ZEROS_CT_PACKED, OMNI_ZEROS_REAL}) {
    for (const bool by_channel : {false, true}) {
      for (const Flush flush : {Flush::kFront, Flush::kBack}) {
        GuardedBuffer scales(kGroups * kN * 4, flush, 4), reals(kGroups * kN * 4, flush, 4), out(kGroups * kN * 8, flush, 4);
        std::vector<uint8_t> bytes;
        for (int64_t g = 0; g < kGroups; ++g) {
          for (int64_t c = 0; c < kN; ++c) {
            scales.as<float>()[by_channel ? c * kGroups + g : g * kN + c] = scale(g, c);
            reals.as<float>()[by_channel ? c * kGroups + g : g * kN + c] = -3.25F * static_cast<float>(c);
            bytes.push_back(zero_point(g, c));
          }
        }
        const std::vector<uint32_t> words = zero_words(kind);
        const GuardedBuffer packed = GuardedBuffer::copy_of(std::span(words), flush);
        const GuardedBuffer plain = GuardedBuffer::copy_of(std::span<const uint8_t>(bytes), flush);
        omni_scales_args args = arguments(OMNI_DTYPE_F32, kind);
        args.scales = scales.data();
        args.scales_by_channel = by_channel ? 1 : 0;
        args.zeros = kind == OMNI_ZEROS_SYMMETRIC ? nullptr
                     : kind == OMNI_ZEROS_U8      ? static_cast<const void*>(plain.data())
                     : kind == OMNI_ZEROS_REAL    ? static_cast<const void*>(reals.data())
                                                  : static_cast<const void*>(packed.data());
        args.out = out.data();
        args.out_bytes = out.size();
        ASSERT_EQ(omni_pack_scales(&args), OMNI_OK) << omni_last_error();
        for (int64_t g = 0; g < kGroups; ++g) {
          for (int64_t c = 0; c < kN; ++c) {
            int zp = zero_point(g, c);
            if (kind == OMNI_ZEROS_GPTQ_V1 && zp == 0) zp = 1;  // cannot be stored
            float zero = static_cast<float>(8 - zp) * scale(g, c);
            if (kind == OMNI_ZEROS_SYMMETRIC) zero = 0;
            if (kind == OMNI_ZEROS_REAL) zero = -3.25F * static_cast<float>(c);
            EXPECT_EQ(out.as<float>()[2 * (g * kN + c)], scale(g, c)) << "kind " << kind;
            EXPECT_EQ(out.as<float>()[2 * (g * kN + c) + 1], zero) << "kind " << kind;
          }
        }
      }
    }
  }
}

TEST(PackScales, HalfPrecisionSources) {
  const std::pair<uint16_t, float> values[] = {
      {0x3C00, 1.0F},          {0xC000, -2.0F}, {0x7BFF, 65504.0F},    {0x0400, 0x1p-14F}, {0x0001, 0x1p-24F},
      {0x83FF, -0x1.ff8p-15F}, {0x8000, -0.0F}, {0x2E66, 0x1.998p-4F}, {0x7C00, INFINITY}, {0xFC00, -INFINITY}};
  for (const auto& [bits, value] : values) {
    EXPECT_EQ(std::bit_cast<uint32_t>(f16_to_float(bits)), std::bit_cast<uint32_t>(value)) << std::hex << bits;
  }
  EXPECT_TRUE(std::isnan(f16_to_float(0x7C01)));

  std::vector<uint16_t> scales(kGroups * kN, 0x3C00);
  std::vector<uint16_t> out(kGroups * kN * 2);
  omni_scales_args args = arguments(OMNI_DTYPE_BF16, OMNI_ZEROS_SYMMETRIC);
  args.scale_type = OMNI_DTYPE_F16;
  args.scales = scales.data();
  args.out = out.data();
  args.out_bytes = out.size() * 2;
  ASSERT_EQ(omni_pack_scales(&args), OMNI_OK) << omni_last_error();
  EXPECT_EQ(out[0], 0x3F80);
  EXPECT_EQ(out[1], 0);
  scales[3 * kN + 20] = 0x2E66;  // 0.1 in half precision has more bits than bf16
  std::fill(out.begin(), out.end(), uint16_t{0x5555});
  EXPECT_EQ(omni_pack_scales(&args), OMNI_ERR_INEXACT);
  EXPECT_STREQ(omni_last_error(), "scale or zero of group 3, channel 20 is no bf16 number");
  EXPECT_TRUE(std::all_of(out.begin(), out.end(), [](uint16_t value) { return value == 0x5555; }));
}

// z = (8 - zp) * s has up to four bits more than s.
TEST(PackScales, InexactZerosAreRefusedForBf16) {
  std::vector<float> scales(kGroups * kN, bf16_to_float(0x3F81));  // 8 significant bits
  std::vector<uint8_t> zeros(kGroups * kN, 6);                     // times 2: exact
  std::vector<uint16_t> out(kGroups * kN * 2, 0x5555);
  omni_scales_args args = arguments(OMNI_DTYPE_BF16, OMNI_ZEROS_U8);
  args.scales = scales.data();
  args.zeros = zeros.data();
  args.out = out.data();
  args.out_bytes = out.size() * 2;
  zeros[kN + 2] = 5;  // times 3: 10 bits
  zeros[2 * kN] = 5;
  EXPECT_EQ(omni_pack_scales(&args), OMNI_ERR_INEXACT);
  EXPECT_STREQ(omni_last_error(), "scale or zero of group 1, channel 2 is no bf16 number");
  EXPECT_EQ(out[0], 0x5555);
  zeros[kN + 2] = zeros[2 * kN] = 12;
  EXPECT_EQ(omni_pack_scales(&args), OMNI_OK) << omni_last_error();
  EXPECT_EQ(out[2 * (kN + 2) + 1], 0xC081);
}

TEST(PackScales, OneRoundingInSinglePrecision) {
  std::vector<float> scales(kGroups * kN, 0x1.000002p-3F);
  std::vector<uint8_t> zeros(kGroups * kN, 5);
  std::vector<float> out(kGroups * kN * 2);
  omni_scales_args args = arguments(OMNI_DTYPE_F32, OMNI_ZEROS_U8);
  args.scales = scales.data();
  args.zeros = zeros.data();
  args.out = out.data();
  args.out_bytes = out.size() * 4;
  ASSERT_EQ(omni_pack_scales(&args), OMNI_OK);
  EXPECT_EQ(out[1], static_cast<float>(3.0 * static_cast<double>(0x1.000002p-3F)));
}

TEST(PackScales, BadArguments) {
  std::vector<float> scales(kGroups * kN, 1.0F);
  std::vector<uint32_t> zeros(kGroups * kN);
  std::vector<float> out(kGroups * kN * 2, 7.0F);
  omni_scales_args good = arguments(OMNI_DTYPE_F32, OMNI_ZEROS_AWQ);
  good.scales = scales.data();
  good.zeros = zeros.data();
  good.out = out.data();
  good.out_bytes = out.size() * 4;
  const auto status = [&](const auto& change) {
    omni_scales_args args = good;
    change(args);
    const omni_status result = omni_pack_scales(&args);
    EXPECT_TRUE(std::all_of(out.begin(), out.end(), [](float value) { return value == 7.0F; }));
    return result;
  };
  const auto next = [](const void* pointer) { return static_cast<const uint8_t*>(pointer) + 1; };
  EXPECT_EQ(omni_pack_scales(nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(status([](auto& a) { a.size = 1; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(status([](auto& a) { a.layout.group = 48; }), OMNI_ERR_GROUP);
  EXPECT_EQ(status([](auto& a) { a.scale_type = OMNI_DTYPE_U8; }), OMNI_ERR_TYPE);
  EXPECT_EQ(status([](auto& a) { a.zeros_kind = 7; }), OMNI_ERR_TYPE);
  EXPECT_EQ(status([](auto& a) { a.scales = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(status([](auto& a) { a.zeros = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(status([](auto& a) { a.out = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(status([](auto& a) { --a.out_bytes; }), OMNI_ERR_BUFFER_SIZE);
  EXPECT_EQ(status([&](auto& a) { a.scales = next(a.scales); }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(status([&](auto& a) { a.zeros = next(a.zeros); }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(status([&](auto& a) { a.out = const_cast<uint8_t*>(next(a.out)); }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(status([](auto& a) { a.layout.n = 0, a.layout.flags = OMNI_LAYOUT_SHORT_GROUP, a.scales = nullptr, a.out = nullptr; }),
            OMNI_OK);
}

}  // namespace
}  // namespace okl::test
