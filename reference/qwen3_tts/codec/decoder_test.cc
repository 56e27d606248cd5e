// SPDX-License-Identifier: Apache-2.0
// The codec's decoder at its edges: codes and counts that are none, calls in any order, damaged weights, chunks with clicks.
#include <cmath>

#include "reference/qwen3_tts/codec/codec_for_test.h"
#include "tests/support/click_detector.h"

namespace ref::tts {
namespace {

using test::error_of;

constexpr char kTiny[] = "qwen3-tts-tiny";

test::Weights tiny() {
  static const test::Weights weights = test::random_codec(kTiny, CodecType::kFp32);
  return weights;
}

TEST(CodecFrames, AreCutOfIdsBySixteen) {  // AC-066
  const std::vector<int32_t> ids(32, 5);
  for (const size_t count : {0, 16, 32}) EXPECT_EQ(frames_of({ids.data(), count}, 2048).size(), count / 16);
  for (const size_t count : {1, 15, 17}) {
    const std::string error = error_of([&] { frames_of({ids.data(), count}, 2048); });
    EXPECT_NE(error.find(std::to_string(count) + " ids"), std::string::npos) << error;
  }
  for (const int32_t id : {-1, 2048, 3071}) {
    std::vector<int32_t> wrong = ids;
    wrong[19] = id;
    const std::string error = error_of([&] { frames_of(wrong, 2048); });
    EXPECT_NE(error.find("id " + std::to_string(id) + " of frame 1, codebook 3"), std::string::npos) << error;
  }
}

TEST(CodecDecoderCalls, RefuseCodesThatAreNoneAndDecodeNothing) {  // AC-066
  const std::vector<Frame> frames = test::random_frames(4, test::codes_of(tiny()));
  CodecDecoder decoder(tiny(), {});
  const std::vector<float> expected = test::decode_in(&decoder, frames, {4});
  decoder.reset();
  std::vector<float> samples = test::decode_in(&decoder, {frames[0]}, {1});
  for (const int32_t id : {-1, 64, 3071}) {
    std::vector<Frame> wrong = {frames[1], frames[2]};
    wrong[1][7] = id;
    const std::vector<float> untouched(2 * kFrameSamples, 7.0F);
    std::vector<float> out = untouched;
    const std::string error = error_of([&] { decoder.decode(wrong, out); });
    EXPECT_NE(error.find("frame 2, codebook 7: id " + std::to_string(id) + " is outside of 0..63"), std::string::npos) << error;
    EXPECT_EQ(out, untouched);
    EXPECT_EQ(error_of([&] { decoder.pass(wrong); }), error);
    EXPECT_EQ(decoder.position(), 1);
  }
  const std::vector<float> rest = test::decode_in(&decoder, {frames[1], frames[2], frames[3]}, {3});
  samples.insert(samples.end(), rest.begin(), rest.end());
  EXPECT_TRUE(test::same_samples(samples, expected));
}

TEST(CodecDecoderCalls, RefuseRoomThatIsNotThatOfTheFrames) {
  const std::vector<Frame> frames = test::random_frames(2, 64);
  CodecDecoder decoder(tiny(), {});
  std::vector<float> samples(2 * kFrameSamples + 1);
  for (const size_t room : {size_t{0}, size_t{kFrameSamples}, samples.size()}) {
    const std::string error = error_of([&] { decoder.decode(frames, {samples.data(), room}); });
    EXPECT_NE(error.find("room for " + std::to_string(room) + " samples, not for 2 frames"), std::string::npos) << error;
  }
  decoder.decode({}, {});
  EXPECT_EQ(decoder.position(), 0);
}

TEST(CodecDecoderCalls, BeginAnewAfterReset) {
  const std::vector<Frame> first = test::random_frames(20, 64, 3), second = test::random_frames(12, 64, 4);
  CodecDecoder decoder(tiny(), {});
  const std::vector<float> expected = test::decode_in(&decoder, second, {5});
  decoder.reset();
  test::decode_in(&decoder, first, {3});
  decoder.reset();
  EXPECT_EQ(decoder.position(), 0);
  EXPECT_TRUE(test::same_samples(test::decode_in(&decoder, second, {5}), expected));
  // Two streams by turns, each with a decoder.
  CodecDecoder other(tiny(), {});
  decoder.reset();
  std::vector<float> turns(second.size() * kFrameSamples), dropped(kFrameSamples);
  for (size_t i = 0; i < second.size(); ++i) {
    decoder.decode({&second[i], 1}, {&turns[i * kFrameSamples], kFrameSamples});
    other.decode({&first[i], 1}, dropped);
  }
  EXPECT_TRUE(test::same_samples(turns, expected));
  // A decoder that was moved.
  CodecDecoder moved(std::move(decoder));
  moved.reset();
  EXPECT_TRUE(test::same_samples(test::decode_in(&moved, second, {2}), expected));
}

TEST(CodecDecoderOptions, OutOfRange) {
  for (const int64_t frames : {0, -1, 257}) {
    const std::string error = error_of([&] { CodecDecoder(tiny(), {.max_frames = frames}); });
    EXPECT_NE(error.find(std::to_string(frames) + " frames at once"), std::string::npos) << error;
  }
  CodecDecoder decoder(tiny(), {});
  EXPECT_NE(error_of([&] { decode_chunked(&decoder, {}, 0, 3); }).find("chunks of 0"), std::string::npos);
  EXPECT_NE(error_of([&] { decode_chunked(&decoder, {}, 3, -1); }).find("context of -1"), std::string::npos);
  EXPECT_TRUE(decode_chunked(&decoder, {}).empty());
}

TEST(CodecWeights, ThatAreAbsentOrOfAnotherShape) {
  ModelWeights weights = *tiny();
  const auto error_without = [&](const std::string& name) {
    ModelWeights less = weights;
    less.matrices.erase(name);
    less.plains.erase(name);
    return error_of([&] { CodecDecoder(std::make_shared<ModelWeights>(less), {}); });
  };
  for (const char* name : {"decoder.pre_conv.conv", "decoder.pre_conv.conv.bias", "decoder.quantizer.rvq_rest.codebook",
                           "decoder.decoder.4.block.4.act2.beta", "decoder.upsample.1.1.gamma", "decoder.decoder.6.conv"}) {
    EXPECT_NE(error_without(name).find(std::string("\"") + name + "\""), std::string::npos) << error_without(name);
  }
  weights.config["speech_tokenizer"]["decoder_config"]["decoder_dim"] = 128;
  const std::string error = error_of([&] { CodecDecoder(std::make_shared<ModelWeights>(weights), {}); });
  EXPECT_NE(error.find("the config says"), std::string::npos) << error;
}

// Clamped, not squashed: what is inside stays what it was.
TEST(CodecDecoderSamples, AreClamped) {
  const test::Weights loud = [] {
    auto weights = std::make_shared<ModelWeights>(*tiny());
    static std::vector<float> bias = {0.9F};
    weights->plains.at("decoder.decoder.6.conv.bias").bytes = std::as_bytes(std::span(bias));
    weights->plains.at("decoder.decoder.6.conv.bias").type = OMNI_DTYPE_F32;
    return weights;
  }();
  test::StageRecorder recorder;
  CodecDecoder decoder(loud, {});
  const std::vector<float> samples = test::decode_in(&decoder, test::random_frames(10, 64), {10}, &recorder);
  const std::vector<float>& raw = recorder.stages["wav_unclamped"].values;
  ASSERT_EQ(raw.size(), samples.size());
  size_t clipped = 0;
  for (size_t i = 0; i < raw.size(); ++i) {
    clipped += raw[i] > 1 || raw[i] < -1 ? 1 : 0;
    ASSERT_EQ(samples[i], std::min(1.0F, std::max(-1.0F, raw[i]))) << i;
  }
  EXPECT_GT(clipped, 0U);
  EXPECT_LT(clipped, raw.size() / 2);
}

TEST(CodecDecoderSamples, OfDamagedWeightsAreNumbers) {
  auto weights = std::make_shared<ModelWeights>(*tiny());
  std::vector<float> bias = {std::nanf("")};
  weights->plains.at("decoder.decoder.6.conv.bias").bytes = std::as_bytes(std::span(bias));
  weights->plains.at("decoder.decoder.6.conv.bias").type = OMNI_DTYPE_F32;
  CodecDecoder decoder(weights, {});
  for (const float sample : test::decode_in(&decoder, test::random_frames(1, 64), {1})) ASSERT_EQ(sample, 0.0F);
}

TEST(CodecStream, HasAsManySamplesForAnyChunks) {  // AC-068
  const std::vector<Frame> frames = test::random_frames(40, 64);
  const std::vector<float> expected = test::decode_all(tiny(), frames);
  ASSERT_EQ(expected.size(), size_t{76800});
  for (const size_t chunk : {1, 7, 25, 40, 300}) {
    CodecDecoder decoder(tiny(), {});
    EXPECT_TRUE(test::same_samples(test::decode_in(&decoder, frames, {chunk}), expected)) << chunk;
  }
}

// The specification's chunked decode, made of fresh one-shot decodes.
TEST(CodecChunks, AreDecodesFromScratch) {  // AC-069
  const test::Weights weights =
      test::random_codec(kTiny, CodecType::kFp32, [](nlohmann::json& config) { config["sliding_window"] = 72; });
  const std::vector<Frame> frames = test::random_frames(110, 64);
  CodecDecoder decoder(weights, {});
  for (const int64_t context : {0, 25, 71, 72, 100}) {
    std::vector<float> expected;
    for (int64_t first = 0; first < 110; first += 25) {
      const int64_t before = first - context > 0 ? context : first, last = std::min<int64_t>(first + 25, 110);
      const std::vector<float> part = test::decode_all(weights, {frames.begin() + first - before, frames.begin() + last});
      expected.insert(expected.end(), part.begin() + before * kFrameSamples, part.end());
    }
    const std::vector<float> chunked = decode_chunked(&decoder, frames, 25, context);
    EXPECT_TRUE(test::same_samples(chunked, expected)) << "context " << context;
    const std::vector<float> whole = test::decode_all(weights, frames);
    // Windows stack over layers, so that a chunk shows, unless all that came before is its context.
    EXPECT_EQ(static_cast<bool>(test::same_samples(chunked, whole)), context >= 100) << "context " << context;
    EXPECT_TRUE(test::same_samples(test::decode_in(&decoder, frames, {25}), whole));
    decoder.reset();
  }
}

constexpr double kClick = 2;  // roughness of a join that would be heard

// Of tiny models of random weights the audio is too rough for a seam to stand out, so that the detector is shown tones first.
TEST(ClickDetector, FindsStepsAndLostSamplesInTones) {
  std::vector<float> tone(96000);
  for (size_t i = 0; i < tone.size(); ++i) {
    const double t = static_cast<double>(i) / 24000;
    tone[i] = static_cast<float>(0.3 * std::sin(1382 * t) + 0.1 * std::sin(7540 * t + 1) + 0.02 * std::sin(27646 * t));
  }
  EXPECT_LT(omni_test::roughest_join(tone, kFrameSamples), kClick);
  std::vector<float> stepped = tone;
  const size_t step = 10 * kFrameSamples;
  for (size_t i = step; i < stepped.size(); ++i) stepped[i] += 0.1F;
  EXPECT_GT(omni_test::roughness_at(stepped, step), kClick);
  EXPECT_LT(omni_test::roughness_at(stepped, step + kFrameSamples), kClick);
  // What a transposed convolution trimmed at both ends loses of every chunk.
  constexpr size_t kChunk = 4 * kFrameSamples - 555;
  std::vector<float> cut;
  for (size_t i = 0; i < tone.size(); ++i) {
    if (i % (4 * kFrameSamples) < kChunk) cut.push_back(tone[i]);
  }
  EXPECT_GT(omni_test::roughest_join(cut, kChunk), kClick);
}

TEST(CodecStream, HasNoClicksWhereItIsCut) {
  const test::Weights weights = test::golden_codec("base-tiny-bf16");
  CodecDecoder decoder(weights, {});
  const std::vector<float> samples = test::decode_in(&decoder, test::random_frames(200, test::codes_of(weights)), {1});
  EXPECT_LT(omni_test::roughest_join(samples, kFrameSamples), kClick);
}

TEST(CodecDecoderReport, TellsKernelsBytesAndTimes) {
  CodecDecoder decoder(tiny(), {});
  EXPECT_GT(decoder.weight_bytes(), 0U);
  const uint64_t state = decoder.state_bytes(), working = decoder.working_bytes();
  EXPECT_GT(state, 0U);
  EXPECT_GT(working, state);
  for (const StageTime& time : decoder.stage_times()) EXPECT_EQ(time.seconds, 0) << time.name;
  test::decode_in(&decoder, test::random_frames(3, 64), {1});
  for (const StageTime& time : decoder.stage_times()) EXPECT_GT(time.seconds, 0) << time.name;
  decoder.clear_stage_times();
  for (const StageTime& time : decoder.stage_times()) EXPECT_EQ(time.seconds, 0) << time.name;
  EXPECT_EQ(decoder.state_bytes(), state);
  EXPECT_EQ(decoder.working_bytes(), working);
  const std::vector<std::string> lines = decoder.describe();
  const auto told = [&](const std::string& word) {
    return std::ranges::any_of(lines, [&](const std::string& line) { return line.find(word) != std::string::npos; });
  };
  for (const char* word : {"q, k, v", "attention", "depthwise conv", "snake", "residual conv", "transposed conv", "output conv"}) {
    EXPECT_TRUE(told(word)) << word;
  }
}

}  // namespace
}  // namespace ref::tts
