// SPDX-License-Identifier: Apache-2.0
#include "reference/speak/statistics.h"

#include <gtest/gtest.h>

#include "tools/common/run_filter.h"

namespace ref::speak {
namespace {

SpeechRun run_of_50() {
  SpeechRun run;
  run.frames = 50;
  run.samples = 50 * 1920;
  run.pieces = {{50, SpeechEnd::kEndOfSpeech}};
  run.times.talker = 1.0;  // 20 ms a frame
  run.times.predictor = 0.7;
  run.times.substep.fill(0.045);
  run.times.sampling = 0.02;
  run.times.decode = 0.75;
  run.times.prefill = 0.1;
  run.times.first_prompt = 0.1;
  run.times.first_audio = 0.3;
  run.times.total = 2.6;
  return run;
}

TEST(Statistics, SharesOfAFrame) {
  const std::vector<Stage> stages = stages_of(run_of_50());
  EXPECT_EQ(stages[0].name, "talker");
  EXPECT_DOUBLE_EQ(stages[0].milliseconds, 20);
  EXPECT_DOUBLE_EQ(stages[0].share(), 0.25);
  EXPECT_EQ(stages[1].name, "predictor");
  EXPECT_EQ(stages[16].name, "sub-step 15");
  EXPECT_TRUE(stages[16].part);
  EXPECT_DOUBLE_EQ(stages[16].milliseconds, 0.9);
  EXPECT_DOUBLE_EQ(real_time_factor(run_of_50()), 0.65);
}

TEST(Statistics, TextAndJsonTellTheSame) {
  const std::string text = statistics_text(run_of_50());
  for (const char* word : {"| talker | 20.00 | 25.0 % |", "| - sub-step 15 | 0.90 |", "0.300 s", "0.200 s after", "0.650"}) {
    EXPECT_NE(text.find(word), std::string::npos) << word << "\n" << text;
  }
  const nlohmann::ordered_json json = statistics_json(run_of_50());
  EXPECT_DOUBLE_EQ(json["real_time_factor"], 0.65);
  EXPECT_DOUBLE_EQ(json["first_audio_after_prompt_seconds"], 0.3 - 0.1);
  EXPECT_DOUBLE_EQ(json["stages"]["talker"]["share_of_frame"], 0.25);
  EXPECT_EQ(json["stages"]["predictor"]["substeps_ms"].size(), 15U);
  EXPECT_DOUBLE_EQ(json["stages"]["decoder"]["ms_per_frame"], 15);
}

TEST(Statistics, ARunOfNothing) {
  const SpeechRun run;
  EXPECT_EQ(real_time_factor(run), 0);
  EXPECT_EQ(stages_of(run)[0].milliseconds, 0);
  EXPECT_EQ(statistics_text(run).find("nan"), std::string::npos);
}

TEST(Statistics, ADrawing) {
  if (omni_tools::run_filter("gnuplot", "set terminal svg\nplot 1\n").empty()) GTEST_SKIP() << "there is no gnuplot";
  const std::string svg = statistics_svg(run_of_50(), "a \"model\" \\ of <some> `kind`");
  ASSERT_FALSE(svg.empty());
  for (const char* word : {"<svg", "talker", "sub-step 15", "20.00 ms, 25 %", "</svg>"}) {
    EXPECT_NE(svg.find(word), std::string::npos) << word;
  }
}

}  // namespace
}  // namespace ref::speak
