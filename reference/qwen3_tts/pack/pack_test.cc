// SPDX-License-Identifier: Apache-2.0
// What becomes of a Qwen3-TTS checkpoint: every tensor of it against its definition, in every form.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reference/core/half.h"
#include "reference/qwen3_tts/pack/source_for_test.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/unpack_matrix.h"

namespace ref::tts {
namespace {

using test::Expected;
using test::ExpectedModel;

const PackOptions kKeepAll{.weights = WeightType::kKeep, .head = HeadType::kKeep};

std::shared_ptr<const ModelWeights> pack(const Checkpoint& source, const PackOptions& options, PackResult* result = nullptr) {
  return pack_in_memory(source, options, result, {}, nullptr);
}

class GoldenModels : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::filesystem::path path = test::source_path(GetParam());
    if (path.empty()) GTEST_SKIP() << "the golden is not here; OMNI_GOLDENS names the full set";
    source_ = std::make_unique<Checkpoint>(Checkpoint::open(path));
  }
  std::unique_ptr<Checkpoint> source_;
};
INSTANTIATE_TEST_SUITE_P(All, GoldenModels, testing::Values("base-tiny-bf16", "base-tiny", "custom-tiny", "design-tiny"),
                         [](const auto& info) { return std::regex_replace(info.param, std::regex("-"), "_"); });

TEST_P(GoldenModels, KeptMeansEveryValueInItsPlace) {
  PackResult result;
  const auto weights = pack(*source_, kKeepAll, &result);
  const ExpectedModel expected(*source_, true);
  EXPECT_EQ(weights->matrices.size(), expected.matrices.size());
  EXPECT_EQ(weights->plains.size(), expected.plains.size());
  for (const auto& [name, matrix] : expected.matrices) {
    EXPECT_EQ(unpack_matrix(weights->matrix(name, matrix.shape[0], matrix.shape[1])), matrix.values) << name;
  }
  for (const auto& [name, plain] : expected.plains) EXPECT_EQ(widen(weights->plain(name, plain.shape)), plain.values) << name;
  EXPECT_TRUE(result.notes.empty()) << result.notes.front();
}

// The form of every part, whatever another part's is.
struct Forms {
  uint16_t talker, head, predictor, predictor_head;
};
void expect_forms(const ModelWeights& weights, const Forms& forms) {
  for (const auto& [name, matrix] : weights.matrices) {
    const bool predictor = name.starts_with("talker.code_predictor."), layer = name.find(".layers.") != name.npos;
    const uint16_t format = matrix.layout.format;
    if (predictor && layer) {
      EXPECT_EQ(format, forms.predictor) << name;
    } else if (name.find("lm_head") != name.npos) {
      EXPECT_EQ(format, forms.predictor_head) << name;
    } else if (name == "talker.codec_head") {
      EXPECT_EQ(format, forms.head) << name;
    } else if (name.starts_with("talker.model.")) {
      EXPECT_EQ(format, forms.talker) << name;
    } else if (name.ends_with("small_to_mtp_projection")) {
      EXPECT_TRUE(format == OMNI_FORMAT_W8S || format == OMNI_FORMAT_W16 || format == OMNI_FORMAT_W32) << name;
    } else if (name.starts_with("decoder.") || name.starts_with("encoder.")) {
      EXPECT_EQ(format, OMNI_FORMAT_W32) << name;
    } else {
      EXPECT_TRUE(format == OMNI_FORMAT_W16 || format == OMNI_FORMAT_W32) << name;
    }
  }
}

