// SPDX-License-Identifier: Apache-2.0
// Packing of dense sources into memory: what each form becomes, to the bit.
#include "reference/pack/packer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "reference/core/error.h"
#include "reference/pack/plan.h"
#include "reference/pack/quantiser.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_spark.h"
#include "tests/support/unpack_matrix.h"

namespace ref {
namespace {

using omni_files::SafetensorsWriter;
using omni_files::TemporaryDirectory;
using omni_files::TinySpark;

constexpr const char* kQkv = "model.layers.0.self_attn.q_k_v_proj";
constexpr const char* kOut = "model.layers.0.self_attn.out_proj";
constexpr const char* kDown = "model.layers.1.mlp.down_proj";
constexpr const char* kGateUp = "model.layers.1.mlp.gate_up_proj";
constexpr const char* kEmbedding = "model.embedding.weight";

class Model {
 public:
  explicit Model(const TinySpark& tiny) : Model(tiny, tiny.weights()) {}
  Model(const TinySpark& tiny, const SafetensorsWriter& weights) {
    TinySpark::write(directory_ / "m", tiny.config(), weights);
    checkpoint_ = std::make_unique<Checkpoint>(Checkpoint::open(directory_ / "m"));
  }
  std::shared_ptr<const ModelWeights> pack(const PackOptions& options, PackResult* result = nullptr,
                                           const omni_parallel* parallel = nullptr) const {
    return pack_in_memory(*checkpoint_, options, result, {}, parallel);
  }
  std::vector<float> values(const std::string& tensor) const {
    const TensorView& view = checkpoint_->at(tensor);
    return widen(Plain{plain_type(view), view.shape(), view.bytes()});
  }

