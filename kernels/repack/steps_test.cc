// SPDX-License-Identifier: Apache-2.0
// w8s from and to row-major int8, and vLLM's W4A8 blocks from and to everything: by definition and against a packing that vLLM
// made.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "kernels/format/vllm_w4a8.h"
#include "omni/repack.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/reference_formats.h"
#include "tests/support/threads.h"
#include "tools/common/safetensors.h"

namespace okl::test {
namespace {

omni_repack_args arguments(omni_format from, omni_format to, int64_t n, int64_t k, const GuardedBuffer& in, GuardedBuffer& out) {
  omni_repack_args args = {};
  args.size = sizeof args;
  args.source_format = static_cast<uint16_t>(from);
  args.destination_format = static_cast<uint16_t>(to);
  args.n = n;
  args.k = k;
  args.source = in.data();
  args.source_bytes = in.size();
  args.destination = out.data();
  args.destination_bytes = out.size();
  return args;
}

Codes signed_bytes(int64_t n, int64_t k, uint64_t seed) {
  Codes weights{n, k, std::vector<uint8_t>(static_cast<size_t>(n * k))};
  for (size_t i = 0; i < weights.values.size(); ++i) weights.values[i] = static_cast<uint8_t>(splitmix64(seed + i));
  return weights;
}

TEST(RepackW8s, FromAndToRows) {
  const uint32_t three = 3;
  const omni_parallel runners[] = {backwards(1), fresh_threads(&three)};
  for (const auto& [n, k] : {std::pair<int64_t, int64_t>{1, 1},
                             {16, 32},
                             {17, 33},
                             {48, 200},
                             {63, 127},
                             {64, 64},
                             {65, 513},
                             {80, 1030},
                             {113, 96},
                             {192, 2080}}) {
    for (const Flush flush : {Flush::kFront, Flush::kBack}) {
      const Codes weights = signed_bytes(n, k, 5);
      const std::vector<uint8_t> expected = pack_w8s(weights);
      GuardedBuffer rows(weights.values.size(), flush), packed(expected.size(), flush, 16), back(weights.values.size(), flush);
      std::memcpy(rows.data(), weights.values.data(), weights.values.size());
      omni_repack_args args = arguments(OMNI_FORMAT_CODES_S8, OMNI_FORMAT_W8S, n, k, rows, packed);
      args.parallel = &runners[static_cast<size_t>(n % 2)];
      ASSERT_EQ(omni_repack(&args), OMNI_OK) << omni_last_error();
      EXPECT_EQ(std::memcmp(packed.data(), expected.data(), expected.size()), 0) << n << "x" << k;
      args = arguments(OMNI_FORMAT_W8S, OMNI_FORMAT_CODES_S8, n, k, packed, back);
      ASSERT_EQ(omni_repack(&args), OMNI_OK) << omni_last_error();
      EXPECT_EQ(std::memcmp(back.data(), weights.values.data(), weights.values.size()), 0) << n << "x" << k;
      EXPECT_TRUE(packed.intact() && back.intact());
    }
  }
}

TEST(RepackW8s, CodesOfFourBitsDoNotConvert) {
  GuardedBuffer in(64 * 64), out(64 * 64, Flush::kBack, 16);
  omni_repack_args args = arguments(OMNI_FORMAT_CODES_U8, OMNI_FORMAT_W8S, 64, 64, in, out);
  EXPECT_EQ(omni_repack(&args), OMNI_ERR_LAYOUT);
  EXPECT_STREQ(omni_last_error(), "codes_u8 to w8s: int8 weights and codes of four bits do not convert");
  args = arguments(OMNI_FORMAT_CODES_S8, OMNI_FORMAT_W4S, 64, 64, in, out);
  EXPECT_EQ(omni_repack(&args), OMNI_ERR_LAYOUT);
}

// [N/32][K/b][b/4 steps of 64 bytes, 32 sums] by definition.
std::vector<uint8_t> pack_vllm(const Codes& codes, int64_t group, const std::vector<uint8_t>* zeros) {
  const int64_t inputs = std::min<int64_t>(group, 128);
  std::vector<uint8_t> bytes;
  for (int64_t n = 0; n < codes.n; n += 32) {
    for (int64_t first = 0; first < codes.k; first += inputs) {
      for (int64_t k = first; k < first + inputs; k += 4) {
        for (const int64_t c : {0, 1, 2, 3, 4, 5, 6, 7, 16, 17, 18, 19, 20, 21, 22, 23}) {
          for (int64_t i = k; i < k + 4; ++i) {
            bytes.push_back(static_cast<uint8_t>(codes.at(n + c, i) | codes.at(n + c + 8, i) << 4));
          }
        }
      }
      for (int64_t c = n; c < n + 32; ++c) {
        int32_t sum = 0;
        for (int64_t k = first; k < first + inputs; ++k) {
          sum += codes.at(c, k) - (zeros == nullptr ? 8 : (*zeros)[static_cast<size_t>(first / group * codes.n + c)]);
        }
        for (int b = 0; b < 4; ++b) bytes.push_back(static_cast<uint8_t>(static_cast<uint32_t>(sum) >> 8 * b));
      }
    }
  }
  return bytes;
}

TEST(RepackVllm, FromAndToEveryFormat) {
  for (const auto& [n, k, group] :
       {std::tuple<int64_t, int64_t, int64_t>{32, 128, 128}, {64, 1280, 256}, {96, 192, 64}, {160, 1056, 32}, {128, 128, 256}}) {
    const Codes codes = Codes::synthetic(n, k, 3);
    std::vector<uint8_t> zeros;
    for (int64_t i = 0; i < n * ((k + group - 1) / group); ++i) zeros.push_back(static_cast<uint8_t>(splitmix64(i) >> 60));
    for (const bool symmetric : {true, false}) {
      const std::vector<uint8_t> blocks = pack_vllm(codes, group, symmetric ? nullptr : &zeros);
      omni_layout layout = {};
      size_t bytes = 0;
      ASSERT_EQ(omni_layout_init(&layout, OMNI_FORMAT_VLLM_W4A8, n, k, static_cast<uint32_t>(group), OMNI_DTYPE_F32), OMNI_OK)
          << omni_last_error();
      ASSERT_EQ(omni_packed_size(&layout, &bytes), OMNI_OK);
      ASSERT_EQ(bytes, blocks.size());
      GuardedBuffer packed(blocks.size(), Flush::kBack, 16), out(blocks.size(), Flush::kBack, 16);
      std::memcpy(packed.data(), blocks.data(), blocks.size());
      for (const omni_format other : kSources) {
        const std::vector<uint8_t> plain = reference_pack(other, codes);
        GuardedBuffer in(plain.size(), Flush::kBack, 4);
        std::memcpy(in.data(), plain.data(), plain.size());
        omni_repack_args args = arguments(other, OMNI_FORMAT_VLLM_W4A8, n, k, in, out);
        args.group = static_cast<uint32_t>(group);
        args.zeros = symmetric ? nullptr : zeros.data();
        ASSERT_EQ(omni_repack(&args), OMNI_OK) << omni_last_error();
        EXPECT_EQ(std::memcmp(out.data(), blocks.data(), blocks.size()), 0) << "from " << other << " " << n << "x" << k;
      }
      for (const omni_format other : kDestinations) {
        const std::vector<uint8_t> plain = reference_pack(other, codes);
        GuardedBuffer back(plain.size(), Flush::kBack, 16);
        omni_repack_args args = arguments(OMNI_FORMAT_VLLM_W4A8, other, n, k, packed, back);
        args.group = static_cast<uint32_t>(group);
        ASSERT_EQ(omni_repack(&args), OMNI_OK) << omni_last_error();
        EXPECT_EQ(std::memcmp(back.data(), plain.data(), plain.size()), 0) << "to " << other << " " << n << "x" << k;
      }
    }
  }
}

TEST(RepackVllm, RefusesWhatItCannotHold) {
  GuardedBuffer in(64 * 200), out(64 * 200, Flush::kBack, 16);
  for (const auto& [n, k, group] :
       {std::tuple<int64_t, int64_t, uint32_t>{40, 128, 128}, {64, 160, 128}, {64, 128, 0}, {64, 200, 200}, {32, 24, 24}}) {
    omni_repack_args args = arguments(OMNI_FORMAT_CODES_U8, OMNI_FORMAT_VLLM_W4A8, n, k, in, out);
    args.group = group;
    EXPECT_EQ(omni_repack(&args), OMNI_ERR_SHAPE) << n << "x" << k << " g" << group;
  }
}

class VllmGolden : public testing::TestWithParam<const char*> {};

TEST_P(VllmGolden, PackingIsVllms) {
  const auto file = omni_files::SafetensorsFile::open(std::string(OMNI_TEST_DATA "/int4/") + GetParam());
  const int64_t n = file.metadata_number("N"), k = file.metadata_number("K");
  const auto codes = file.at("codes").as<uint8_t>(), zeros = file.at("zeros").as<uint8_t>(),
             packed = file.at("vllm_packed").as<uint8_t>();
  GuardedBuffer in(codes.size()), out(packed.size(), Flush::kBack, 16), w4s(static_cast<size_t>(n * k / 2), Flush::kBack, 16);
  std::memcpy(in.data(), codes.data(), codes.size());
  omni_repack_args args = arguments(OMNI_FORMAT_CODES_U8, OMNI_FORMAT_VLLM_W4A8, n, k, in, out);
  args.group = static_cast<uint32_t>(file.metadata_number("group"));
  args.zeros = zeros.data();
  ASSERT_EQ(omni_repack(&args), OMNI_OK) << omni_last_error();
  EXPECT_EQ(std::memcmp(out.data(), packed.data(), packed.size()), 0);

  omni_repack_args back = arguments(OMNI_FORMAT_VLLM_W4A8, OMNI_FORMAT_W4S, n, k, out, w4s);
  back.group = args.group;
  ASSERT_EQ(omni_repack(&back), OMNI_OK) << omni_last_error();
  const std::vector<uint8_t> expected = reference_pack(OMNI_FORMAT_W4S, {n, k, codes});
  EXPECT_EQ(std::memcmp(w4s.data(), expected.data(), expected.size()), 0);
}

INSTANTIATE_TEST_SUITE_P(Files, VllmGolden,
                         testing::Values("w4a8_128x512_g128.safetensors", "w4a8_64x256_g128.safetensors",
                                         "w4a8_64x512_g256.safetensors", "w4a8_96x256_g64_asym.safetensors"));

}  // namespace
}  // namespace okl::test
