// SPDX-License-Identifier: Apache-2.0
// The codec's decoder against what the reference implementation computes: every stage, its waveforms, its chunks.
#include <cmath>

#include "reference/qwen3_tts/codec/codec_for_test.h"

namespace ref::tts {
namespace {

using omni_files::SafetensorsFile;

// Tolerances of the goldens, for arithmetic in fp32.
constexpr double kStage = 1e-4, kWave = 1e-3;

// [C][T] of a golden as rows of time; hidden states of the transformer are so already.
std::vector<float> rows_of_time(const SafetensorsFile& file, const std::string& name) {
  std::vector<float> values = file.at(name).as<float>();
  const std::vector<int64_t> shape = file.at(name).shape;
  if (shape.size() < 2 || name.starts_with("pre_transformer")) return values;
  std::vector<float> rows(values.size());
  const auto channels = static_cast<size_t>(shape[0]), times = static_cast<size_t>(shape[1]);
  for (size_t c = 0; c < channels; ++c) {
    for (size_t t = 0; t < times; ++t) rows[t * channels + c] = values[c * times + t];
  }
  return rows;
}

const std::vector<std::string>& stages_of_trace() {
  static const std::vector<std::string> names = {"rvq_first",
                                                 "rvq_rest",
                                                 "rvq",
                                                 "pre_conv",
                                                 "pre_transformer_layer0",
                                                 "pre_transformer_layer1",
                                                 "pre_transformer_layer2",
                                                 "pre_transformer",
                                                 "upsample0_tconv",
                                                 "upsample0_convnext",
                                                 "upsample1_tconv",
                                                 "upsample1_convnext",
                                                 "dec_in_conv",
                                                 "dec_block1_snake",
                                                 "dec_block1_tconv",
                                                 "dec_block1_res0",
                                                 "dec_block1",
                                                 "dec_block2",
                                                 "dec_block3",
                                                 "dec_block4",
                                                 "wav_unclamped",
                                                 "wav"};
  return names;
}

class DecoderTrace : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Models, DecoderTrace, testing::Values("base-tiny", "custom-tiny", "design-tiny", "base-tiny-bf16"),
                         [](const auto& info) { return std::regex_replace(info.param, std::regex("-"), "_"); });

TEST_P(DecoderTrace, EveryStageInOneCallAndFrameByFrame) {
  const std::string path = test::golden_file("decoder_trace");
  const test::Weights weights = test::golden_codec(GetParam());
  if (path.empty() || !weights) GTEST_SKIP() << "decoder_trace or the checkpoint is not here; OMNI_GOLDENS names the full set";
  const SafetensorsFile golden = SafetensorsFile::open(path);
  const std::vector<Frame> frames = test::golden_frames(golden, "codes");
  for (const size_t call : {frames.size(), size_t{1}}) {
    CodecDecoder decoder(weights, {});
    test::StageRecorder recorder;
    const std::vector<float> samples = test::decode_in(&decoder, frames, {call}, &recorder);
    for (const std::string& name : stages_of_trace()) {
      const double limit = name.starts_with("wav") ? kWave : kStage;
      ASSERT_TRUE(recorder.stages.contains(name)) << name;
      EXPECT_LE(test::largest_difference(recorder.stages[name].values, rows_of_time(golden, name)), limit) << name;
    }
    EXPECT_LE(test::largest_difference(samples, golden.at("wav").as<float>()), kWave);
    EXPECT_EQ(decoder.position(), static_cast<int64_t>(frames.size()));
  }
}

TEST_P(DecoderTrace, ChunksOfTheReference) {
  const std::string path = test::golden_file("decoder_trace");
  const test::Weights weights = test::golden_codec(GetParam());
  if (path.empty() || !weights) GTEST_SKIP() << "decoder_trace or the checkpoint is not here; OMNI_GOLDENS names the full set";
  const SafetensorsFile golden = SafetensorsFile::open(path);
  const auto parameters = golden.at("chunk_params").as<int64_t>();
  CodecDecoder decoder(weights, {});
  const std::vector<float> samples = decode_chunked(&decoder, test::golden_frames(golden, "codes"), parameters[0], parameters[1]);
  EXPECT_LE(test::largest_difference(samples, golden.at("wav_chunked").as<float>()), kWave);
  EXPECT_EQ(decoder.position(), 0);
}

// Past 300 frames the chunks of the reference show, and the stream is its unchunked decode.
TEST(DecoderLong, ChunkedAndWhole) {
  const std::string path = test::golden_file("decoder_long");
  const test::Weights weights = test::golden_codec("base-tiny");
  if (path.empty() || !weights) GTEST_SKIP() << "decoder_long or base-tiny is not here; OMNI_GOLDENS names the full set";
  const SafetensorsFile golden = SafetensorsFile::open(path);
  const std::vector<Frame> frames = test::golden_frames(golden, "codes");
  const auto tail = static_cast<size_t>(golden.at("tail_start").as<int64_t>().at(0));
  CodecDecoder decoder(weights, {});
  const std::vector<float> chunked = decode_chunked(&decoder, frames), whole = test::decode_in(&decoder, frames, {25});
  const auto head = golden.at("wav_head").as<float>(), tail_chunked = golden.at("wav_tail_chunked").as<float>(),
             tail_full = golden.at("wav_tail_full").as<float>();
  EXPECT_LE(test::largest_difference(std::span(whole).first(head.size()), head), kWave);
  EXPECT_LE(test::largest_difference(std::span(chunked).first(head.size()), head), kWave);
  // They differ by 2.4e-3, so a tenth of the tolerance tells one from the other.
  EXPECT_LE(test::largest_difference(std::span(whole).subspan(tail), tail_full), kWave / 10);
  EXPECT_LE(test::largest_difference(std::span(chunked).subspan(tail), tail_chunked), kWave / 10);
  EXPECT_GT(test::largest_difference(std::span(whole).subspan(tail), tail_chunked), kWave);
}

TEST(DecoderOfSpeech, WaveOfTheCheckpointThatIsHere) {
  const SafetensorsFile golden = SafetensorsFile::open(test::golden_file("bf16w_fp32compute_xvec_stream"));
  const std::vector<Frame> frames = test::golden_frames(golden, "decoder_codes");
  const auto wav = golden.at("wav").as<float>();
  EXPECT_LE(test::largest_difference(test::decode_all(test::golden_codec("base-tiny-bf16"), frames), wav), kWave);

  // A codec in bf16 is rounded; in fp32 arithmetic only its weights are. Random weights carry rounding further than trained ones.
  const auto noise = [&](bool fp32) {
    const std::vector<float> samples =
        test::decode_all(test::golden_codec("base-tiny-bf16", CodecType::kBf16), frames, {.fp32 = fp32});
    double error = 0, power = 0;
    for (size_t i = 0; i < wav.size(); ++i) {
      error += (double{samples[i]} - wav[i]) * (double{samples[i]} - wav[i]);
      power += double{wav[i]} * wav[i];
    }
    return std::sqrt(error / power);
  };
  const double rounded = noise(false), weights_only = noise(true);
  RecordProperty("noise_of_bf16", std::to_string(rounded));
  RecordProperty("noise_of_bf16_weights", std::to_string(weights_only));
  EXPECT_LT(rounded, 0.05);
  EXPECT_LT(weights_only, rounded);
  EXPECT_GT(weights_only, 1e-4) << "these are the fp32 weights";
}

}  // namespace
}  // namespace ref::tts
