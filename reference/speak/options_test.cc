// SPDX-License-Identifier: Apache-2.0
// What the caller says, what the model's file says, and what neither says.
#include "reference/speak/options.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "reference/core/error.h"
#include "reference/speak/model_source.h"
#include "reference/speak/speech_defaults.h"

namespace ref::speak {
namespace {

using nlohmann::json;

std::string refusal(const json& root) {
  try {
    read_speech_defaults(root, "file");
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

TEST(SpeechDefaults, AreThoseOfTheReference) {
  const SpeechDefaults defaults = read_speech_defaults(json::object(), "file");
  EXPECT_TRUE(defaults.sampling.sample);
  EXPECT_EQ(defaults.sampling.top_k, 50);
  EXPECT_EQ(defaults.sampling.repetition_penalty, 1.05);
  EXPECT_EQ(defaults.most_frames, 2047);
}

TEST(SpeechDefaults, OfAFile) {
  const SpeechDefaults defaults = read_speech_defaults({{"do_sample", false},
                                                        {"temperature", 0.7},
                                                        {"top_k", -1},
                                                        {"top_p", 0.8},
                                                        {"repetition_penalty", 1.2},
                                                        {"subtalker_dosample", true},
                                                        {"subtalker_temperature", 0.5},
                                                        {"subtalker_top_k", 7},
                                                        {"subtalker_top_p", nullptr},
                                                        {"max_new_tokens", 8192},
                                                        {"unknown", {1}}},
                                                       "file");
  EXPECT_FALSE(defaults.sampling.sample);
  EXPECT_EQ(defaults.sampling.temperature, 0.7);
  EXPECT_EQ(defaults.sampling.top_k, 0);
  EXPECT_EQ(defaults.sampling.top_p, 0.8);
  EXPECT_EQ(defaults.sampling.repetition_penalty, 1.2);
  EXPECT_TRUE(defaults.sampling.predictor_sample);
  EXPECT_EQ(defaults.sampling.predictor_temperature, 0.5);
  EXPECT_EQ(defaults.sampling.predictor_top_k, 7);
  EXPECT_EQ(defaults.sampling.predictor_top_p, 1.0);
  EXPECT_EQ(defaults.most_frames, 8191);
}

TEST(SpeechDefaults, NameWhatIsWrong) {
  EXPECT_EQ(refusal({{"temperature", 0}}), "file: \"temperature\" must be a number in its range, not 0");
  EXPECT_EQ(refusal({{"top_p", 1.5}}), "file: \"top_p\" must be a number in its range, not 1.5");
  EXPECT_EQ(refusal({{"do_sample", 1}}), "file: \"do_sample\" must be true or false, not 1");
  for (const json& bad : {json(-2), json(1.5), json("x"), json(1e30)}) EXPECT_NE(refusal({{"subtalker_top_k", bad}}), "");
  EXPECT_NE(refusal({{"max_new_tokens", 0}}).find("max_new_tokens"), std::string::npos);
}

TEST(Sampling, TheCallerWins) {
  tts::SpeechSampling defaults;
  defaults.top_k = 20;
  SamplingFlags flags;
  flags.temperature = 0.3;
  flags.subtalker_top_k = 5;
  flags.seed = 12345678901234567890U;
  const tts::SpeechSampling sampling = resolve_sampling(flags, defaults);
  EXPECT_EQ(sampling.temperature, 0.3);
  EXPECT_EQ(sampling.top_k, 20);
  EXPECT_EQ(sampling.predictor_top_k, 5);
  EXPECT_EQ(sampling.predictor_temperature, 0.9);
  EXPECT_EQ(sampling.seed, 12345678901234567890U);
}

TEST(Sampling, GreedyAndNoTemperature) {
  SamplingFlags flags;
  flags.temperature = 0;
  EXPECT_FALSE(resolve_sampling(flags, {}).sample);
  EXPECT_TRUE(resolve_sampling(flags, {}).predictor_sample);
  flags = {};
  flags.greedy = true;
  EXPECT_FALSE(resolve_sampling(flags, {}).sample);
  EXPECT_FALSE(resolve_sampling(flags, {}).predictor_sample);
  flags = {};
  flags.temperature = 0.5;
  tts::SpeechSampling greedy;
  greedy.sample = false;
  EXPECT_TRUE(resolve_sampling(flags, greedy).sample);
}

TEST(Seeds, OfPiecesDifferAndTheFirstIsTheCallers) {
  std::set<uint64_t> seeds;
  for (const uint64_t seed : {0, 1, 2, 7}) {
    EXPECT_EQ(seed_of_piece(seed, 0), seed);
    for (size_t piece = 0; piece < 100; ++piece) seeds.insert(seed_of_piece(seed, piece));
  }
  EXPECT_EQ(seeds.size(), 400U);
}

}  // namespace
}  // namespace ref::speak
