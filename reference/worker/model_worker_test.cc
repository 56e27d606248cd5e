// SPDX-License-Identifier: Apache-2.0
// The worker's answers, as omni-bench asks for them.
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

class Worker : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    directory_ = new omni_files::TemporaryDirectory;
    const std::string command = std::string(OMNI_PACK) + " --quiet --synthetic spark-tiny " + model();
    ASSERT_EQ(std::system(command.c_str()), 0);
  }
  static void TearDownTestSuite() { delete directory_; }
  static std::string model() { return (*directory_ / "packed").string(); }

  static std::string question(int m, int depth, const std::string& op = "model") {
    return "case " + json{{"op", op}, {"m", m}, {"depth", depth}, {"threads", 2}}.dump();
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

TEST_F(Worker, DecodesOnAndBeginsAgainBeforeTheContextIsFull) {
  const auto got = answers({question(1, 5), "run 3", "run 400", "run 1200"});
  EXPECT_TRUE(got[0].value("ok", false)) << got[0];
  EXPECT_GT(got[0].value("bytes", 0.0), 100'000) << got[0];
  EXPECT_EQ(got[0].value("compare", ""), "none");
  for (size_t i = 1; i < got.size(); ++i) EXPECT_GT(got[i].value("ns", 0.0), 0) << i << " " << got[i];
}

// A window of 16 tokens with chunks of 8 has dropped what position 40 needs when 64 more were read.
TEST_F(Worker, PrefillsAtTheSameDepthAgain) {
  const auto got = answers({question(64, 40), "run 2", "run 1"}, "--chunk 8 --weights-memory huge --norm separate --kv int8");
  EXPECT_TRUE(got[0].value("ok", false)) << got[0];
  EXPECT_EQ(got[0].value("bytes", -1.0), 0) << "a prefill is not held to bytes";
  for (const char* part : {"huge weights", "separate norm", "int8 cache", "chunk 8"}) {
    EXPECT_NE(got[0].value("detail", "").find(part), std::string::npos) << got[0];
  }
  EXPECT_GT(got[1].value("ns", 0.0), 0) << got[1];
  EXPECT_GT(got[2].value("ns", 0.0), 0) << got[2];
}

TEST_F(Worker, ErrorsAreAnswers) {
  const auto got = answers({"run 1", question(1, 5, "w4a8"), "case {", question(1, 5), "output x"});
  for (const size_t i : {0, 2, 4}) EXPECT_NE(got[i].value("error", ""), "") << i << " " << got[i];
  EXPECT_EQ(got[1].value("refused", ""), "serves --op model");
  EXPECT_TRUE(got[3].value("ok", false)) << got[3];
}

TEST_F(Worker, UnknownFlagValuesAreRefused) {
  const std::string command = std::string(OMNI_WORKER) + " " + model() + " --norm both < /dev/null > /dev/null 2>&1";
  const int status = std::system(command.c_str());
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 2) << status;
}

}  // namespace