// What rounding to nearest with groups of 32 may cost: half a step of a group's range, of four or eight bits.
void expect_near(const Matrix& matrix, const std::vector<float>& source, const std::string& name) {
  const std::vector<float> values = unpack_matrix(matrix);
  double error = 0, size = 0;
  for (size_t i = 0; i < values.size(); ++i) {
    error += std::pow(static_cast<double>(values[i]) - source[i], 2);
    size += std::pow(static_cast<double>(source[i]), 2);
  }
  const bool narrow = matrix.layout.format == OMNI_FORMAT_TG4 || matrix.layout.format == OMNI_FORMAT_W4S;
  const double most = narrow ? 0.15 : matrix.layout.format == OMNI_FORMAT_W8S ? 0.02 : 0.004;
  EXPECT_LE(std::sqrt(error), most * std::sqrt(size)) << name;
}

TEST_P(GoldenModels, EveryFormHoldsTheModel) {
  const std::pair<WeightType, uint16_t> types[] = {{WeightType::kBf16, OMNI_FORMAT_W16},
                                                   {WeightType::kW8A8, OMNI_FORMAT_W8S},
                                                   {WeightType::kW4A8, OMNI_FORMAT_W4S},
                                                   {WeightType::kW4A16, OMNI_FORMAT_TG4}};
  const ExpectedModel expected(*source_, true);
  for (const auto& [type, format] : types) {
    const uint16_t head = type == WeightType::kBf16 ? OMNI_FORMAT_W16 : OMNI_FORMAT_W8S;
    const auto weights = pack(*source_, {.weights = type,
                                         .group = type == WeightType::kW8A8 ? 0 : 32,
                                         .head = type == WeightType::kBf16 ? HeadType::kBf16 : HeadType::kW8,
                                         .quantiser = Quantiser::kNearest});
    expect_forms(*weights, {format, head, format, head});
    for (const auto& [name, matrix] : expected.matrices) {
      expect_near(weights->matrix(name, matrix.shape[0], matrix.shape[1]), matrix.values, name);
    }
    for (const auto& [name, plain] : expected.plains) EXPECT_EQ(widen(weights->plain(name, plain.shape)), plain.values) << name;
  }
}

TEST_P(GoldenModels, TheCodecInBf16) {
  PackOptions options = kKeepAll;
  options.speech.codec = CodecType::kBf16;
  const auto weights = pack(*source_, options);
  const ExpectedModel expected(*source_, true);
  for (const auto& [name, matrix] : expected.matrices) {
    const Matrix& found = weights->matrix(name, matrix.shape[0], matrix.shape[1]);
    if (!name.starts_with("decoder.")) continue;
    EXPECT_EQ(found.layout.format, OMNI_FORMAT_W16) << name;
    EXPECT_NE(found.layout.flags & OMNI_LAYOUT_SCRUBBED, 0) << name;
    const std::vector<float> values = unpack_matrix(found);
    for (size_t i = 0; i < values.size(); ++i) {
      const float rounded = widen_bf16(round_bf16(matrix.values[i]));
      ASSERT_TRUE(values[i] == rounded || (values[i] == 0 && std::fabs(rounded) < 0x1p-56F)) << name << " " << i;
    }
  }
  EXPECT_EQ(weights->plain("decoder.quantizer.rvq_rest.codebook", {15, 256, 16}).type, OMNI_DTYPE_F32);
}

class Speech : public testing::Test {
 protected:
  // Packs what was edited; the error, or "".
  std::string error(const test::EditedSource& edited, const PackOptions& options = kKeepAll) {
    return test::error_of([&] { pack_edited(edited, options); });
  }
  std::shared_ptr<const ModelWeights> pack_edited(const test::EditedSource& edited, const PackOptions& options = kKeepAll) {
    const std::filesystem::path path = directory_ / std::to_string(made_++);
    edited.write(path);
    return pack(Checkpoint::open(path), options, &result_);
  }
  void expect_error(const std::string& found, const std::string& text) const {
    EXPECT_NE(found.find(text), found.npos) << found;
    EXPECT_EQ(found.find('\n'), found.npos);
  }

  omni_files::TemporaryDirectory directory_;
  PackResult result_;
  int made_ = 0;
};

