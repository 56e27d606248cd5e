// SPDX-License-Identifier: Apache-2.0
// Pieces of one voice on a golden checkpoint, and clicks where chunks and pieces meet.
#include "reference/speak/model_source.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "reference/core/error.h"
#include "reference/qwen3_tts/model/test_models.h"
#include "tests/support/click_detector.h"

namespace ref::speak {
namespace {

class Sources : public testing::Test {
 protected:
  Sources()
      : weights_(tts::test::small_model()),
        pair_(weights_, tts::Precision::kDefault),
        tokenizer_(tts::load_tokenizer(tts::test::golden_path(tts::test::kSmallModel))),
        templates_(tokenizer_, pair_.talker.config(), "model") {
    request_.pieces = {"hello world.", "this is a test.", "of the speech system."};
    request_.sampling.seed = 11;
    request_.streaming_text = false;
  }

  // Every piece ends after `frames` frames.
  tts::GeneratorHooks ends_after(int64_t frames) const {
    tts::GeneratorHooks hooks;
    const auto end = static_cast<size_t>(pair_.talker.config().talker.eos);
    hooks.talker_logits = [=](int64_t frame, std::span<float> logits) {
      logits[end] = frame >= frames ? 1e6F : -std::numeric_limits<float>::infinity();
    };
    return hooks;
  }

  std::vector<tts::Frame> piece(ModelSource* source, size_t index, int64_t most) {
    source->start(index, most);
    std::vector<tts::Frame> frames;
    while (const std::optional<tts::Frame> frame = source->next()) frames.push_back(*frame);
    return frames;
  }

  // The piece alone, in a voice that is given.
  std::vector<tts::Frame> alone(size_t index, const tts::Voice& voice, int64_t frames) {
    tts::PromptRequest prompt;
    prompt.ids = templates_.all(request_.pieces[index], voice.reference_text, "");
    prompt.voice = &voice;
    prompt.streaming_text = false;
    tts::SpeechSampling sampling = request_.sampling;
    sampling.seed = seed_of_piece(11, index);
    return tts::test::run(&pair_, pair_.talker.prompt(prompt), sampling, frames, ends_after(frames)).frames;
  }

