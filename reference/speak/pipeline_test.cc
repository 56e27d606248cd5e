// SPDX-License-Identifier: Apache-2.0
// The pipeline over models that are none: order, limits, back-pressure, ends from outside, faults on either side.
#include "reference/speak/pipeline.h"

#include <gtest/gtest.h>

#include <dirent.h>

#include <algorithm>
#include <numeric>

#include "reference/core/error.h"
#include "reference/speak/fake_speech.h"

namespace ref::speak {
namespace {

using test::FakeDecoder;
using test::FakeSource;
using test::kNever;
using test::options_of;

int64_t threads() {
  int64_t count = 0;
  DIR* directory = opendir("/proc/self/task");
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count;
}

struct Heard {
  std::vector<float> samples;
  PipelineHooks hooks() {
    PipelineHooks hooks;
    hooks.write = [this](std::span<const float> more) {
      samples.insert(samples.end(), more.begin(), more.end());
      return true;
    };
    return hooks;
  }
  // Piece and number of each frame.
  std::vector<float> firsts() const {
    std::vector<float> values;
    for (size_t at = 0; at < samples.size(); at += tts::kFrameSamples) values.push_back(samples[at]);
    return values;
  }
};

std::vector<float> expected(const std::vector<int64_t>& lengths) {
  std::vector<float> values;
  for (size_t piece = 0; piece < lengths.size(); ++piece) {
    for (int64_t i = 0; i < lengths[piece]; ++i) values.push_back(FakeDecoder::value_of(static_cast<int64_t>(piece), i));
  }
  return values;
}

class BothPipelines : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Overlap, BothPipelines, testing::Bool());

TEST_P(BothPipelines, EveryFrameOnceAndInOrder) {
  for (const char* chunks : {"1", "2,2,3,4", "7", "25", "250", "1,9,2"}) {
    for (const size_t queue : {1, 2, 32}) {
      FakeSource source({5, 0, 31, 1});
      FakeDecoder decoder;
      Heard heard;
      PipelineOptions options = options_of({40, 40, 40, 40}, GetParam());
      options.schedule = ChunkSchedule::parse(chunks);
      options.queue = queue;
      const SpeechRun run = run_pipeline(&source, &decoder, options, heard.hooks());
      EXPECT_EQ(heard.firsts(), expected({5, 0, 31, 1})) << chunks;
      // One stream over all pieces: places go on.
      EXPECT_EQ(heard.samples.back(), 36.0F);
      EXPECT_EQ(run.end, SpeechEnd::kEndOfSpeech);
      EXPECT_EQ(run.frames, 37);
      EXPECT_EQ(run.samples, 37 * 1920);
      ASSERT_EQ(run.pieces.size(), 4U);
      EXPECT_EQ(run.pieces[2].frames, 31);
    }
  }
}

TEST_P(BothPipelines, ChunksFollowTheScheduleAndEndWithAPiece) {
  FakeSource source({9, 6});
  FakeDecoder decoder;
  PipelineOptions options = options_of({40, 40}, GetParam());
  options.schedule = ChunkSchedule::parse("1,2,4");
  run_pipeline(&source, &decoder, options, {});
  EXPECT_EQ(decoder.calls, (std::vector<int64_t>{1, 2, 4, 2, 4, 2}));
}

// AC-074: the reference is decoded first, in the same stream, and nothing of it is heard.
TEST_P(BothPipelines, ThePrefixIsDecodedAndNotHeard) {
  FakeSource source({30});
  FakeDecoder decoder;
  Heard heard;
  PipelineOptions options = options_of({100}, GetParam());
  options.prefix.resize(13);
  const SpeechRun run = run_pipeline(&source, &decoder, options, heard.hooks());
  EXPECT_EQ(heard.samples.size(), 30U * 1920U);
  EXPECT_EQ(heard.firsts(), expected({30}));
  EXPECT_EQ(heard.samples[1], 13.0F);  // its place in the stream
  EXPECT_EQ(run.samples, 30 * 1920);
  EXPECT_EQ(decoder.passes, std::vector<int64_t>{13});
  EXPECT_EQ(std::accumulate(decoder.calls.begin(), decoder.calls.end(), int64_t{0}), 30);  // no more than what is heard
}

// AC-061: a model that never ends is cut at its limit, and that is no success.
TEST_P(BothPipelines, AModelThatNeverEndsStopsAtItsLimit) {
  for (const int64_t limit : {50, 2048}) {
    FakeSource source({kNever});
    FakeDecoder decoder;
    const SpeechRun run = run_pipeline(&source, &decoder, options_of({limit}, GetParam()), {});
    EXPECT_EQ(run.end, SpeechEnd::kMaxFrames);
    EXPECT_EQ(speech_end_name(run.end), "max_frames");
    EXPECT_EQ(run.frames, limit);
    EXPECT_EQ(run.samples, limit * 1920);
  }
}

// AC-065: the third piece never ends; the others are whole, and it stays in its own limit.
TEST_P(BothPipelines, APieceThatRunsAwayLeavesTheOthers) {
  FakeSource source({12, 20, kNever, 14, 9});
  FakeDecoder decoder;
  Heard heard;
  const SpeechRun run = run_pipeline(&source, &decoder, options_of({60, 60, 70, 60, 60}, GetParam()), heard.hooks());
  EXPECT_EQ(heard.firsts(), expected({12, 20, 70, 14, 9}));
  EXPECT_EQ(run.end, SpeechEnd::kMaxFrames);
  ASSERT_EQ(run.pieces.size(), 5U);
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(run.pieces[i].end, i == 2 ? SpeechEnd::kMaxFrames : SpeechEnd::kEndOfSpeech) << i;
  }
}

