// SPDX-License-Identifier: Apache-2.0
// Packing of int4 sources: their codes and scales survive every form that can hold them.
#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>

#include "reference/core/error.h"
#include "reference/pack/packer.h"
#include "tests/support/int4_checkpoint.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_spark.h"
#include "tests/support/unpack_matrix.h"

namespace ref {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using omni_files::Int4Module;
using omni_files::SafetensorsWriter;
using omni_files::TemporaryDirectory;
using omni_files::TinySpark;

constexpr const char* kOut = "model.layers.0.self_attn.out_proj";

json gptq_config(int64_t group, bool act_order = false, const char* format = "gptq") {
  return {{"quant_method", "gptq"},     {"bits", 4}, {"group_size", group}, {"sym", false}, {"desc_act", act_order},
          {"checkpoint_format", format}};
}
json awq_config(int64_t group) {
  return {{"quant_method", "awq"}, {"bits", 4}, {"group_size", group}, {"zero_point", true}, {"version", "gemm"}};
}
json compressed_config(const json& weights) {
  json all = {{"num_bits", 4}, {"type", "int"}, {"symmetric", false}};
  all.update(weights);
  return {{"quant_method", "compressed-tensors"},
          {"format", "pack-quantized"},
          {"config_groups", {{"group_0", {{"targets", {"Linear"}}, {"weights", all}}}}}};
}

// A tiny model whose out_proj is int4 and whose other modules are dense.
class Model {
 public:
  explicit Model(int64_t k, int64_t n = 64) : tiny_{.layers = 1, .hidden = n, .head_dim = k / 4}, writer(tiny_.weights()) {
    writer.remove(std::string(kOut) + ".weight");
  }
  std::shared_ptr<const ModelWeights> pack(const json& quant, const PackOptions& options, PackResult* result = nullptr) const {
    json config = tiny_.config();
    config["quantization_config"] = quant;
    TinySpark::write(directory_ / "m", config, writer);
    return pack_in_memory(Checkpoint::open(directory_ / "m"), options, result, {}, nullptr);
  }

 private:
  TinySpark tiny_;
  TemporaryDirectory directory_;

