// SPDX-License-Identifier: Apache-2.0
// Golden files of PyTorch, GPTQ, AWQ and compressed-tensors weights: codes, packed bytes, zero points and dequantised values.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "kernels/format/bf16.h"
#include "omni/dequant.h"
#include "omni/kernels.h"
#include "omni/repack.h"
#include "tools/common/safetensors.h"

namespace okl::test {
namespace {

using omni_files::SafetensorsFile;

std::vector<std::string> files(const std::string& prefix) {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(OMNI_TEST_DATA "/int4")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && name.ends_with(".safetensors")) names.push_back(name.substr(0, name.size() - 12));
  }
  std::sort(names.begin(), names.end());
  return names;
}

std::string test_name(const testing::TestParamInfo<std::string>& info) { return info.param; }

class Golden : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    n_ = file_.metadata_number("N");
    k_ = file_.metadata_number("K");
    group_ = static_cast<uint32_t>(file_.metadata_number("group"));
    codes_ = file_.at("codes").as<uint8_t>();
  }

  // `source` as its own type decides the alignment.
  template <typename T>
  std::vector<uint8_t> repack(omni_format from, const std::vector<T>& source, omni_format to, size_t bytes,
                              const std::vector<int32_t>* g_idx = nullptr, std::vector<int32_t>* permutation = nullptr) {
    std::vector<uint8_t> out(bytes, 0xEE);
    omni_repack_args args = {};
    args.size = sizeof args;
    args.source_format = static_cast<uint16_t>(from);
    args.destination_format = static_cast<uint16_t>(to);
    args.n = n_, args.k = k_;
    args.source = source.data();
    args.source_bytes = source.size() * sizeof(T);
    args.destination = out.data();
    args.destination_bytes = out.size();
    if (g_idx != nullptr) {
      permutation->resize(static_cast<size_t>(k_));
      args.g_idx = g_idx->data();
      args.group = group_;
      args.k_permutation = permutation->data();
    }
    EXPECT_EQ(omni_repack(&args), OMNI_OK) << omni_last_error();
    return out;
  }

  omni_layout layout(omni_dtype scale_type) const {
    omni_layout layout = {};
    EXPECT_EQ(omni_layout_init(&layout, OMNI_FORMAT_TG4, n_, k_, group_, scale_type), OMNI_OK) << omni_last_error();
    return layout;
  }

  // By every kernel that this machine can run; they must agree.
  std::vector<uint16_t> dequantize(const omni_layout& layout, const std::vector<uint8_t>& packed, const void* scales) {
    size_t scale_bytes = 0;
    EXPECT_EQ(omni_scales_size(&layout, &scale_bytes), OMNI_OK);
    std::vector<uint16_t> first;
    for (size_t i = 0; i < omni_kernel_count(); ++i) {
      omni_kernel_info info = {};
      info.size = sizeof info;
      EXPECT_EQ(omni_kernel_get(i, &info), OMNI_OK);
      if (std::strcmp(info.op, "dequant") != 0 || info.usable == 0) continue;
      std::vector<uint16_t> out(static_cast<size_t>(n_ * k_), 0xEEEE);
      omni_dequant_args args = {};
      args.size = sizeof args;
      args.out_type = OMNI_DTYPE_BF16;
      args.layout = layout;
      args.codes = packed.data();
      args.codes_bytes = packed.size();
      args.scales = scales;
      args.scales_bytes = scale_bytes;
      args.n1 = n_, args.k1 = k_;
      args.out = out.data();
      args.ld_out = k_;
      args.kernel = info.name;
      EXPECT_EQ(omni_dequantize(&args), OMNI_OK) << omni_last_error();
      if (first.empty()) first = out;
      EXPECT_EQ(out, first) << info.name;
    }
    return first;
  }

  // Scales and zero points through omni_pack_scales into fp32, checked against the file's expectations.
  std::vector<float> pack_scales(const char* scales, bool by_channel, omni_zeros kind, const void* zeros) {
    const std::vector<uint16_t> source = file_.at(scales).as<uint16_t>();
    const int64_t groups = k_ / group_;
    std::vector<float> out(static_cast<size_t>(groups * n_ * 2));
    omni_scales_args args = {};
    args.size = sizeof args;
    args.scale_type = OMNI_DTYPE_BF16;
    args.zeros_kind = static_cast<uint16_t>(kind);
    args.layout = layout(OMNI_DTYPE_F32);
    args.scales = source.data();
    args.scales_by_channel = by_channel ? 1 : 0;
    args.zeros = zeros;
    args.out = out.data();
    args.out_bytes = out.size() * 4;
    EXPECT_EQ(omni_pack_scales(&args), OMNI_OK) << omni_last_error();
    const omni_files::Tensor* expected = file_.find("expect_zeros");
    const std::vector<uint8_t> zero_points =
        expected != nullptr ? expected->as<uint8_t>() : std::vector<uint8_t>(static_cast<size_t>(groups * n_), 8);
    for (int64_t g = 0; g < groups; ++g) {
      for (int64_t c = 0; c < n_; ++c) {
        const float scale = bf16_to_float(source[static_cast<size_t>(by_channel ? c * groups + g : g * n_ + c)]);
        const int zero_point = zero_points[static_cast<size_t>(g * n_ + c)];
        EXPECT_EQ(out[static_cast<size_t>(2 * (g * n_ + c))], scale);
        EXPECT_EQ(out[static_cast<size_t>(2 * (g * n_ + c) + 1)], static_cast<float>(8 - zero_point) * scale);
      }
    }
    return out;
  }

  const SafetensorsFile file_ = SafetensorsFile::open(std::string(OMNI_TEST_DATA "/int4/") + GetParam() + ".safetensors");
  int64_t n_ = 0, k_ = 0;
  uint32_t group_ = 0;
  std::vector<uint8_t> codes_;
};