TEST_P(BothPipelines, ALimitOfAllCutsThePieceAndTheRest) {
  FakeSource source({12, 20, 30});
  FakeDecoder decoder;
  PipelineOptions options = options_of({100, 100, 100}, GetParam());
  options.most_frames = 25;
  const SpeechRun run = run_pipeline(&source, &decoder, options, {});
  EXPECT_EQ(run.frames, 25);
  EXPECT_EQ(run.end, SpeechEnd::kMaxFrames);
  EXPECT_EQ(source.started, (std::vector<int64_t>{25, 13}));
  // As much as there is to say is no cut.
  FakeSource exact({12, 13});
  options.budgets = {100, 100};
  EXPECT_EQ(run_pipeline(&exact, &decoder, options, {}).end, SpeechEnd::kEndOfSpeech);
}

TEST_P(BothPipelines, NothingToSay) {
  FakeSource source({0});
  FakeDecoder decoder;
  const SpeechRun run = run_pipeline(&source, &decoder, options_of({10}, GetParam()), {});
  EXPECT_EQ(run.end, SpeechEnd::kEndOfSpeech);
  EXPECT_EQ(run.samples, 0);
  EXPECT_EQ(run.times.first_audio, 0);
}

TEST_P(BothPipelines, AReaderThatGoesEndsTheRun) {
  const int64_t before = threads();
  FakeSource source({kNever});
  FakeDecoder decoder;
  PipelineHooks hooks;
  int writes = 0;
  hooks.write = [&](std::span<const float>) { return ++writes < 3; };
  const SpeechRun run = run_pipeline(&source, &decoder, options_of({1 << 20}, GetParam()), hooks);
  EXPECT_EQ(run.end, SpeechEnd::kClosed);
  EXPECT_EQ(writes, 3);
  EXPECT_LT(source.all, 100);
  EXPECT_EQ(threads(), before);
}

TEST_P(BothPipelines, AnInterruptEndsTheRun) {
  const int64_t before = threads();
  FakeSource source({kNever});
  FakeDecoder decoder;
  std::atomic<bool> stop = false;
  PipelineHooks hooks;
  hooks.interrupted = [&] { return stop.load(); };
  hooks.write = [&](std::span<const float>) {
    stop = true;
    return true;
  };
  EXPECT_EQ(run_pipeline(&source, &decoder, options_of({1 << 20}, GetParam()), hooks).end, SpeechEnd::kInterrupted);
  EXPECT_EQ(threads(), before);
}