TEST_F(Speech, EachPartHasAFormOfItsOwn) {
  const Checkpoint source = Checkpoint::open(test::source_path("base-tiny-bf16"));
  PackOptions options{.weights = WeightType::kW4A8, .group = 32, .head = HeadType::kBf16, .quantiser = Quantiser::kNearest};
  options.speech = {.predictor = WeightType::kW8A8, .predictor_group = 0, .predictor_head = HeadType::kW4};
  const auto mixed = pack(source, options);
  expect_forms(*mixed, {OMNI_FORMAT_W4S, OMNI_FORMAT_W16, OMNI_FORMAT_W8S, OMNI_FORMAT_W4S});
  EXPECT_EQ(mixed->matrix("talker.code_predictor.model.layers.0.mlp.down_proj", 64, 96).layout.group, 96);
  EXPECT_EQ(mixed->matrix("talker.model.layers.0.mlp.down_proj", 64, 160).layout.group, 32);
  options.speech.predictor = WeightType::kKeep;
  options.speech.predictor_head = HeadType::kKeep;
  expect_forms(*pack(source, options), {OMNI_FORMAT_W4S, OMNI_FORMAT_W16, OMNI_FORMAT_W16, OMNI_FORMAT_W16});
}

// Its form is what says that rows are fp32, whatever its values.
TEST_F(Speech, TheFp32CodecIsFp32) {
  test::EditedSource edited;
  edited.codec.add<float>("decoder.pre_conv.conv.weight", "F32", {48, 32, 3}, std::vector<float>(48 * 32 * 3, 0.5F));
  edited.codec.add<uint16_t>("decoder.decoder.6.conv.weight", "BF16", {1, 4, 7}, std::vector<uint16_t>(28, 0x3F00));
  const auto weights = pack_edited(edited);
  EXPECT_EQ(weights->matrix("decoder.pre_conv.conv", 48, 96).layout.format, OMNI_FORMAT_W32);
  EXPECT_EQ(weights->matrix("decoder.decoder.6.conv", 1, 28).layout.format, OMNI_FORMAT_W32);
  EXPECT_EQ(unpack_matrix(weights->matrix("decoder.decoder.6.conv", 1, 28)), std::vector<float>(28, 0.5F));
}

TEST_F(Speech, EncodersMayBeLeftOut) {
  const Checkpoint source = Checkpoint::open(test::source_path("base-tiny-bf16"));
  PackOptions options = kKeepAll;
  options.strict = true;
  options.speech.encoders = false;
  const auto weights = pack(source, options, &result_);
  EXPECT_EQ(result_.notes, std::vector<std::string>{"without encoders the packed model cannot read a reference recording"});
  const ExpectedModel expected(source, false);
  EXPECT_EQ(weights->matrices.size(), expected.matrices.size());
  EXPECT_EQ(weights->plains.size(), expected.plains.size());
}

// One pattern for a module of a stack keeps the stack.
TEST_F(Speech, PatternsKeepModulesAndStacks) {
  const Checkpoint source = Checkpoint::open(test::source_path("base-tiny-bf16"));
  PackOptions options{.weights = WeightType::kW4A8, .group = 32, .quantiser = Quantiser::kNearest};
  options.keep = {"talker.model.layers.1.self_attn.k_proj", "*.layers.2.mlp.gate_up_proj", "decoder.decoder.0.conv", "no.such"};
  options.speech.codec = CodecType::kBf16;
  const auto weights = pack(source, options, &result_);
  const auto format = [&](const std::string& name) { return weights->matrices.at(name).layout.format; };
  EXPECT_EQ(format("talker.model.layers.1.self_attn.q_k_v_proj"), OMNI_FORMAT_W16);
  EXPECT_EQ(format("talker.model.layers.0.self_attn.q_k_v_proj"), OMNI_FORMAT_W4S);
  EXPECT_EQ(format("talker.model.layers.2.mlp.gate_up_proj"), OMNI_FORMAT_W16);
  EXPECT_EQ(format("decoder.decoder.0.conv"), OMNI_FORMAT_W32);
  EXPECT_EQ(format("decoder.pre_conv.conv"), OMNI_FORMAT_W16);
  EXPECT_EQ(result_.notes, std::vector<std::string>{"--keep no.such matches no module"});
}

