// SPDX-License-Identifier: Apache-2.0
// The worker's answers about the parts of a speech model, as omni-bench asks for them.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/support/temporary_directory.h"

namespace {

using nlohmann::json;

class SpeechWorker : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new omni_files::TemporaryDirectory;
    const std::string command = std::string(OMNI_PACK) + " --quiet --synthetic qwen3-tts-tiny " + model();
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  static void TearDownTestSuite() { delete directory_; }
  static std::string model() { return (*directory_ / "packed").string(); }

  static std::string question(const std::string& shape, int m, int depth = 23, const std::string& op = "speech") {
    return "case " + json{{"op", op}, {"shape", shape}, {"m", m}, {"depth", depth}, {"threads", 2}}.dump();
  }

  // One answer for each line.
  static std::vector<json> answers(const std::vector<std::string>& lines, const std::string& flags = "") {
    std::string text;
    for (const std::string& line : lines) text += line + "\n";
    directory_->write("in", text);
    const std::string out = (*directory_ / "out").string();
    const std::string command =
        std::string(OMNI_WORKER) + " " + model() + " " + flags + " < " + (*directory_ / "in").string() + " > " + out;
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::vector<json> all;
    std::ifstream stream(out);
    for (std::string line; std::getline(stream, line);) all.push_back(json::parse(line));
    EXPECT_EQ(all.size(), lines.size());
    all.resize(lines.size());
    return all;
  }

 private:
  static inline omni_files::TemporaryDirectory* directory_ = nullptr;
};

TEST_F(SpeechWorker, EveryPartRuns) {
  for (const auto& [shape, frames] :
       {std::pair{"talker", 1}, {"predictor", 1}, {"codec-1", 1}, {"codec-4", 4}, {"codec-50", 50}, {"whole", 6}, {"first", 2}}) {
    for (const char* flags : {"", "--weights-memory huge --kv f32 --codec-chunk 3 --codec-rows 2 --codec-fp32 --greedy"}) {
      SCOPED_TRACE(std::string(shape) + " " + flags);
      const auto got = answers({question(shape, frames), "run 1", "run 2"}, flags);
      EXPECT_TRUE(got[0].value("ok", false)) << got[0];
      EXPECT_EQ(got[0].value("compare", ""), "none");
      for (const size_t i : {1, 2}) EXPECT_GT(got[i].value("ns", 0.0), 0) << got[i];
    }
  }
}

// A step begins again at the prompt before the context is full, and a stream before it is longer than any that is heard.
TEST_F(SpeechWorker, LongRunsBeginAgain) {
  const auto got = answers({question("talker", 1), "run 1200", question("codec-50", 50), "run 45"});
  for (const size_t i : {1, 3}) EXPECT_GT(got[i].value("ns", 0.0), 0) << got[i];
}

TEST_F(SpeechWorker, OnlyWhatMemoryMayLimitHasBytes) {
  const auto got = answers(
      {question("talker", 1), question("predictor", 1), question("codec-4", 4), question("codec-50", 50), question("whole", 6)});
  for (const size_t i : {0, 1, 2}) EXPECT_GT(got[i].value("bytes", 0.0), 10'000) << got[i];
  for (const size_t i : {3, 4}) EXPECT_EQ(got[i].value("bytes", -1.0), 0) << got[i];
}

TEST_F(SpeechWorker, TheDetailSaysWhatRuns) {
  const auto got = answers({question("whole", 6), question("first", 2)}, "--codec-chunk 3 --codec-rows 5 --codec-fp32 --greedy");
  EXPECT_NE(got[0].value("detail", "").find("codec rows 5 in fp32, 3 frames to the codec at once, greedy"), std::string::npos)
      << got[0];
  EXPECT_NE(got[1].value("detail", "").find("2 frames to the codec at once"), std::string::npos) << got[1];
}

TEST_F(SpeechWorker, WhatItHasNothingForIsRefused) {
  const auto got = answers({question("talker", 1, 23, "model"), question("23x512", 1), question("whole", 2, 9), "run 1"});
  EXPECT_EQ(got[0].value("refused", ""), "serves --op speech");
  EXPECT_EQ(got[1].value("refused", ""), "no part \"23x512\": talker, predictor, codec, whole, first");
  EXPECT_EQ(got[2].value("refused", ""), "a prompt has more than 9 rows");
  EXPECT_EQ(got[3].value("error", ""), "no case yet");
}

TEST_F(SpeechWorker, UnknownFlagValuesAreRefused) {
  const std::string command = std::string(OMNI_WORKER) + " " + model() + " --codec-chunk 0 < /dev/null > /dev/null 2>&1";
  const int status = std::system(command.c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << status;
}

}  // namespace