class TorchGolden : public Golden {};

TEST_P(TorchGolden, PackingsOfThreeBuilds) {
  const std::pair<omni_format, const char*> packings[] = {
      {OMNI_FORMAT_TG4, "packed_avx512"}, {OMNI_FORMAT_TORCH_AVX2, "packed_avx2"}, {OMNI_FORMAT_TORCH_DEFAULT, "packed_default"}};
  for (const auto& [to, expected] : packings) {
    const std::vector<uint8_t> bytes = file_.at(expected).as<uint8_t>();
    EXPECT_EQ(repack(OMNI_FORMAT_CODES_U8, codes_, to, bytes.size()), bytes) << expected;
    EXPECT_EQ(repack(to, bytes, OMNI_FORMAT_CODES_U8, codes_.size()), codes_) << expected;
    for (const auto& [from, source] : packings) {
      EXPECT_EQ(repack(from, file_.at(source).as<uint8_t>(), to, bytes.size()), bytes) << source << " to " << expected;
    }
  }
}

TEST_P(TorchGolden, Dequantised) {
  const std::vector<uint8_t> packed = file_.at("packed_avx512").as<uint8_t>();
  const std::vector<uint16_t> scales = file_.at("qscale_and_zeros").as<uint16_t>();
  EXPECT_EQ(dequantize(layout(OMNI_DTYPE_BF16), packed, scales.data()), file_.at("dequant_bf16").as<uint16_t>());
}

INSTANTIATE_TEST_SUITE_P(Files, TorchGolden, testing::ValuesIn(files("w4a16_")), test_name);

class GptqGolden : public Golden {};