TEST_P(BothPipelines, FaultsOfEitherSideComeOut) {
  const int64_t before = threads();
  const auto fault = [&](FakeSource source, int64_t call) -> std::string {
    FakeDecoder decoder;
    decoder.throw_at_call = call;
    try {
      run_pipeline(&source, &decoder, options_of({1000, 1000}, GetParam()), {});
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(fault(FakeSource({kNever, 5}), 3), "decode");
  EXPECT_EQ(threads(), before);
}

TEST_P(BothPipelines, FaultsOfTheMakerComeAfterWhatItMade) {
  FakeSource source({20, 20});
  source.throw_at_start = 1;
  FakeDecoder decoder;
  Heard heard;
  EXPECT_THROW(run_pipeline(&source, &decoder, options_of({50, 50}, GetParam()), heard.hooks()), std::runtime_error);
  EXPECT_EQ(heard.firsts(), expected({20}));
  FakeSource later({20});
  later.throw_at_frame = 8;
  EXPECT_THROW(run_pipeline(&later, &decoder, options_of({50}, GetParam()), {}), std::runtime_error);
}

TEST_P(BothPipelines, SumsOfTimes) {
  FakeSource source({8});
  FakeDecoder decoder;
  const SpeechRun run = run_pipeline(&source, &decoder, options_of({50}, GetParam()), {});
  EXPECT_DOUBLE_EQ(run.times.talker, 4.0);
  EXPECT_DOUBLE_EQ(run.times.predictor, 2.0);
  EXPECT_DOUBLE_EQ(run.times.substep[14], 0.125);
  EXPECT_GT(run.times.first_audio, 0);
  EXPECT_LE(run.times.first_audio, run.times.total);
  EXPECT_LE(run.times.first_prompt, run.times.first_audio);
}

// A reader that takes nothing stops the maker: no more than the queue and what is in hand.
TEST(Pipeline, ASlowReaderHoldsTheMaker) {
  FakeSource source({kNever});
  FakeDecoder decoder;
  PipelineOptions options = options_of({400});
  options.queue = 5;
  options.schedule = ChunkSchedule({2});
  int64_t heard = 0, most = 0;
  PipelineHooks hooks;
  hooks.write = [&](std::span<const float> samples) {
    if (heard < 60) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    heard += static_cast<int64_t>(samples.size()) / tts::kFrameSamples;
    most = std::max(most, source.all.load() - heard);
    return true;
  };
  const SpeechRun run = run_pipeline(&source, &decoder, options, hooks);
  EXPECT_EQ(heard, 400);
  EXPECT_LE(most, 5 + 2);  // the queue, the one that waits for room, and one more that is being made
  EXPECT_GE(most, 4);
  EXPECT_GT(run.times.maker_waits, 0.05);
}

// The decoder of a frame runs beside the maker of the next.
TEST(Pipeline, BothSidesWorkAtOnce) {
  struct SlowSource : FakeSource {
    using FakeSource::FakeSource;
    std::optional<tts::Frame> next() override {
      const auto frame = FakeSource::next();
      if (frame) std::this_thread::sleep_for(std::chrono::milliseconds(4));
      return frame;
    }
  } source({kNever});
  struct SlowDecoder : FakeDecoder {
    void decode(std::span<const tts::Frame> frames, std::span<float> samples) override {
      FakeDecoder::decode(frames, samples);
      decoding = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(4));
      met = met || source->all.load() > before;
      before = source->all.load();
      decoding = false;
    }
    SlowSource* source = nullptr;
    int64_t before = 0;
    bool decoding = false, met = false;
  } decoder;
  decoder.source = &source;
  PipelineOptions options = options_of({20});
  options.schedule = ChunkSchedule({1});
  run_pipeline(&source, &decoder, options, {});
  EXPECT_TRUE(decoder.met);
}

TEST(ChunkSchedule, TextsAndFaults) {
  ChunkSchedule schedule = ChunkSchedule::parse("2,3,25");
  for (const int64_t size : {2, 3, 25, 25, 25}) {
    EXPECT_EQ(schedule.next(), size);
    schedule.advance();
  }
  for (const char* bad : {"", ",", "2,", "0", "-1", "2,x", "251", "2;3", "99999999999999999999", " 2"}) {
    EXPECT_THROW(ChunkSchedule::parse(bad), Error) << bad;
  }
  std::string many = "1";
  for (int i = 0; i < 64; ++i) many += ",1";
  EXPECT_THROW(ChunkSchedule::parse(many), Error);
}

}  // namespace
}  // namespace ref::speak