 public:
  SafetensorsWriter writer;
};

std::vector<float> weights_of(const Int4Module& module) {
  std::vector<float> values;
  for (int64_t row = 0; row < module.n; ++row) {
    for (int64_t input = 0; input < module.k; ++input) values.push_back(module.weight(row, input));
  }
  return values;
}

const PackOptions kForms[] = {{.weights = WeightType::kKeep, .head = HeadType::kKeep},
                              {.weights = WeightType::kW4A16, .head = HeadType::kKeep},
                              {.weights = WeightType::kW4A8, .head = HeadType::kKeep}};

omni_format format_of(const PackOptions& options) {
  return options.weights == WeightType::kW4A8 ? OMNI_FORMAT_W4S : OMNI_FORMAT_TG4;
}

TEST(PackerInt4, EveryLayoutIsTheSameWeights) {
  // Groups of 64 that do not divide 96 inputs; rows that need padding.
  const Int4Module module = Int4Module::varied(48, 96, 64, false);
  for (const PackOptions& options : kForms) {
    for (int source = 0; source < 4; ++source) {
      Model model(96, 48);
      json quant = gptq_config(64, false, source == 1 ? "gptq_v2" : "gptq");
      if (source < 2) add_gptq(&model.writer, kOut, module, source == 1);
      if (source == 2) {
        add_awq(&model.writer, kOut, module);
        quant = awq_config(64);
      }
      if (source == 3) {
        add_compressed_tensors(&model.writer, kOut, module, false, "F16");
        quant = compressed_config({{"strategy", "group"}, {"group_size", 64}});
      }
      const auto weights = model.pack(quant, options);
      const Matrix& out = weights->matrix(kOut, 48, 96);
      EXPECT_EQ(out.layout.format, format_of(options));
      EXPECT_EQ(unpack_codes(out), module.codes);
      EXPECT_EQ(unpack_matrix(out), weights_of(module)) << source << " " << format_of(options);
      EXPECT_TRUE(out.permutation.empty());
    }
  }
}

// (8 - zp) * s of most scales needs more bits than bf16 has; where none does, half the bytes will do.
TEST(PackerInt4, ScalesStayFp32UnlessAllAreBf16) {
  Int4Module module = Int4Module::constant(64, 64, 32, 3, 5, 0.75F);
  const auto type_of = [&](const PackOptions& options) {
    Model model(64);
    add_gptq(&model.writer, kOut, module);
    return model.pack(gptq_config(32), options)->matrix(kOut, 64, 64).layout.scale_type;
  };
  EXPECT_EQ(type_of(kForms[1]), OMNI_DTYPE_BF16);
  PackOptions wide = kForms[1];
  wide.fp32_scales = true;
  EXPECT_EQ(type_of(wide), OMNI_DTYPE_F32);
  module.scales.back() = 1.5F + 0x1p-7F;  // bf16, but three times it is not
  EXPECT_EQ(type_of(kForms[1]), OMNI_DTYPE_F32);
  EXPECT_EQ(type_of(kForms[2]), OMNI_DTYPE_BF16);
  module.scales.back() = 1 + 0x1p-10F;  // no bf16
  EXPECT_EQ(type_of(kForms[2]), OMNI_DTYPE_F32);
}

TEST(PackerInt4, VersionOneAndTwoDifferByOne) {  // AC-010
  const Int4Module module = Int4Module::constant(64, 64, 32, 11, 8, 0.5F);
  for (const bool v2 : {false, true}) {
    Model model(64);
    add_gptq(&model.writer, kOut, module, v2);
    const auto weights = model.pack(gptq_config(32, false, v2 ? "gptq_v2" : "gptq"), kForms[1]);
    EXPECT_EQ(unpack_matrix(weights->matrix(kOut, 64, 64)), std::vector<float>(64 * 64, 1.5F));
  }
}

TEST(PackerInt4, AwqZeroPointZeroStaysZero) {  // AC-011
  const Int4Module module = Int4Module::constant(64, 64, 32, 5, 0, 0.25F);
  for (const PackOptions& options : kForms) {
    Model model(64);
    add_awq(&model.writer, kOut, module);
    EXPECT_EQ(unpack_matrix(model.pack(awq_config(32), options)->matrix(kOut, 64, 64)), std::vector<float>(64 * 64, 1.25F));
  }
}

TEST(PackerInt4, GptqZeroPointSixteenIsHeld) {
  const Int4Module module = Int4Module::constant(64, 64, 32, 5, 16, 0.25F);
  for (const PackOptions& options : kForms) {
    Model model(64);
    add_gptq(&model.writer, kOut, module);
    EXPECT_EQ(unpack_matrix(model.pack(gptq_config(32), options)->matrix(kOut, 64, 64)), std::vector<float>(64 * 64, -2.75F));
  }
}

// x through the packed matrix, as a decoder runs it: fp32 x, scales and zeros.
std::vector<float> multiply(const Matrix& matrix, const std::vector<float>& x) {
  auto query = omni::sized<omni_linear_query>();
  query.numerics = OMNI_NUMERICS_TORCH;
  query.x_type = OMNI_DTYPE_F32;
  query.y_type = OMNI_DTYPE_F32;
  query.max_m = 1;
  query.weights = matrix.layout;
  const omni::Plan plan(query);
  const omni::PackedMemory workspace(plan.workspace_size(1) + 64);
  std::vector<float> y(static_cast<size_t>(matrix.layout.n));
  auto args = omni::sized<omni_linear_args>();
  args.m = 1;
  args.x = x.data();
  args.ldx = matrix.layout.k;
  args.k_permutation = matrix.permutation.empty() ? nullptr : matrix.permutation.data();
  args.codes = matrix.codes.data();
  args.codes_bytes = matrix.codes.size();
  args.scales = matrix.scales.data();
  args.scales_bytes = matrix.scales.size();
  args.y = y.data();
  args.ldy = matrix.layout.n;
  args.workspace = workspace.data();
  args.workspace_bytes = workspace.size();
  plan.run(args);
  return y;
}

TEST(PackerInt4, ActOrderIsFolded) {  // AC-012
  Int4Module module = Int4Module::constant(64, 256, 128, 9, 8, 1);
  for (int64_t i = 0; i < 256; ++i) module.g_idx.push_back(static_cast<int32_t>(i % 2));
  for (size_t i = 1; i < module.scales.size(); i += 2) module.scales[i] = 100;
  for (const PackOptions& options : kForms) {
    Model model(256);
    add_gptq(&model.writer, kOut, module);
    PackOptions wide = options;
    wide.fp32_scales = true;
    const auto weights = model.pack(gptq_config(128, true), wide);
    const Matrix& out = weights->matrix(kOut, 64, 256);
    ASSERT_EQ(out.permutation.size(), 256U);
    EXPECT_EQ(out.permutation[1], 2);
    EXPECT_EQ(out.permutation[128], 1);
    const std::vector<float> values = unpack_matrix(out);
    for (size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], i % 2 == 0 ? 1.0F : 100.0F) << i;
    if (out.layout.format != OMNI_FORMAT_TG4) continue;
    std::vector<float> x(256, 1);
    EXPECT_EQ(multiply(out, x), std::vector<float>(64, 12928));
    std::ranges::fill(x, 0.0F);
    x[1] = 1;
    EXPECT_EQ(multiply(out, x), std::vector<float>(64, 100));
  }
}

