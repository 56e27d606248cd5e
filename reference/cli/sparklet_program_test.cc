// SPDX-License-Identifier: Apache-2.0
// The trained small model of the goldens: perplexity, greedy texts, and the divergence of every way to quantise it.
#include <cmath>

#include "reference/cli/program_for_test.h"

namespace ref::cli::testing {
namespace {

class Sparklet : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* goldens = std::getenv("OMNI_GOLDENS");
    path_ = fs::path(goldens == nullptr ? "" : goldens) / "spark/sparklet";
    if (goldens == nullptr || !fs::exists(path_ / "golden.json"))
      GTEST_SKIP() << "OMNI_GOLDENS names no directory with spark/sparklet";
    golden_ = Json::parse(read_file(path_ / "golden.json"));
  }
  std::string directory() const { return path_.string(); }
  std::string text() const { return (path_ / "eval.txt").string(); }

  fs::path path_;
  Json golden_;
};

const std::vector<std::string> kReference = {"--weights", "keep", "--precision", "fp32"};

TEST_F(Sparklet, PerplexityToFourDigits) {
  std::vector<std::string> arguments = {"perplexity", directory(), text(), "--json"};
  arguments.insert(arguments.end(), kReference.begin(), kReference.end());
  const Json json = json_of(program(arguments)), expected = golden_["ppl"]["fp32 (bf16 weights, fp32 math)"];
  EXPECT_EQ(json["tokens"], golden_["scored_tokens"]);
  EXPECT_EQ(json["text_tokens"], golden_["eval_tokens"]);
  EXPECT_NEAR(json["perplexity"].get<double>(), expected["ppl"].get<double>(), 5e-5);
  EXPECT_NEAR(json["nll"].get<double>(), expected["nll"].get<double>(), 1e-6);
}

// Ids up to the first step that is too close to call, and the text of those that are the same to the end.
TEST_F(Sparklet, GreedyTexts) {
  constexpr double kClose = 0.01;
  const std::pair<const char*, std::vector<std::string>> models[] = {
      {"fp32", kReference},
      {"w4a16_g64_asym",
       {"--weights", "w4a16", "--group", "64", "--head", "keep", "--quantiser", "nearest", "--precision", "fp32"}}};
  int whole = 0;
  for (const auto& [name, options] : models) {
    for (const Json& one : golden_["greedy"]) {
      const Json& expected = one[name];
      std::vector<std::string> arguments = {
          directory(), one["prompt"].get<std::string>(), "-n", "40", "--temperature", "0", "--special", "--json"};
      arguments.insert(arguments.end(), options.begin(), options.end());
      const Json json = json_of(program(arguments));
      const auto ids = json["ids"].get<std::vector<int32_t>>(), golden = expected["ids"].get<std::vector<int32_t>>();
      EXPECT_EQ(json["prompt_tokens"], one["prompt_ids"].size());
      size_t same = 0;
      while (same < ids.size() && same < golden.size() && ids[same] == golden[same]) ++same;
      if (same < golden.size()) {
        EXPECT_LT(expected["margins"][same].get<double>(), kClose) << name << " " << one["prompt"] << " step " << same;
      } else {
        EXPECT_EQ(json["text"], expected["text"]) << name;
        ++whole;
      }
    }
  }
  EXPECT_GE(whole, 15);  // of 20
}

struct Scheme {
  const char* row;
  std::vector<std::string> options;  // of side b
};

// Two schemes always, all of them, which takes minutes, in the exhaustive run.
std::vector<Scheme> schemes() {
  std::vector<Scheme> schemes = {
      {"W4A16 g64 asym", {"--b-weights", "w4a16", "--b-group", "64", "--b-head", "keep"}},
      {"W4A8 g128 sym, s8 per-token activations", {"--b-weights", "w4a8", "--b-group", "128", "--b-sym", "--b-head", "keep"}}};
  if (std::getenv("OMNI_EXHAUSTIVE") == nullptr) {
    std::printf("2 of 9 schemes: OMNI_EXHAUSTIVE=1, which ./dev test --all sets, runs the others\n");
    return schemes;
  }
  const Scheme others[] = {
      {"W4A16 g32 asym", {"--b-weights", "w4a16", "--b-group", "32", "--b-head", "keep"}},
      {"W4A16 g64 sym", {"--b-weights", "w4a16", "--b-group", "64", "--b-sym", "--b-head", "keep"}},
      {"W4A16 g128 sym", {"--b-weights", "w4a16", "--b-group", "128", "--b-sym", "--b-head", "keep"}},
      {"W4A16 sym, one scale per output row", {"--b-weights", "w4a16", "--b-group", "0", "--b-sym", "--b-head", "keep"}},
      {"W4A16 g64 asym + int8 per-row head", {"--b-weights", "w4a16", "--b-group", "64", "--b-head", "w8"}},
      {"W4A16 g64 asym + int4 g64 sym head", {"--b-weights", "w4a16", "--b-group", "64", "--b-head", "w4"}},
      {"W4A8 g64 asym, s8 per-token activations", {"--b-weights", "w4a8", "--b-group", "64", "--b-head", "keep"}}};
  schemes.insert(schemes.end(), std::begin(others), std::end(others));
  return schemes;
}

// Mean divergence from fp32 within 3 % of the reference's, round to nearest, rows in fp32.
TEST_F(Sparklet, DivergenceOfTheSchemes) {
  for (const Scheme& scheme : schemes()) {
    std::vector<std::string> arguments = {"compare", directory(),     directory(), text(),          "--json", "--prompts",
                                          "0",       "--a-weights",   "keep",      "--a-precision", "fp32",   "--b-precision",
                                          "fp32",    "--b-quantiser", "nearest"};
    arguments.insert(arguments.end(), scheme.options.begin(), scheme.options.end());
    const Json json = json_of(program(arguments));
    const double expected = golden_["ppl"][scheme.row]["kl"], found = json["kl"];
    std::printf("%-44s kl %.4e, reference %.4e (%+.2f %%), perplexity %.4f, reference %.4f\n", scheme.row, found, expected,
                100 * (found / expected - 1), json["b"]["perplexity"].get<double>(),
                golden_["ppl"][scheme.row]["ppl"].get<double>());
    EXPECT_NEAR(found, expected, 0.03 * expected) << scheme.row;
    EXPECT_NEAR(json["top1"].get<double>(), golden_["ppl"][scheme.row]["top1"].get<double>(), 0.005) << scheme.row;
  }
}

TEST_F(Sparklet, TheDefaultsStayCloseToFp32) {
  const Json json = json_of(program({"compare", directory(), directory(), text(), "--json", "--tokens", "8192", "--a-weights",
                                     "keep", "--a-precision", "fp32", "--b-weights", "bf16"}));
  EXPECT_LT(json["kl"].get<double>(), 5e-5);  // what the official bf16 flow costs
}

}  // namespace
}  // namespace ref::cli::testing
