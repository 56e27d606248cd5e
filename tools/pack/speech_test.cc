// SPDX-License-Identifier: Apache-2.0
// omni-pack with speech models, as a user runs it.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "reference/pack/packer.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_spark.h"
#include "tools/probe/child.h"

namespace {

namespace fs = std::filesystem;
using omni_files::TemporaryDirectory;
using probe::testing::Outcome;

Outcome run(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), OMNI_PACK);
  return probe::testing::run({std::move(arguments), {}, {}});
}

class OmniPackSpeech : public ::testing::Test {
 protected:
  void expect_error(const Outcome& outcome, int code, const std::string& text) const {
    EXPECT_EQ(outcome.exit_code, code) << outcome.err;
    EXPECT_EQ(std::ranges::count(outcome.err, '\n'), 1) << outcome.err;
    EXPECT_NE(outcome.err.find(text), std::string::npos) << outcome.err;
    EXPECT_EQ(outcome.out, "");
    EXPECT_FALSE(fs::exists(out_));
  }
  uint16_t format(const std::string& matrix) const {
    return ref::load_packed(out_, ref::WeightsMemory::kMapped, nullptr)->matrices.at(matrix).layout.format;
  }

  TemporaryDirectory directory_;
  const std::string source_ = OMNI_TEST_DATA "/tts/base-tiny-bf16";
  fs::path out_ = directory_ / "out";
};

constexpr const char* kTalker = "talker.model.layers.0.mlp.down_proj";
constexpr const char* kPredictor = "talker.code_predictor.model.layers.0.mlp.down_proj";
constexpr const char* kPredictorHead = "talker.code_predictor.lm_head.3";
constexpr const char* kCodec = "decoder.pre_conv.conv";

TEST_F(OmniPackSpeech, PacksVerifiesAndReports) {
  const Outcome packed = run({source_, out_, "--weights", "w4a16", "--predictor", "w4a8", "--predictor-head", "bf16", "--codec",
                              "bf16", "--no-encoders", "--group", "32", "--strict", "--report"});
  EXPECT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_NE(packed.out.find("decoder.decoder.1.block.1.conv"), std::string::npos);
  EXPECT_NE(packed.err.find("note: without encoders"), std::string::npos);
  EXPECT_EQ(format(kTalker), OMNI_FORMAT_TG4);
  EXPECT_EQ(format("talker.codec_head"), OMNI_FORMAT_W8S);
  EXPECT_EQ(format(kPredictor), OMNI_FORMAT_W4S);
  EXPECT_EQ(format(kPredictorHead), OMNI_FORMAT_W16);
  EXPECT_EQ(format(kCodec), OMNI_FORMAT_W16);
  EXPECT_EQ(run({"--verify", out_}).exit_code, 0);
  const Outcome again = run({out_, directory_ / "again"});
  EXPECT_EQ(again.exit_code, 3);
  EXPECT_NE(again.err.find("is packed already"), std::string::npos) << again.err;
}

TEST_F(OmniPackSpeech, DefaultsHaveEightBits) {
  const Outcome packed = run({source_, out_});
  EXPECT_EQ(packed.exit_code, 0) << packed.err;
  EXPECT_NE(packed.err.find("weights w8a8: "), std::string::npos) << packed.err;
  for (const char* name : {kTalker, "talker.codec_head", kPredictor, kPredictorHead}) EXPECT_EQ(format(name), OMNI_FORMAT_W8S);
  EXPECT_EQ(format(kCodec), OMNI_FORMAT_W32);
  ASSERT_EQ(run({source_, out_, "--force", "--quiet", "--weights", "w4a8"}).exit_code, 0);
  EXPECT_EQ(format(kTalker), OMNI_FORMAT_W4S);
  EXPECT_EQ(format(kPredictor), OMNI_FORMAT_W8S);
}

