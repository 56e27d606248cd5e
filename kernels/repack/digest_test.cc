// SPDX-License-Identifier: Apache-2.0
// Digests at the shapes of a real decoder, made by PyTorch: packed bytes of its three builds and dequantised weights.
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/golden/sha256.h"
#include "omni/omni.h"
#include "tests/support/synthetic.h"

namespace okl::test {
namespace {

const nlohmann::json& digests() {
  static const nlohmann::json file = nlohmann::json::parse(std::ifstream(OMNI_TEST_DATA "/int4/digests_real_shapes.json"));
  return file;
}

std::vector<std::string> shapes() {
  std::vector<std::string> names;
  for (const auto& [name, entry] : digests().items()) {
    if (entry.is_object() && entry.contains("sha256")) names.push_back(name);
  }
  return names;
}

template <typename T>
std::string digest(const std::vector<T>& values) {
  return omni_golden::sha256(std::as_bytes(std::span(values)));
}

class Digests : public testing::TestWithParam<std::string> {
 protected:
  const nlohmann::json& entry_ = digests()[GetParam()];
  const int64_t n_ = entry_["N"], k_ = entry_["K"];
  const uint32_t group_ = entry_["group"];
  const uint64_t seed_ = entry_["seed"];

  std::string expected(const char* what) const { return entry_["sha256"][what]; }

  std::vector<uint8_t> pack(const std::vector<uint8_t>& codes, omni_format to) {
    std::vector<uint8_t> out(static_cast<size_t>(n_ * k_ / 2));
    omni_repack_args args = {};
    args.size = sizeof args;
    args.source_format = OMNI_FORMAT_CODES_U8;
    args.destination_format = static_cast<uint16_t>(to);
    args.n = n_, args.k = k_;
    args.source = codes.data();
    args.source_bytes = codes.size();
    args.destination = out.data();
    args.destination_bytes = out.size();
    EXPECT_EQ(omni_repack(&args), OMNI_OK) << omni_last_error();
    return out;
  }
};

TEST_P(Digests, PackedAndDequantised) {
  std::vector<uint8_t> codes(static_cast<size_t>(n_ * k_));
  for (size_t i = 0; i < codes.size(); ++i) codes[i] = static_cast<uint8_t>(splitmix64(seed_ + i) >> 60);
  const std::vector<uint8_t> packed = pack(codes, OMNI_FORMAT_TG4);
  EXPECT_EQ(digest(packed), expected("packed_avx512"));
  if (n_ > 100000) return;  // half a gigabyte of weights is for the regression tool, not for a test
  EXPECT_EQ(digest(pack(codes, OMNI_FORMAT_TORCH_AVX2)), expected("packed_avx2"));
  EXPECT_EQ(digest(pack(codes, OMNI_FORMAT_TORCH_DEFAULT)), expected("packed_default"));

  std::vector<uint16_t> scales;
  for (int64_t g = 0; g < k_ / group_; ++g) {
    for (int64_t c = 0; c < n_; ++c) {
      const ScaleZeroBits bits = synthetic_scale_zero(seed_, n_, g, c);
      scales.insert(scales.end(), {bits.scale, bits.zero});
    }
  }
  std::vector<uint16_t> weights(static_cast<size_t>(n_ * k_) + 32);
  for (size_t i = 0; i < omni_kernel_count(); ++i) {
    omni_kernel_info info = {};
    info.size = sizeof info;
    ASSERT_EQ(omni_kernel_get(i, &info), OMNI_OK);
    if (std::string(info.op) != "dequant" || info.usable == 0) continue;
    omni_dequant_args args = {};
    args.size = sizeof args;
    args.out_type = OMNI_DTYPE_BF16;
    ASSERT_EQ(omni_layout_init(&args.layout, OMNI_FORMAT_TG4, n_, k_, group_, OMNI_DTYPE_BF16), OMNI_OK);
    args.codes = packed.data();
    args.codes_bytes = packed.size();
    args.scales = scales.data();
    args.scales_bytes = scales.size() * 2;
    args.n1 = n_, args.k1 = k_;
    // A whole number of lines, so that streaming stores are what is checked.
    auto* out = reinterpret_cast<uint16_t*>((reinterpret_cast<uintptr_t>(weights.data()) + 63) / 64 * 64);
    args.out = out;
    args.ld_out = k_;
    args.kernel = info.name;
    std::fill(weights.begin(), weights.end(), uint16_t{0xEEEE});
    ASSERT_EQ(omni_dequantize(&args), OMNI_OK) << omni_last_error();
    EXPECT_EQ(omni_golden::sha256(std::as_bytes(std::span(out, static_cast<size_t>(n_ * k_)))), expected("dequant_bf16"))
        << info.name;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, Digests, testing::ValuesIn(shapes()), [](const auto& info) { return info.param; });

}  // namespace
}  // namespace okl::test