TEST_F(Speech, TensorsOfAnotherShapeAreNamed) {
  test::EditedSource edited;
  edited.model.add<float>("talker.codec_head.weight", "F32", {1280, 63}, std::vector<float>(1280 * 63));
  expect_error(error(edited), "tensor \"talker.codec_head.weight\" is F32 [1280, 63], expected BF16 or F16 or F32 [1280, 64]");
  edited = test::EditedSource();
  edited.codec.add<float>("decoder.decoder.1.block.1.conv.weight", "F32", {32, 64, 16}, std::vector<float>(32 * 64 * 16));
  expect_error(error(edited), "tensor \"decoder.decoder.1.block.1.conv.weight\" has the shape [32, 64, 16], expected [64, 32, 16]");
  edited = test::EditedSource();
  edited.codec.add<int32_t>("decoder.pre_conv.conv.weight", "I32", {48, 32, 3}, std::vector<int32_t>(48 * 32 * 3));
  expect_error(error(edited), "tensor \"decoder.pre_conv.conv.weight\" is I32, expected BF16 or F16 or F32");
  edited = test::EditedSource();
  edited.codec.add<float>("decoder.upsample.0.1.dwconv.conv.weight", "F32", {48, 7}, std::vector<float>(48 * 7));
  expect_error(error(edited), "dwconv.conv.weight\" has the shape [48, 7], expected [48, 1, 7]");
  edited = test::EditedSource();
  edited.codec.add<float>("decoder.quantizer.rvq_rest.vq.layers.14._codebook.cluster_usage", "F32", {1}, {1});
  expect_error(error(edited), "rvq_rest.vq.layers.14._codebook.cluster_usage\" has the shape [1], expected [256]");
  edited = test::EditedSource();
  edited.config["talker_config"]["intermediate_size"] = 1 << 20;
  expect_error(error(edited), "tensor \"talker.model.layers.0.mlp.gate_proj.weight\" is BF16 [160, 64], expected");
}

TEST_F(Speech, AbsentPartsAreNamed) {
  test::EditedSource edited;
  edited.codec.remove("decoder.decoder.4.block.3.act2.beta");
  expect_error(error(edited), "has no tensor \"decoder.decoder.4.block.3.act2.beta\"");
  edited = test::EditedSource();
  edited.codec.remove("encoder.downsample.conv.weight");
  expect_error(error(edited), "has no tensor \"encoder.downsample.conv.weight\"");
  PackOptions without = kKeepAll;
  without.speech.encoders = false;
  EXPECT_EQ(error(edited, without), "");
  edited = test::EditedSource();
  edited.model.remove("speaker_encoder.fc.bias");
  expect_error(error(edited), "has no tensor \"speaker_encoder.fc.bias\"");

  const std::filesystem::path path = directory_ / "bare";
  test::EditedSource().write(path);
  std::filesystem::remove(path / kSpeechTokenizer / "model.safetensors");
  const auto open = [&] { pack(Checkpoint::open(path), kKeepAll); };
  expect_error(test::error_of(open), "bare/speech_tokenizer: has neither model.safetensors nor model.safetensors.index.json");
  std::filesystem::remove_all(path / kSpeechTokenizer);
  expect_error(test::error_of(open), "bare/speech_tokenizer: is absent, but a Qwen3-TTS model needs its speech tokenizer");
}

TEST_F(Speech, ConfigsThatContradictAreNamed) {
  test::EditedSource edited;
  edited.speech["model_type"] = "qwen3_tts_tokenizer_25hz";
  expect_error(error(edited), "\"model_type\" must be qwen3_tts_tokenizer_12hz");
  edited = test::EditedSource();
  edited.config["tts_model_type"] = "singer";
  expect_error(error(edited), "\"tts_model_type\" must be base, custom_voice or voice_design, not \"singer\"");
  edited = test::EditedSource();
  edited.config["model_type"] = "qwen4_tts";
  expect_error(error(edited), "\"qwen4_tts\" is not known here; spark2_5 and qwen3_tts are");
}