TEST_F(OmniPackSpeech, ReplacesOnlyWhenAsked) {
  ASSERT_EQ(run({source_, out_, "--weights", "keep", "--quiet"}).exit_code, 0);
  EXPECT_EQ(format(kPredictorHead), OMNI_FORMAT_W16);  // kept with the rest
  EXPECT_EQ(run({source_, out_, "--weights", "w8a8", "--quiet"}).exit_code, 4);
  ASSERT_EQ(run({source_, out_, "--weights", "w8a8", "--force", "--quiet"}).exit_code, 0);
  EXPECT_EQ(format(kTalker), OMNI_FORMAT_W8S);
  EXPECT_EQ(format(kCodec), OMNI_FORMAT_W32);
}

TEST_F(OmniPackSpeech, OptionsThatDoNotFitAreALine) {
  expect_error(run({source_, out_, "--quantiser", "gptq"}), 3, "not what the layers of a speech model see");
  std::ofstream(directory_ / "text") << "text";
  expect_error(run({source_, out_, "--calibrate", directory_ / "text"}), 3, "not what the layers of a speech model see");
  expect_error(run({source_, out_, "--codec", "w8"}), 2, "--codec");
  expect_error(run({source_, out_, "--predictor", "w2"}), 2, "--predictor");
  omni_files::TinySpark{}.write(directory_ / "spark");
  expect_error(run({directory_ / "spark", out_, "--codec", "fp32"}), 3, "--codec is for speech models, and this is none");
  expect_error(run({directory_ / "spark", out_, "--predictor", "bf16"}), 3, "--predictor is for speech models");
  expect_error(run({out_, "--synthetic", "spark-tiny", "--no-encoders"}), 3, "--no-encoders is for speech models");
}

TEST_F(OmniPackSpeech, AModelWithoutItsSpeechTokenizerIsALine) {
  fs::copy(source_, directory_ / "m", fs::copy_options::recursive);
  fs::remove_all(directory_ / "m" / "speech_tokenizer");
  expect_error(run({directory_ / "m", out_}), 3, "m/speech_tokenizer: is absent, but a Qwen3-TTS model needs its speech tokenizer");
  fs::create_directory(directory_ / "m" / "speech_tokenizer");
  expect_error(run({directory_ / "m", out_}), 3, "m/speech_tokenizer: has neither model.safetensors nor");
}

TEST_F(OmniPackSpeech, SyntheticModelsAreWhole) {
  for (const char* weights : {"w4a16", "w4a8", "w8a8", "bf16", "keep"}) {
    ASSERT_EQ(run({out_, "--synthetic", "qwen3-tts-tiny", "--weights", weights, "--force", "--quiet"}).exit_code, 0);
    EXPECT_EQ(run({"--verify", out_}).exit_code, 0);
  }
  const fs::path source = directory_ / "hf";
  ASSERT_EQ(run({source, "--synthetic-source", "qwen3-tts-tiny", "--quiet"}).exit_code, 0);
  EXPECT_TRUE(fs::is_regular_file(source / "speech_tokenizer" / "model.safetensors"));
  EXPECT_EQ(run({source, "--synthetic-source", "qwen3-tts-tiny", "--quiet"}).exit_code, 4);  // is there
  const Outcome packed = run({source, out_, "--force", "--strict", "--weights", "w4a8"});
  EXPECT_EQ(packed.exit_code, 0) << packed.err;
}

// Folders of a checkpoint that could not be completed go with it.
TEST_F(OmniPackSpeech, ACheckpointThatDoesNotFitLeavesNothing) {
  const Outcome outcome = probe::testing::run({{OMNI_PACK, out_, "--synthetic-source", "qwen3-tts-tiny"}, {}, [] {
                                                 const rlimit size{1000000, 1000000};
                                                 return ::setrlimit(RLIMIT_FSIZE, &size) == 0;
                                               }});
  expect_error(outcome, 4, "File too large");
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

}  // namespace
