// SPDX-License-Identifier: Apache-2.0
// What vLLM's int4_scaled_mm_cpu computed, and the W8A8 formula: every row of class exact, from bf16 rows and from given codes.
#include <gtest/gtest.h>

#include <cstring>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "kernels/cpu/machine.h"
#include "kernels/dispatch/kernel.h"
#include "kernels/format/bf16.h"
#include "omni/omni.h"
#include "tools/common/safetensors.h"

namespace okl::test {
namespace {

using omni_files::SafetensorsFile;

std::vector<std::string> files() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(OMNI_TEST_DATA "/int4")) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("w4a8_") || name.starts_with("w8a8_")) names.push_back(name.substr(0, name.find('.')));
  }
  std::sort(names.begin(), names.end());
  return names;
}

class ExactGolden : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    n_ = file_.metadata_number("N"), k_ = file_.metadata_number("K"), group_ = file_.metadata_number("group");
    m_ = file_.at("act_bf16").shape[0];
    const omni_format format = w4() ? OMNI_FORMAT_W4S : OMNI_FORMAT_W8S;
    ASSERT_EQ(omni_layout_init(&layout_, format, n_, k_, static_cast<uint32_t>(group_), w4() ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32),
              OMNI_OK);
    if (w4()) layout_.flags |= OMNI_LAYOUT_ZEROS;
    pack();
  }
  bool w4() const { return GetParam().starts_with("w4a8_"); }

  void pack() {
    size_t bytes = 0;
    ASSERT_EQ(omni_packed_size(&layout_, &bytes), OMNI_OK);
    codes_ = std::make_unique<uint8_t[]>(bytes);
    codes_bytes_ = bytes;
    const auto source = file_.at(w4() ? "codes" : "w_s8").as<uint8_t>();
    omni_repack_args args{};
    args.size = sizeof args;
    args.source_format = w4() ? OMNI_FORMAT_CODES_U8 : OMNI_FORMAT_CODES_S8;
    args.destination_format = layout_.format;
    args.n = n_, args.k = k_;
    args.source = source.data(), args.source_bytes = source.size();
    args.destination = codes_.get(), args.destination_bytes = bytes;
    ASSERT_EQ(omni_repack(&args), OMNI_OK) << omni_last_error();

    ASSERT_EQ(omni_scales_size(&layout_, &bytes), OMNI_OK);
    scales_.resize((bytes + 3) / 4);
    omni_scales_args scale_args{};
    scale_args.size = sizeof scale_args;
    scale_args.layout = layout_;
    scale_args.scale_type = layout_.scale_type;
    scale_args.out = scales_.data(), scale_args.out_bytes = scales_.size() * 4;
    const auto zeros = w4() ? file_.at("zeros").as<uint8_t>() : std::vector<uint8_t>();
    const auto bf16 = w4() ? file_.at("scales").as<uint16_t>() : std::vector<uint16_t>();
    const auto f32 = w4() ? std::vector<float>() : file_.at("w_scale_f32").as<float>();
    scale_args.zeros_kind = w4() ? OMNI_ZEROS_U8 : OMNI_ZEROS_SYMMETRIC;
    scale_args.zeros = w4() ? zeros.data() : nullptr;
    scale_args.scales = w4() ? static_cast<const void*>(bf16.data()) : f32.data();
    ASSERT_EQ(omni_pack_scales(&scale_args), OMNI_OK) << omni_last_error();
  }

  // Rows [first, first + m) by one kernel.
  template <typename Out>
  std::vector<Out> run(const char* kernel, omni_dtype x_type, bool with_bias, int64_t first, int64_t m) {
    omni_linear_query query{};
    query.size = sizeof query;
    query.numerics = OMNI_NUMERICS_EXACT;
    query.x_type = static_cast<uint16_t>(x_type);
    query.y_type = sizeof(Out) == 4 ? OMNI_DTYPE_F32 : OMNI_DTYPE_BF16;
    query.epilogue = with_bias ? OMNI_EPILOGUE_BIAS : OMNI_EPILOGUE_NONE;
    query.max_m = static_cast<uint32_t>(m);
    query.weights = layout_;
    query.kernel = kernel;
    std::vector<Out> y(static_cast<size_t>(m * n_));
    omni_plan* plan = nullptr;
    EXPECT_EQ(omni_select(&query, &plan), OMNI_OK) << omni_last_error();
    if (plan == nullptr) return y;
    const std::unique_ptr<omni_plan, void (*)(omni_plan*)> owner(plan, &omni_plan_destroy);
    size_t bytes = 0;
    EXPECT_EQ(omni_workspace_size(plan, query.max_m, &bytes), OMNI_OK);
    const std::unique_ptr<void, void (*)(void*)> workspace(std::aligned_alloc(64, (bytes + 63) / 64 * 64), &std::free);
    const auto x = file_.at("act_bf16").as<uint16_t>();
    const auto s8 = file_.at("act_s8");
    const auto scales = file_.at("act_scale_f32").as<float>(), bias = file_.at("bias_f32").as<float>();
    omni_linear_args args{};
    args.size = sizeof args;
    args.m = query.max_m;
    args.x = x_type == OMNI_DTYPE_S8 ? static_cast<const void*>(s8.bytes.data() + first * k_) : x.data() + first * k_;
    args.x_scales = scales.data() + first;
    args.ldx = k_;
    args.codes = codes_.get(), args.codes_bytes = codes_bytes_;
    args.scales = scales_.data(), args.scales_bytes = scales_.size() * 4;
    args.bias = bias.data();
    args.y = y.data(), args.ldy = n_;
    args.workspace = workspace.get(), args.workspace_bytes = bytes;
    EXPECT_EQ(omni_run(plan, &args), OMNI_OK) << omni_last_error();
    return y;
  }

  SafetensorsFile file_ = SafetensorsFile::open(std::string(OMNI_TEST_DATA "/int4/") + GetParam() + ".safetensors");
  int64_t n_ = 0, k_ = 0, m_ = 0, group_ = 0;
  omni_layout layout_{};
  std::unique_ptr<uint8_t[]> codes_;
  size_t codes_bytes_ = 0;
  std::vector<float> scales_;
};