TEST_P(GptqGolden, ImportsAndDequantises) {
  const std::vector<int32_t> g_idx = file_.at("g_idx").as<int32_t>();
  std::vector<int32_t> permutation;
  const std::vector<uint8_t> packed = repack(OMNI_FORMAT_GPTQ, file_.at("qweight").as<uint32_t>(), OMNI_FORMAT_TG4,
                                             static_cast<size_t>(n_ * k_ / 2), &g_idx, &permutation);
  const std::vector<uint8_t> plain =
      repack(OMNI_FORMAT_GPTQ, file_.at("qweight").as<uint32_t>(), OMNI_FORMAT_CODES_U8, codes_.size());
  EXPECT_EQ(plain, codes_);
  for (int64_t i = 1; i < k_; ++i) {
    const auto at = static_cast<size_t>(i);
    EXPECT_LE(g_idx[static_cast<size_t>(permutation[at - 1])], g_idx[static_cast<size_t>(permutation[at])]);
  }
  const std::vector<uint32_t> v1 = file_.at("qzeros").as<uint32_t>(), v2 = file_.at("qzeros_v2").as<uint32_t>();
  const std::vector<float> scales = pack_scales("scales", false, OMNI_ZEROS_GPTQ_V1, v1.data());
  EXPECT_EQ(pack_scales("scales", false, OMNI_ZEROS_GPTQ_V2, v2.data()), scales);
  const std::vector<uint16_t> found = dequantize(layout(OMNI_DTYPE_F32), packed, scales.data());
  const std::vector<uint16_t> expected = file_.at("expect_dequant_bf16").as<uint16_t>();
  for (int64_t c = 0; c < n_; ++c) {
    for (int64_t i = 0; i < k_; ++i) {
      ASSERT_EQ(found[static_cast<size_t>(c * k_ + i)], expected[static_cast<size_t>(c * k_ + permutation[static_cast<size_t>(i)])])
          << "channel " << c << ", position " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Files, GptqGolden, testing::ValuesIn(files("gptq_")), test_name);

class AwqGolden : public Golden {};

TEST_P(AwqGolden, ImportsAndDequantises) {
  const std::vector<uint8_t> packed =
      repack(OMNI_FORMAT_AWQ, file_.at("qweight").as<uint32_t>(), OMNI_FORMAT_TG4, static_cast<size_t>(n_ * k_ / 2));
  EXPECT_EQ(repack(OMNI_FORMAT_TG4, packed, OMNI_FORMAT_CODES_U8, codes_.size()), codes_);
  const std::vector<uint32_t> zeros = file_.at("qzeros").as<uint32_t>();
  const std::vector<float> scales = pack_scales("scales", false, OMNI_ZEROS_AWQ, zeros.data());
  EXPECT_EQ(dequantize(layout(OMNI_DTYPE_F32), packed, scales.data()), file_.at("expect_dequant_bf16").as<uint16_t>());
}

INSTANTIATE_TEST_SUITE_P(Files, AwqGolden, testing::ValuesIn(files("awq_")), test_name);

class CompressedTensorsGolden : public Golden {};

TEST_P(CompressedTensorsGolden, ImportsAndDequantises) {
  EXPECT_EQ(file_.at("weight_shape").as<int64_t>(), (std::vector<int64_t>{n_, k_}));
  const std::vector<uint8_t> packed =
      repack(OMNI_FORMAT_CT_PACKED, file_.at("weight_packed").as<uint32_t>(), OMNI_FORMAT_TG4, static_cast<size_t>(n_ * k_ / 2));
  EXPECT_EQ(repack(OMNI_FORMAT_TG4, packed, OMNI_FORMAT_CODES_U8, codes_.size()), codes_);
  const omni_files::Tensor* zeros = file_.find("weight_zero_point");
  const std::vector<uint32_t> words = zeros != nullptr ? zeros->as<uint32_t>() : std::vector<uint32_t>();
  const std::vector<float> scales =
      pack_scales("weight_scale", true, zeros != nullptr ? OMNI_ZEROS_CT_PACKED : OMNI_ZEROS_SYMMETRIC, words.data());
  EXPECT_EQ(dequantize(layout(OMNI_DTYPE_F32), packed, scales.data()), file_.at("expect_dequant_bf16").as<uint16_t>());
}

INSTANTIATE_TEST_SUITE_P(Files, CompressedTensorsGolden, testing::ValuesIn(files("ct_")), test_name);

}  // namespace
}  // namespace okl::test