TEST(PackerInt4, OneGroupForTheWholeRow) {  // AC-013
  const Int4Module module = Int4Module::constant(64, 96, 96, 9, 8, 0.5F);
  for (const PackOptions& options : kForms) {
    PackOptions wide = options;
    wide.fp32_scales = true;
    Model gptq(96), compressed(96);
    add_gptq(&gptq.writer, kOut, module);
    add_compressed_tensors(&compressed.writer, kOut, module, true, "F16");
    for (const auto& weights : {gptq.pack(gptq_config(-1), wide),
                                compressed.pack(compressed_config({{"strategy", "channel"}, {"symmetric", true}}), wide)}) {
      const Matrix& out = weights->matrix(kOut, 64, 96);
      EXPECT_EQ(out.layout.group, 96U);
      EXPECT_EQ(unpack_matrix(out), std::vector<float>(64 * 96, 0.5F));
      if (out.layout.format != OMNI_FORMAT_TG4) continue;
      EXPECT_EQ(multiply(out, std::vector<float>(96, 1)), std::vector<float>(64, 48));
    }
  }
}

TEST(PackerInt4, UnpackedZeroPointsAreRefused) {  // AC-018
  Model model(64);
  add_gptq(&model.writer, kOut, Int4Module::constant(64, 64, 32, 9, 8, 0.5F));
  model.writer.add(std::string(kOut) + ".qzeros", "F16", {2, 64}, std::vector<uint16_t>(128, 0x4800));
  try {
    model.pack(gptq_config(32), kForms[1]);
    FAIL();
  } catch (const Error& error) {
    const std::string line = error.what();
    EXPECT_NE(line.find(std::string(kOut) + ".qzeros\" is F16 [2, 64], expected I32 [2, 8]"), line.npos) << line;
  }
}

TEST(PackerInt4, CoarserFormsAreRoundedAgainAndSaid) {
  const Int4Module module = Int4Module::varied(64, 64, 32, false);
  for (const WeightType type : {WeightType::kW8A8, WeightType::kBf16}) {
    Model model(64);
    add_gptq(&model.writer, kOut, module);
    PackResult result;
    const auto weights = model.pack(gptq_config(32), {.weights = type, .group = 0}, &result);
    const Matrix& out = weights->matrix(kOut, 64, 64);
    EXPECT_EQ(out.layout.format, type == WeightType::kBf16 ? OMNI_FORMAT_W16 : OMNI_FORMAT_W8S);
    const std::vector<float> values = unpack_matrix(out), given = weights_of(module);
    for (size_t i = 0; i < values.size(); ++i) ASSERT_NEAR(values[i], given[i], 0.012F);
    EXPECT_TRUE(std::ranges::any_of(result.notes, [](const auto& note) { return note.starts_with("1 int4 matrices"); }));
  }
}

