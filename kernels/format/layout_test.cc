// SPDX-License-Identifier: Apache-2.0
#include "omni/layout.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>

namespace {

omni_layout make(omni_format format, int64_t n, int64_t k, uint32_t group, omni_dtype type = OMNI_DTYPE_BF16) {
  omni_layout layout = {};
  EXPECT_EQ(omni_layout_init(&layout, format, n, k, group, type), OMNI_OK) << omni_last_error();
  return layout;
}

size_t packed(const omni_layout& layout) {
  size_t bytes = ~size_t{0};
  EXPECT_EQ(omni_packed_size(&layout, &bytes), OMNI_OK) << omni_last_error();
  return bytes;
}

TEST(Layout, SizesOfEveryFormat) {
  EXPECT_EQ(packed(make(OMNI_FORMAT_TG4, 13312, 2048, 128)), 13312u * 2048 / 2);
  EXPECT_EQ(packed(make(OMNI_FORMAT_TG4, 17, 33, 32)), 32u * 64 / 2);
  EXPECT_EQ(packed(make(OMNI_FORMAT_TORCH_AVX2, 17, 33, 32)), 32u * 33 / 2);
  EXPECT_EQ(packed(make(OMNI_FORMAT_TORCH_DEFAULT, 48, 31, 32)), 48u * 31 / 2);
  EXPECT_EQ(packed(make(OMNI_FORMAT_CODES_U8, 17, 33, 32)), 17u * 33);
  EXPECT_EQ(packed(make(OMNI_FORMAT_CODES_I32, 17, 33, 32)), 17u * 33 * 4);
  EXPECT_EQ(packed(make(OMNI_FORMAT_ROW_PAIRS, 17, 33, 32)), 17u * 17);
  EXPECT_EQ(packed(make(OMNI_FORMAT_ROW_HALVES, 17, 33, 32)), 17u * 17);
  EXPECT_EQ(packed(make(OMNI_FORMAT_GPTQ, 17, 33, 32)), 5u * 17 * 4);
  EXPECT_EQ(packed(make(OMNI_FORMAT_AWQ, 17, 33, 32)), 33u * 3 * 4);
  EXPECT_EQ(packed(make(OMNI_FORMAT_CT_PACKED, 17, 33, 32)), 17u * 5 * 4);
  EXPECT_EQ(packed(make(OMNI_FORMAT_W4S, 33, 33, 32)), 64u * 64 / 2);
  EXPECT_EQ(packed(make(OMNI_FORMAT_W8S, 33, 33, 32)), 48u * 64);
  EXPECT_EQ(packed(make(OMNI_FORMAT_W16, 33, 33, 33, OMNI_DTYPE_NONE)), 48u * 64 * 2);
  EXPECT_EQ(packed(make(OMNI_FORMAT_W32, 33, 33, 33, OMNI_DTYPE_NONE)), 48u * 33 * 4);
  EXPECT_EQ(packed(make(OMNI_FORMAT_TG4, 0, 33, 32)), 0u);
  EXPECT_EQ(packed(make(OMNI_FORMAT_TG4, 262144, 12288, 128)), 1610612736u);

  size_t bytes = 0;
  const omni_layout f32 = make(OMNI_FORMAT_TG4, 17, 33, 32, OMNI_DTYPE_F32);
  EXPECT_EQ(omni_scales_size(&f32, &bytes), OMNI_OK);
  EXPECT_EQ(bytes, 2u * 17 * 2 * 4);
  const omni_layout bf16 = make(OMNI_FORMAT_TG4, 262144, 12288, 32);
  EXPECT_EQ(omni_scales_size(&bf16, &bytes), OMNI_OK);
  EXPECT_EQ(bytes, 402653184u);
}

TEST(Layout, FlagsAndGroups) {
  EXPECT_EQ(make(OMNI_FORMAT_TG4, 64, 128, 32).flags, 0);
  EXPECT_EQ(make(OMNI_FORMAT_TG4, 8, 80, 32).flags, OMNI_LAYOUT_PADDED_N | OMNI_LAYOUT_SHORT_GROUP);
  EXPECT_EQ(make(OMNI_FORMAT_CODES_U8, 8, 64, 32).flags, 0);
  EXPECT_EQ(make(OMNI_FORMAT_TG4, 64, 64, 128).flags, OMNI_LAYOUT_SHORT_GROUP);
  EXPECT_EQ(make(OMNI_FORMAT_TG4, 64, 31, 31).flags, 0);
  EXPECT_EQ(make(OMNI_FORMAT_TG4, 64, 31, 32).flags, OMNI_LAYOUT_SHORT_GROUP);
}

TEST(Layout, RefusesBadArgumentsAndLeavesTheOutputAlone) {
  omni_layout out;
  std::memset(&out, 0x5A, sizeof out);
  const omni_layout before = out;
  const auto init = [&](omni_format format, int64_t n, int64_t k, uint32_t group, omni_dtype type) {
    const omni_status status = omni_layout_init(&out, format, n, k, group, type);
    EXPECT_EQ(std::memcmp(&out, &before, sizeof out), 0);
    EXPECT_STRNE(omni_last_error(), "");
    return status;
  };
  EXPECT_EQ(omni_layout_init(nullptr, OMNI_FORMAT_TG4, 64, 64, 32, OMNI_DTYPE_BF16), OMNI_ERR_NULL);
  EXPECT_EQ(init(OMNI_FORMAT_NONE, 64, 64, 32, OMNI_DTYPE_BF16), OMNI_ERR_LAYOUT);
  EXPECT_EQ(init(static_cast<omni_format>(9), 64, 64, 32, OMNI_DTYPE_BF16), OMNI_ERR_LAYOUT);
  EXPECT_EQ(init(OMNI_FORMAT_TG4, -1, 64, 32, OMNI_DTYPE_BF16), OMNI_ERR_SHAPE);
  EXPECT_EQ(init(OMNI_FORMAT_TG4, 64, 0, 32, OMNI_DTYPE_BF16), OMNI_ERR_SHAPE);
  EXPECT_EQ(init(OMNI_FORMAT_TG4, 64, 96, 48, OMNI_DTYPE_BF16), OMNI_ERR_GROUP);
  EXPECT_EQ(init(OMNI_FORMAT_TG4, 64, 64, 0, OMNI_DTYPE_BF16), OMNI_ERR_GROUP);
  EXPECT_EQ(init(OMNI_FORMAT_TG4, 64, 64, 32, OMNI_DTYPE_F16), OMNI_ERR_TYPE);
  EXPECT_EQ(init(OMNI_FORMAT_TG4, INT64_MAX, 64, 32, OMNI_DTYPE_BF16), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(init(OMNI_FORMAT_TG4, 64, INT64_MAX, 32, OMNI_DTYPE_BF16), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(init(OMNI_FORMAT_TG4, int64_t{1} << 32, int64_t{1} << 33, 32, OMNI_DTYPE_BF16), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(init(OMNI_FORMAT_CODES_I32, int64_t{1} << 31, int64_t{1} << 30, 32, OMNI_DTYPE_BF16), OMNI_ERR_OVERFLOW);
}

TEST(Layout, ChecksIdsFromElsewhere) {
  const omni_layout good = make(OMNI_FORMAT_TG4, 17, 33, 32);
  EXPECT_EQ(omni_layout_check(&good), OMNI_OK);
  EXPECT_STREQ(omni_last_error(), "");
  omni_layout bad = good;
  bad.version = 2;
  EXPECT_EQ(omni_layout_check(&bad), OMNI_ERR_LAYOUT);
  bad = good;
  bad.flags = 0;
  EXPECT_EQ(omni_layout_check(&bad), OMNI_ERR_LAYOUT);
  bad = good;
  bad.size = 8;
  EXPECT_EQ(omni_layout_check(&bad), OMNI_ERR_STRUCT_SIZE);
  bad = good;
  bad.n = -5;
  EXPECT_EQ(omni_layout_check(&bad), OMNI_ERR_SHAPE);
  EXPECT_EQ(omni_layout_check(nullptr), OMNI_ERR_NULL);
  size_t bytes = 77;
  EXPECT_EQ(omni_packed_size(&bad, &bytes), OMNI_ERR_SHAPE);
  EXPECT_EQ(omni_scales_size(&bad, &bytes), OMNI_ERR_SHAPE);
  EXPECT_EQ(bytes, 77u);
}

TEST(Layout, TextRoundTrip) {
  char text[96];
  const omni_layout tg4 = make(OMNI_FORMAT_TG4, 13312, 2048, 128);
  ASSERT_EQ(omni_layout_to_text(&tg4, text, sizeof text), OMNI_OK);
  EXPECT_STREQ(text, "tg4.1:n=13312,k=2048,g=128,s=bf16");
  EXPECT_EQ(omni_layout_to_text(&tg4, text, 33), OMNI_ERR_BUFFER_SIZE);
  EXPECT_EQ(omni_layout_to_text(&tg4, text, 34), OMNI_OK);
  for (const omni_format format :
       {OMNI_FORMAT_TG4, OMNI_FORMAT_TORCH_AVX2, OMNI_FORMAT_TORCH_DEFAULT, OMNI_FORMAT_CODES_U8, OMNI_FORMAT_CODES_I32,
        OMNI_FORMAT_ROW_PAIRS, OMNI_FORMAT_ROW_HALVES, OMNI_FORMAT_GPTQ, OMNI_FORMAT_AWQ, OMNI_FORMAT_CT_PACKED}) {
    for (const omni_dtype type : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
      const omni_layout layout = make(format, 17, 33, 33, type);
      omni_layout back = {};
      ASSERT_EQ(omni_layout_to_text(&layout, text, sizeof text), OMNI_OK);
      ASSERT_EQ(omni_layout_from_text(text, &back), OMNI_OK) << text;
      EXPECT_EQ(std::memcmp(&layout, &back, sizeof back), 0) << text;
    }
  }
}

TEST(Layout, TextOfAnythingElseIsRefused) {
  omni_layout out = {};
  for (const char* text :
       {"", "tg4", "tg4.2:n=64,k=64,g=32,s=bf16", "tg4.01:n=64,k=64,g=32,s=bf16", "tg4.1:n=64,k=64,g=32,s=f16",
        "tg4.1:n=64,k=64,g=48,s=bf16", "tg4.1:n=64,k=64,g=32,s=bf16 ", "tg4.1:n=-4,k=64,g=32,s=bf16", "tg4.1:n=+4,k=64,g=32,s=bf16",
        "tg5.1:n=64,k=64,g=32,s=bf16", "tg4.1:n=99999999999999999999,k=64,g=32,s=bf16", "tg4.1:n=064,k=64,g=32,s=bf16",
        "tg4.1:k=64,n=64,g=32,s=bf16", "TG4.1:n=64,k=64,g=32,s=bf16", "tg4.1:n=9223372036854775807,k=64,g=32,s=bf16",
        "tg4.1:n=64,k=64,g=32,s=none", "tg4.1:n=64,k=64,g=32,s=bf16,zeros", "w16.1:n=64,k=64,g=64,s=bf16",
        "tg4.1:n=64,k=64,g=4294967328,s=bf16"}) {
    EXPECT_EQ(omni_layout_from_text(text, &out), OMNI_ERR_LAYOUT) << text;
  }
  EXPECT_EQ(out.size, 0u);
}

}  // namespace