 private:
  TemporaryDirectory directory_;
  std::unique_ptr<Checkpoint> checkpoint_;
};

const PackOptions kKeepAll{.weights = WeightType::kKeep, .head = HeadType::kKeep};

TEST(Packer, KeepsBf16ExactlyAndSharesTheTiedTable) {
  const Model model{TinySpark{}};
  const auto weights = model.pack(kKeepAll);
  const Matrix& out = weights->matrix(kOut, 64, 64);
  EXPECT_EQ(out.layout.format, OMNI_FORMAT_W16);
  EXPECT_NE(out.layout.flags & OMNI_LAYOUT_SCRUBBED, 0);
  EXPECT_EQ(unpack_matrix(out), model.values(std::string(kOut) + ".weight"));
  std::vector<float> stacked = model.values("model.layers.1.mlp.gate_proj.weight");
  const std::vector<float> up = model.values("model.layers.1.mlp.up_proj.weight");
  stacked.insert(stacked.end(), up.begin(), up.end());
  EXPECT_EQ(unpack_matrix(weights->matrix(kGateUp, 192, 64)), stacked);
  EXPECT_EQ(unpack_matrix(weights->matrix("lm_head", 80, 64)), model.values(kEmbedding));
  EXPECT_EQ(weights->find_plain(kEmbedding), nullptr);
  EXPECT_EQ(weights->plain("model.layers.0.self_attn.g_proj.weight", {4, 64}).type, OMNI_DTYPE_BF16);
  EXPECT_EQ(weights->config["vocab_size"], 80);
}

TEST(Packer, KeepsFp32AndRoundsItOnlyWhenAsked) {
  const TinySpark tiny{.tied = false, .dtype = "F32"};
  const Model model{tiny};
  const std::vector<float> source = model.values(std::string(kOut) + ".weight");
  const auto kept = model.pack(kKeepAll);
  EXPECT_EQ(kept->matrix(kOut, 64, 64).layout.format, OMNI_FORMAT_W32);
  EXPECT_EQ(unpack_matrix(kept->matrix(kOut, 64, 64)), source);
  EXPECT_EQ(kept->plain(kEmbedding, {80, 64}).type, OMNI_DTYPE_F32);

  PackResult result;
  const auto rounded = model.pack({.weights = WeightType::kBf16, .head = HeadType::kBf16}, &result);
  const Matrix& out = rounded->matrix(kOut, 64, 64);
  EXPECT_EQ(out.layout.format, OMNI_FORMAT_W16);
  std::vector<float> expected = source;
  for (float& value : expected) value = widen_bf16(round_bf16(value));
  EXPECT_EQ(unpack_matrix(out), expected);
  double error = 0, energy = 0;
  for (size_t i = 0; i < source.size(); ++i) {
    error += std::pow(static_cast<double>(source[i]) - static_cast<double>(expected[i]), 2);
    energy += std::pow(static_cast<double>(source[i]), 2);
  }
  const auto found = std::ranges::find(result.tensors, kOut, &TensorReport::name);
  ASSERT_NE(found, result.tensors.end());
  EXPECT_NEAR(found->relative_error, std::sqrt(error / energy), 1e-9);
}

TEST(Packer, Fp16IsBf16WhereThatIsExact) {
  // 1 + 2^-7 is a bf16 value, 1 + 2^-10 is none; 2^-24 * 255 is, 2^-24 * 257 is none.
  for (const auto& [bits, exact] : {std::pair{0x3C08, true}, {0x3C01, false}, {0x00FF, true}, {0x0101, false}, {0x7E00, true}}) {
    const TinySpark tiny{.layers = 1};
    SafetensorsWriter writer = tiny.weights();
    std::vector<uint16_t> values(64 * 64, 0x3C00);
    values[77] = static_cast<uint16_t>(bits);
    writer.add(std::string(kOut) + ".weight", "F16", {64, 64}, values);
    const Model model(tiny, writer);
    const auto weights = model.pack(kKeepAll);
    EXPECT_EQ(weights->matrix(kOut, 64, 64).layout.format, exact ? OMNI_FORMAT_W16 : OMNI_FORMAT_W32) << std::hex << bits;
    EXPECT_EQ(unpack_matrix(weights->matrix(kOut, 64, 64))[76], 1.0F);
    if (bits != 0x7E00) {
      EXPECT_EQ(unpack_matrix(weights->matrix(kOut, 64, 64))[77], widen_f16(static_cast<uint16_t>(bits)));
    }
  }
}

// Values that bf16 rows cannot meet as they are: kept in fp32, scrubbed in a copy.
TEST(Packer, SmallValuesNeverMeetBf16RowsUnscrubbed) {
  const TinySpark tiny;
  SafetensorsWriter writer = tiny.weights();
  std::vector<uint16_t> values(80 * 64, 0x3F80);
  values[5] = 0x237F;  // just below 2^-56
  values[6] = 0x2380;  // 2^-56
  writer.add(kEmbedding, "BF16", {80, 64}, values);
  const Model model(tiny, writer);
  const auto kept = model.pack(kKeepAll);
  EXPECT_EQ(kept->matrix("lm_head", 80, 64).layout.format, OMNI_FORMAT_W32);
  EXPECT_EQ(unpack_matrix(kept->matrix("lm_head", 80, 64)), model.values(kEmbedding));
  EXPECT_EQ(kept->find_plain(kEmbedding), nullptr);

  const auto scrubbed = model.pack({.weights = WeightType::kBf16, .head = HeadType::kBf16});
  const Matrix& head = scrubbed->matrix("lm_head", 80, 64);
  EXPECT_EQ(head.layout.format, OMNI_FORMAT_W16);
  EXPECT_NE(head.layout.flags & OMNI_LAYOUT_SCRUBBED, 0);
  EXPECT_EQ(unpack_matrix(head)[5], 0.0F);
  EXPECT_EQ(unpack_matrix(head)[6], 0x1p-56F);
  EXPECT_EQ(widen(scrubbed->plain(kEmbedding, {80, 64})), model.values(kEmbedding));
}

// What quantise_rows() finds for the whole matrix is what the packed bytes hold.
TEST(Packer, FourBitFormsHoldTheQuantisersCodes) {
  const Model model{TinySpark{}};
  const std::vector<float> w = model.values(std::string(kDown) + ".weight");  // 64 x 96: a group of 64 ends short
  for (const bool symmetric : {true, false}) {
    std::vector<uint8_t> codes(64 * 96), zeros(64 * 2);
    std::vector<float> scales(64 * 2), expected(64 * 96);
    quantise_rows(w.data(), 64, 96, 96, 64, symmetric, Quantiser::kNearest, {}, {codes.data(), scales.data(), zeros.data()},
                  nullptr);
    double error = 0, energy = 0;
    for (size_t i = 0; i < codes.size(); ++i) {
      const size_t cell = i / 96 * 2 + i % 96 / 64;
      expected[i] = static_cast<float>(codes[i] - zeros[cell]) * scales[cell];
      error += std::pow(static_cast<double>(w[i]) - static_cast<double>(expected[i]), 2);
      energy += std::pow(static_cast<double>(w[i]), 2);
    }
    for (const WeightType type : {WeightType::kW4A16, WeightType::kW4A8}) {
      PackResult result;
      const auto weights =
          model.pack({.weights = type, .group = 64, .symmetric = symmetric, .quantiser = Quantiser::kNearest}, &result);
      const Matrix& down = weights->matrix(kDown, 64, 96);
      EXPECT_EQ(down.layout.format, type == WeightType::kW4A8 ? OMNI_FORMAT_W4S : OMNI_FORMAT_TG4);
      EXPECT_NE(down.layout.flags & OMNI_LAYOUT_SHORT_GROUP, 0);
      const bool bf16 = type == WeightType::kW4A8 || symmetric;
      EXPECT_EQ(down.layout.scale_type, bf16 ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32);
      EXPECT_EQ(unpack_codes(down), codes);
      const std::vector<float> unpacked = unpack_matrix(down);
      for (size_t i = 0; i < expected.size(); ++i) ASSERT_NEAR(unpacked[i], expected[i], 1e-6F) << i;
      const auto found = std::ranges::find(result.tensors, kDown, &TensorReport::name);
      EXPECT_NEAR(found->relative_error, std::sqrt(error / energy), 1e-6);
    }
  }
}

TEST(Packer, TheTypeOfScaleArraysCanBeChosen) {
  const Model model{TinySpark{}};
  PackOptions options{.weights = WeightType::kW4A16, .group = 32, .quantiser = Quantiser::kNearest, .fp32_scales = true};
  options.symmetric = true;
  EXPECT_EQ(model.pack(options)->matrix(kQkv, 128, 64).layout.scale_type, OMNI_DTYPE_F32);
  options.symmetric = false;
  const auto exact = model.pack(options);
  options.fp32_scales = false;
  options.bf16_zeros = true;
  const auto rounded = model.pack(options);
  const Matrix &a = exact->matrix(kQkv, 128, 64), &b = rounded->matrix(kQkv, 128, 64);
  EXPECT_EQ(b.layout.scale_type, OMNI_DTYPE_BF16);
  EXPECT_TRUE(std::ranges::equal(a.codes, b.codes));
  for (int64_t i = 0; i < 2 * 128 * 2; ++i) EXPECT_EQ(scale_at(b, i), widen_bf16(round_bf16(scale_at(a, i)))) << i;
  // Zeros that are searched for are bf16 numbers in the first place, and lose less than those of a grid.
  options.bf16_zeros = false;
  options.quantiser = Quantiser::kSearch;
  PackResult searched, nearest;
  EXPECT_EQ(model.pack(options, &searched)->matrix(kQkv, 128, 64).layout.scale_type, OMNI_DTYPE_BF16);
  options.quantiser = Quantiser::kNearest;
  model.pack(options, &nearest);
  const auto error = [](const PackResult& result) {
    return std::ranges::find(result.tensors, kQkv, &TensorReport::name)->relative_error;
  };
  EXPECT_LT(error(searched), 0.95 * error(nearest));
}

TEST(Packer, EightBitFormsHoldTheQuantisersCodes) {
  const Model model{TinySpark{}};
  const std::vector<float> w = model.values(std::string(kDown) + ".weight");
  for (const int64_t group : {0, 64}) {
    const int64_t inputs = group == 0 ? 96 : group, groups = (96 + inputs - 1) / inputs;
    std::vector<int8_t> codes(64 * 96);
    std::vector<float> scales(static_cast<size_t>(64 * groups));
    quantise_rows_s8(w.data(), 64, 96, 96, inputs, group != 0, codes.data(), scales.data(), nullptr);
    const auto weights = model.pack({.weights = WeightType::kW8A8, .group = group, .head = HeadType::kW8});
    const Matrix& down = weights->matrix(kDown, 64, 96);
    EXPECT_EQ(down.layout.scale_type, group == 0 ? OMNI_DTYPE_F32 : OMNI_DTYPE_BF16);
    const std::vector<float> unpacked = unpack_matrix(down);
    for (int64_t i = 0; i < 64 * 96; ++i) {
      const float scale = scales[static_cast<size_t>(i / 96 * groups + i % 96 / inputs)];
      ASSERT_EQ(unpacked[static_cast<size_t>(i)], static_cast<float>(codes[static_cast<size_t>(i)]) * scale) << i;
    }
    // The head has a scale of its own for each row, whatever the group.
    EXPECT_EQ(weights->matrix("lm_head", 80, 64).layout.group, 64U);
    EXPECT_EQ(weights->matrix("lm_head", 80, 64).layout.format, OMNI_FORMAT_W8S);
    EXPECT_EQ(widen(weights->plain(kEmbedding, {80, 64})), model.values(kEmbedding));
  }
}

TEST(Packer, TheHeadFollowsTheWeightPath) {
  const Model model{TinySpark{}};
  const auto head = [&](WeightType type) {
    return model.pack({.weights = type, .group = 128, .head = HeadType::kW4, .quantiser = Quantiser::kNearest})
        ->matrix("lm_head", 80, 64)
        .layout;
  };
  EXPECT_EQ(head(WeightType::kW4A16).format, OMNI_FORMAT_TG4);
  EXPECT_EQ(head(WeightType::kW4A8).format, OMNI_FORMAT_W4S);
  EXPECT_EQ(head(WeightType::kW4A8).flags & OMNI_LAYOUT_ZEROS, 0);
  EXPECT_EQ(head(WeightType::kW4A8).group, 64U);
}

TEST(Packer, BiasesAreStackedLikeTheirMatrices) {
  const TinySpark tiny{.bias = true};
  const Model model{tiny};
  const auto weights = model.pack(kKeepAll);
  std::vector<float> stacked = model.values("model.layers.1.mlp.gate_proj.bias");
  const std::vector<float> up = model.values("model.layers.1.mlp.up_proj.bias");
  stacked.insert(stacked.end(), up.begin(), up.end());
  EXPECT_EQ(widen(weights->plain("model.layers.1.mlp.gate_up_proj.bias", {192})), stacked);
  EXPECT_NE(weights->find_plain("model.layers.0.self_attn.g_proj.bias"), nullptr);
  EXPECT_NE(weights->find_plain("model.layers.0.mlp.down_proj.bias"), nullptr);
}

TEST(Packer, KeptModulesStayAndPartTheMlpWhereTheyMust) {
  const Model model{TinySpark{}};
  PackOptions options{.weights = WeightType::kW4A16, .group = 32, .quantiser = Quantiser::kNearest};
  options.keep = {"*.1.mlp.up_proj", "*.0.self_attn.*", "lm_head", "*.nowhere"};
  PackResult result;
  const auto weights = model.pack(options, &result);
  EXPECT_EQ(weights->find_matrix(kGateUp), nullptr);
  EXPECT_EQ(weights->matrix("model.layers.1.mlp.up_proj", 96, 64).layout.format, OMNI_FORMAT_W16);
  EXPECT_EQ(weights->matrix("model.layers.1.mlp.gate_proj", 96, 64).layout.format, OMNI_FORMAT_TG4);
  EXPECT_EQ(weights->matrix("model.layers.0.mlp.gate_up_proj", 192, 64).layout.format, OMNI_FORMAT_TG4);
  EXPECT_EQ(weights->matrix(kQkv, 128, 64).layout.format, OMNI_FORMAT_W16);
  EXPECT_EQ(weights->matrix("lm_head", 80, 64).layout.format, OMNI_FORMAT_W16);
  EXPECT_TRUE(std::ranges::any_of(result.notes, [](const auto& note) { return note == "--keep *.nowhere matches no module"; }));
}

// 2 MiB of fp32 rows would fit a slice many times; a head of 4200 x 1024 takes two.
TEST(Packer, SlicesAndThreadsNeverShow) {
  const TinySpark tiny{
      .layers = 1, .hidden = 1024, .intermediate = 32, .heads = 1, .kv_heads = 1, .head_dim = 8, .vocabulary = 4200};
  const Model model{tiny};
  const std::vector<float> w = model.values(kEmbedding);
  const auto weights = model.pack({.weights = WeightType::kBf16, .head = HeadType::kW4, .quantiser = Quantiser::kNearest});
  std::vector<uint8_t> codes(w.size()), zeros(4200 * 16);
  std::vector<float> scales(4200 * 16);
  quantise_rows(w.data(), 4200, 1024, 1024, 64, true, Quantiser::kNearest, {}, {codes.data(), scales.data(), zeros.data()},
                nullptr);
  EXPECT_EQ(unpack_codes(weights->matrix("lm_head", 4200, 1024)), codes);
  EXPECT_EQ(scale_at(weights->matrix("lm_head", 4200, 1024), (15 * 4200 + 4199) * 2), scales.back());
  for (const uint32_t threads : {1, 3}) {
    const omni::Pool pool(threads);
    const auto again = model.pack({.weights = WeightType::kBf16, .head = HeadType::kW4, .quantiser = Quantiser::kNearest}, nullptr,
                                  pool.parallel());
    for (const auto& [name, matrix] : weights->matrices) {
      EXPECT_TRUE(std::ranges::equal(matrix.codes, again->matrices.at(name).codes)) << name;
      EXPECT_TRUE(std::ranges::equal(matrix.scales, again->matrices.at(name).scales)) << name;
    }
  }
}

TEST(Packer, NamesTheWeightThatIsNoNumber) {
  for (const WeightType type : {WeightType::kW4A8, WeightType::kW8A8}) {
    const TinySpark tiny;
    SafetensorsWriter writer = tiny.weights();
    std::vector<uint16_t> values(96 * 64, 0x3F80);
    values[7 * 64 + 9] = type == WeightType::kW4A8 ? 0x7F80 : 0xFFC0;
    writer.add("model.layers.1.mlp.up_proj.weight", "BF16", {96, 64}, values);
    const Model model(tiny, writer);
    try {
      model.pack({.weights = type});
      FAIL();
    } catch (const Error& error) {
      EXPECT_TRUE(
          std::string(error.what())
              .ends_with("model.safetensors: tensor \"model.layers.1.mlp.up_proj.weight\" row 7, column 9 cannot be quantised"))
          << error.what();
    }
  }
}

}  // namespace
}  // namespace ref