  std::shared_ptr<const ModelWeights> weights_;
  tts::test::Pair pair_;
  Tokenizer tokenizer_;
  tts::TextTemplates templates_;
  SpeechRequest request_;
};

TEST_F(Sources, WithoutAVoiceLaterPiecesContinueTheFirst) {
  ModelSource source(&pair_.talker, &pair_.predictor, templates_, request_, ends_after(6));
  const std::vector<tts::Frame> first = piece(&source, 0, 50), second = piece(&source, 1, 50), third = piece(&source, 2, 50);
  ASSERT_EQ(first.size(), 6U);
  EXPECT_EQ(first, alone(0, {}, 6));
  tts::Voice voice;
  voice.frames = first;
  voice.reference_text = request_.pieces[0];
  EXPECT_EQ(second, alone(1, voice, 6));
  EXPECT_EQ(third, alone(2, voice, 6));
  EXPECT_NE(second, alone(1, {}, 6));
}

// A first piece that ran away is no voice to continue.
TEST_F(Sources, APieceThatRanAwayIsNotContinued) {
  ModelSource source(&pair_.talker, &pair_.predictor, templates_, request_, ends_after(6));
  piece(&source, 0, 3);
  EXPECT_EQ(source.stop(), tts::Stop::kMaxFrames);
  const std::vector<tts::Frame> second = piece(&source, 1, 50);
  EXPECT_EQ(second, alone(1, {}, 6));
  tts::Voice voice;
  voice.frames = second;
  voice.reference_text = request_.pieces[1];
  EXPECT_EQ(piece(&source, 2, 50), alone(2, voice, 6));
}

TEST_F(Sources, AVoiceThatIsNamedIsKept) {
  request_.voice.speaker.assign(static_cast<size_t>(pair_.talker.config().talker.stack.hidden), 0.1F);
  EXPECT_FALSE(request_.continue_voice());
  ModelSource source(&pair_.talker, &pair_.predictor, templates_, request_, ends_after(6));
  piece(&source, 0, 50);
  EXPECT_EQ(piece(&source, 1, 50), alone(1, request_.voice, 6));
}

TEST_F(Sources, TheContextHoldsWhatIsNeeded) {
  for (const bool streaming : {false, true}) {
    request_.streaming_text = streaming;
    const std::vector<int64_t> budgets = {30, 20, 20};
    const int64_t context = context_needed(templates_, request_, budgets);
    EXPECT_LT(context, 30 + 20 + 120);
    tts::test::Pair pair(weights_, tts::Precision::kDefault, nullptr, {}, 64, context);
    ModelSource source(&pair.talker, &pair.predictor, templates_, request_, ends_after(20));
    EXPECT_EQ(piece(&source, 0, 30).size(), 20U);
    for (const size_t index : {1, 2}) {
      EXPECT_EQ(piece(&source, index, 20).size(), 20U);
      EXPECT_EQ(source.stop(), tts::Stop::kEndOfSpeech);
      EXPECT_LE(pair.talker.position(), context);
    }
  }
}

// AC-068: chunks of any size give the samples of one shot; what is heard is the stream, whatever ends between.
TEST_F(Sources, SamplesAreOneStreamOverPieces) {
  tts::CodecDecoder codec(weights_, {});
  const auto speak = [&](const char* chunks, bool overlap) {
    ModelSource source(&pair_.talker, &pair_.predictor, templates_, request_, ends_after(9));
    CodecSamples decoder(&codec);
    PipelineOptions options;
    options.budgets = {50, 50, 50};
    options.schedule = ChunkSchedule::parse(chunks);
    options.overlap = overlap;
    std::vector<float> samples;
    PipelineHooks hooks;
    hooks.write = [&](std::span<const float> more) {
      samples.insert(samples.end(), more.begin(), more.end());
      return true;
    };
    EXPECT_EQ(run_pipeline(&source, &decoder, options, hooks).end, SpeechEnd::kEndOfSpeech);
    return samples;
  };
  const std::vector<float> whole = speak("250", false);
  ASSERT_EQ(whole.size(), 27U * 1920U);
  for (const char* chunks : {"1", "2,2,3,4", "7"}) EXPECT_EQ(speak(chunks, true), whole) << chunks;

  ModelSource source(&pair_.talker, &pair_.predictor, templates_, request_, ends_after(9));
  std::vector<tts::Frame> frames;
  for (const size_t index : {0, 1, 2}) {
    for (const tts::Frame& frame : piece(&source, index, 50)) frames.push_back(frame);
  }
  std::vector<float> shot(whole.size());
  codec.reset();
  codec.decode(frames, shot);
  EXPECT_EQ(shot, whole);
  // Chunks of 7 frames that each begin anew are other samples, so the equality above says something. (Behind random weights they do
  // not click audibly more where they meet; that the detector hears a click is a test of the codec.)
  std::vector<float> anew(whole.size());
  for (size_t at = 0; at < frames.size(); at += 7) {
    const size_t count = std::min<size_t>(7, frames.size() - at);
    codec.reset();
    codec.decode(std::span(frames).subspan(at, count), std::span(anew).subspan(at * 1920, count * 1920));
  }
  EXPECT_NE(anew, whole);
  EXPECT_LE(omni_test::roughest_join(whole, size_t{7} * 1920), 1.5);
}

// AC-074: a clone that continues its reference is heard from the first frame of its own.
TEST_F(Sources, NothingOfTheReferenceIsHeard) {
  request_.pieces = {"hello world."};
  request_.voice.reference_text = "this is a test.";
  request_.voice.frames = alone(1, {}, 12);
  ASSERT_EQ(request_.voice.frames.size(), 12U);
  tts::CodecDecoder codec(weights_, {});
  ModelSource source(&pair_.talker, &pair_.predictor, templates_, request_, ends_after(30));
  CodecSamples decoder(&codec);
  PipelineOptions options;
  options.budgets = {100};
  options.prefix = request_.voice.frames;
  std::vector<float> heard;
  PipelineHooks hooks;
  hooks.write = [&](std::span<const float> more) {
    heard.insert(heard.end(), more.begin(), more.end());
    return true;
  };
  run_pipeline(&source, &decoder, options, hooks);
  ASSERT_EQ(heard.size(), 30U * 1920U);
  std::vector<tts::Frame> all = request_.voice.frames;
  for (const tts::Frame& frame : alone(0, request_.voice, 30)) all.push_back(frame);
  std::vector<float> stream(all.size() * 1920);
  codec.reset();
  codec.decode(all, stream);
  EXPECT_TRUE(std::equal(heard.begin(), heard.end(), stream.begin() + 12 * 1920));
}

}  // namespace
}  // namespace ref::speak