// Gate and up read the same input but may order it differently.
TEST(PackerInt4, DifferentOrdersArePackedApart) {
  const TinySpark tiny{.layers = 1};
  Int4Module gate = Int4Module::varied(96, 64, 32, false), up = gate;
  for (int64_t i = 0; i < 64; ++i) {
    gate.g_idx.push_back(static_cast<int32_t>(i % 2));
    up.g_idx.push_back(static_cast<int32_t>(1 - i % 2));
  }
  for (const bool same : {true, false}) {
    const TemporaryDirectory directory;
    SafetensorsWriter writer = tiny.weights();
    writer.remove("model.layers.0.mlp.gate_proj.weight").remove("model.layers.0.mlp.up_proj.weight");
    add_gptq(&writer, "model.layers.0.mlp.gate_proj", gate);
    add_gptq(&writer, "model.layers.0.mlp.up_proj", same ? gate : up);
    json config = tiny.config();
    config["quantization_config"] = gptq_config(32, true);
    TinySpark::write(directory / "m", config, writer);
    const auto weights = pack_in_memory(Checkpoint::open(directory / "m"), kForms[1], nullptr, {}, nullptr);
    if (same) {
      std::vector<float> stacked = weights_of(gate);
      stacked.insert(stacked.end(), stacked.begin(), stacked.begin() + 96 * 64);
      EXPECT_EQ(unpack_matrix(weights->matrix("model.layers.0.mlp.gate_up_proj", 192, 64)), stacked);
    } else {
      EXPECT_EQ(unpack_matrix(weights->matrix("model.layers.0.mlp.gate_proj", 96, 64)), weights_of(gate));
      EXPECT_EQ(unpack_matrix(weights->matrix("model.layers.0.mlp.up_proj", 96, 64)), weights_of(up));
    }
  }
}

// The same codes, scales and zeros in every layout of the golden checkpoints.
TEST(PackerInt4, GoldenCheckpointsHoldTheirPlainCodes) {
  const char* goldens = std::getenv("OMNI_GOLDENS");
  if (goldens == nullptr) GTEST_SKIP() << "OMNI_GOLDENS names no directory";
  const fs::path spark = fs::path(goldens) / "spark";
  for (const auto& [model, layouts] :
       {std::pair<std::string, std::vector<std::string>>{"a_int4", {"gptq", "gptq_v2", "compressed-tensors"}},
        {"d_int4", {"gptq", "compressed-tensors"}}}) {
    const auto plain = omni_files::SafetensorsFile::open((spark / model / "plain_codes.safetensors").string());
    for (const std::string& layout : layouts) {
      for (const PackOptions& options : kForms) {
        const auto weights = pack_in_memory(Checkpoint::open(spark / model / layout), options, nullptr, {}, nullptr);
        int compared = 0;
        for (const auto& [name, matrix] : weights->matrices) {
          if (plain.find(name + ".codes") == nullptr) continue;  // gate_up and the head
          ++compared;
          const auto codes = plain.at(name + ".codes").as<uint8_t>(), zeros = plain.at(name + ".zero").as<uint8_t>();
          const auto scales = plain.at(name + ".scale").as<float>();
          std::vector<float> expected(codes.size());
          const auto k = static_cast<size_t>(matrix.layout.k), groups = scales.size() / static_cast<size_t>(matrix.layout.n);
          for (size_t i = 0; i < codes.size(); ++i) {
            const size_t cell = i / k * groups + i % k / matrix.layout.group;
            expected[i] = static_cast<float>(codes[i] - zeros[cell]) * scales[cell];
          }
          EXPECT_EQ(unpack_matrix(matrix), expected) << model << " " << layout << " " << name;
        }
        EXPECT_GE(compared, 12) << model << " " << layout;
      }
    }
  }
}

}  // namespace
}  // namespace ref