INSTANTIATE_TEST_SUITE_P(Files, ExactGolden, ::testing::ValuesIn(files()), [](const auto& info) { return info.param; });

TEST_P(ExactGolden, EveryRowOfTheRegistry) {
  const auto f32 = file_.at(w4() ? "ref_out_f32" : "out_f32").as<float>();
  const auto bf16 = file_.at(w4() ? "out_bf16_vllm" : "out_bf16").as<uint16_t>();
  const auto biased = file_.at(w4() ? "out_bias_bf16_vllm" : "out_bias_bf16").as<uint16_t>();
  int ran = 0;
  for (const KernelRow& row : registry()) {
    if (row.numerics != Numerics::kExact || row.weights != layout_.format || (row.required & ~hardware_isa()) != 0) continue;
    ++ran;
    for (const omni_dtype x_type : {OMNI_DTYPE_BF16, OMNI_DTYPE_S8}) {
      for (const int64_t rows : {int64_t{1}, int64_t{2}, int64_t{5}, m_}) {
        if (row.op == Op::kGemv && rows > 1) continue;
        for (int64_t first = 0; first < m_; first += rows) {
          const int64_t m = std::min(rows, m_ - first);
          const auto part = [&](const auto& all) {
            return std::remove_cvref_t<decltype(all)>(all.begin() + first * n_, all.begin() + (first + m) * n_);
          };
          const auto sums = run<float>(row.name.data(), x_type, false, first, m);
          EXPECT_EQ(std::memcmp(sums.data(), part(f32).data(), sums.size() * 4), 0) << row.name << " row " << first << " m " << m;
          EXPECT_EQ(run<uint16_t>(row.name.data(), x_type, false, first, m), part(bf16)) << row.name << " m " << m;
          EXPECT_EQ(run<uint16_t>(row.name.data(), x_type, true, first, m), part(biased)) << row.name << " m " << m;
        }
      }
    }
  }
  EXPECT_GE(ran, 1);
}

}  // namespace
}  // namespace okl::test