TEST_F(Speech, OneTensorInTwoFilesIsAnError) {
  test::EditedSource edited;
  edited.model.add<float>("decoder.decoder.5.alpha", "F32", {4}, std::vector<float>(4));
  expect_error(error(edited), "tensor \"decoder.decoder.5.alpha\" is also in ");
}

TEST_F(Speech, CodebooksAreFinite) {
  const std::string level = "decoder.quantizer.rvq_rest.vq.layers.3._codebook.";
  test::EditedSource edited;
  std::vector<float> sums(256 * 16, 1);
  sums[16 * 7 + 5] = INFINITY;
  edited.codec.add(level + "embedding_sum", "F32", {256, 16}, sums);
  expect_error(error(edited), "tensor \"" + level + "embedding_sum\" entry 7 divided by its usage is not finite");
  edited = test::EditedSource();
  std::vector<float> usage(256, 1);
  usage[255] = NAN;
  edited.codec.add(level + "cluster_usage", "F32", {256}, usage);
  expect_error(error(edited), "entry 255 divided by its usage is not finite");
}

TEST_F(Speech, WhatIsNoPartOfTheModelIsNotedOrRefused) {
  test::EditedSource edited;
  edited.codec.add<float>("decoder.quantizer.rvq_first.vq.layers.1._codebook.extra", "F32", {1}, {1});
  edited.model.add<float>("thinker.weight", "F32", {1}, {1});
  pack_edited(edited);
  ASSERT_EQ(result_.notes.size(), 2U);
  EXPECT_NE(result_.notes[1].find("tensor \"thinker.weight\" is no part of the model and was left out"), std::string::npos);
  PackOptions strict = kKeepAll;
  strict.strict = true;
  expect_error(error(edited, strict), "is no part of the model");
  EXPECT_EQ(error(test::EditedSource(), strict), "");  // upper quantisers and other leftovers are known
}

TEST_F(Speech, ShardsOfBothParts) {
  const test::EditedSource edited;
  const std::filesystem::path path = directory_ / "sharded";
  edited.write(path);
  const auto whole = pack(Checkpoint::open(path), kKeepAll);
  for (const std::filesystem::path& part : {path, path / kSpeechTokenizer}) {
    omni_files::SafetensorsWriter shards[2];
    nlohmann::json map = nlohmann::json::object();
    {
      const auto file = omni_files::SafetensorsFile::open((part / "model.safetensors").string());
      size_t i = 0;
      for (const auto& [name, tensor] : file.tensors()) {
        shards[i % 2].add(name, tensor);
        map[name] = i++ % 2 == 0 ? "model-00001-of-00002.safetensors" : "model-00002-of-00002.safetensors";
      }
    }
    std::filesystem::remove(part / "model.safetensors");
    shards[0].write(part / "model-00001-of-00002.safetensors");
    shards[1].write(part / "model-00002-of-00002.safetensors");
    std::ofstream(part / "model.safetensors.index.json") << nlohmann::json{{"weight_map", map}};
  }
  const auto sharded = pack(Checkpoint::open(path), kKeepAll);
  ASSERT_EQ(sharded->matrices.size(), whole->matrices.size());
  for (const auto& [name, matrix] : whole->matrices) {
    EXPECT_TRUE(std::ranges::equal(matrix.codes, sharded->matrices.at(name).codes)) << name;
  }
}

TEST_F(Speech, GptqHasNoTextToRead) {
  PackOptions options{.weights = WeightType::kW4A8, .quantiser = Quantiser::kGptq};
  expect_error(error(test::EditedSource(), options), "gptq");
}

}  // namespace
}  // namespace ref::tts
