// SPDX-License-Identifier: Apache-2.0
#include "reference/generate/generation_config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reference/core/error.h"

namespace ref {
namespace {

GenerationConfig read(const std::string& text) { return read_generation_config(nlohmann::json::parse(text), "g.json"); }

void refused(const std::string& text, const std::string& word) {
  try {
    read(text);
    ADD_FAILURE() << text;
  } catch (const Error& error) {
    const std::string what = error.what();
    EXPECT_TRUE(what.starts_with("g.json: ")) << what;
    EXPECT_NE(what.find(word), std::string::npos) << what;
    EXPECT_EQ(what.find('\n'), std::string::npos);
  }
}

TEST(GenerationConfig, TheReleasedModels) {
  const GenerationConfig config = read(R"({"_from_model_config": true, "bos_token_id": 0, "eos_token_id": 1, "do_sample": true,
                                           "temperature": 1.0, "top_p": 0.95, "top_k": -1})");
  EXPECT_EQ(config.sampling.temperature, 1.0);
  EXPECT_EQ(config.sampling.top_p, 0.95);
  EXPECT_EQ(config.sampling.top_k, -1);
  EXPECT_EQ(*config.eos, std::vector<int32_t>{1});
}

TEST(GenerationConfig, GreedyUnlessItSamples) {
  for (const char* text : {"{}", R"({"do_sample": false, "temperature": 0.7, "top_p": 0.5})", R"({"do_sample": null})"}) {
    const GenerationConfig config = read(text);
    EXPECT_EQ(config.sampling.temperature, 0) << text;
    EXPECT_EQ(config.sampling.top_p, 1) << text;
    EXPECT_FALSE(config.eos);
  }
  const GenerationConfig sampled = read(R"({"do_sample": true, "min_p": 0.1, "top_k": 20, "repetition_penalty": 1.1})");
  EXPECT_EQ(sampled.sampling.temperature, 1);
  EXPECT_EQ(sampled.sampling.min_p, 0.1);
  EXPECT_EQ(sampled.sampling.top_k, 20);
  EXPECT_EQ(sampled.sampling.repetition_penalty, 1.1);
}

TEST(GenerationConfig, EndTokensMayBeAList) {
  EXPECT_EQ(*read(R"({"eos_token_id": [1, 7]})").eos, (std::vector<int32_t>{1, 7}));
  EXPECT_TRUE(read(R"({"eos_token_id": []})").eos->empty());
  EXPECT_FALSE(read(R"({"eos_token_id": null})").eos);
}

TEST(GenerationConfig, NothingIsTrusted) {
  refused(R"({"do_sample": 1})", "do_sample");
  refused(R"({"do_sample": true, "temperature": "hot"})", "temperature is \"hot\"");
  refused(R"({"do_sample": true, "temperature": -1})", "temperature");
  refused(R"({"do_sample": true, "top_p": 7})", "top-p");
  refused(R"({"do_sample": true, "top_k": 0.5})", "top_k");
  refused(R"({"do_sample": true, "top_k": 18446744073709551615})", "top_k");
  refused(R"({"repetition_penalty": 0})", "repetition-penalty");
  refused(R"({"eos_token_id": 4294967296})", "eos_token_id");
  refused(R"({"eos_token_id": [1, "\n"]})", "eos_token_id");
}

TEST(GenerationConfig, ADirectoryWithoutOneIsGreedy) { EXPECT_EQ(load_generation_config("/nonexistent").sampling.temperature, 0); }

}  // namespace
}  // namespace ref
