// SPDX-License-Identifier: Apache-2.0
#include "reference/sampling/sampler.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <limits>
#include <map>
#include <nlohmann/json.hpp>
#include <random>
#include <set>

#include "reference/core/error.h"
#include "tools/common/safetensors.h"

namespace ref {
namespace {

using nlohmann::json;

std::string data(const std::string& name) { return std::string(OMNI_TEST_DATA) + "/sampling/" + name; }
json read_json(const std::string& name) {
  std::ifstream stream(data(name));
  EXPECT_TRUE(stream) << name;
  return json::parse(stream);
}

std::vector<float> logs(const std::vector<float>& probability) {
  std::vector<float> logits;
  for (const float p : probability) logits.push_back(std::log(p));
  return logits;
}

// Ids that many draws show, and how often.
std::map<int32_t, int> draws(const SamplingOptions& options, const std::vector<float>& logits, int count) {
  Generator generator(7);
  std::map<int32_t, int> seen;
  for (int i = 0; i < count; ++i) {
    std::vector<float> copy = logits;
    ++seen[sample_token(options, {}, 0, copy, &generator)];
  }
  return seen;
}

TEST(Draw, IsTheMultinomialOfPyTorch) {
  for (const json& one : read_json("torch_multinomial.json")) {
    const auto seed = one["seed"].get<uint64_t>();
    const auto n = one["n"].get<size_t>(), zero_every = one["zero_every"].get<size_t>();
    std::vector<float> logits(n);
    for (size_t i = 0; i < n; ++i) logits[i] = static_cast<float>((i * 7919 + seed % 1000) % 97) / 16.0F;
    std::vector<float> probability = probabilities(logits);
    for (size_t i = 0; zero_every != 0 && i < n; i += zero_every) probability[i] = 0;
    Generator generator(seed);
    std::vector<int32_t> ids;
    for (int i = 0; i < 20; ++i) ids.push_back(draw(probability, &generator));
    EXPECT_EQ(ids, one["ids"].get<std::vector<int32_t>>()) << "seed " << seed << " n " << n;
  }
}

TEST(Process, EveryGoldenOfTheTalker) {
  const auto file = omni_files::SafetensorsFile::open(data("sampling.safetensors"));
  for (const json& one : read_json("sampling.json")) {
    const std::string name = "c" + std::to_string(one["case"].get<int>()) + "_";
    SamplingOptions options;
    options.temperature = one["temperature"];
    options.top_k = one["top_k"];
    options.top_p = one["top_p"];
    options.repetition_penalty = one["repetition_penalty"];
    options.min_new_tokens = 2;
    const auto eos = one["eos"].get<int32_t>();
    options.end_tokens = {eos};
    for (int32_t id = one["suppress_from"]; id < one["vocab"].get<int32_t>(); ++id) {
      if (id != eos) options.suppressed.push_back(id);
    }
    auto logits = file.at(name + "logits").as<float>();
    std::vector<int32_t> history;
    for (const int64_t id : file.at(name + "history").as<int64_t>()) history.push_back(static_cast<int32_t>(id));
    process_logits(options, history, static_cast<uint32_t>(history.size()), logits);
    const std::vector<float> ours = probabilities(logits), theirs = file.at(name + "probs").as<float>();
    int kept = 0;
    for (size_t i = 0; i < ours.size(); ++i) {
      kept += ours[i] > 0 ? 1 : 0;
      EXPECT_EQ(ours[i] > 0, theirs[i] > 0) << name << i;
      // Theirs are fp32 sums of up to 1280 terms: a relative error of at most 1280 * 2^-24.
      EXPECT_NEAR(ours[i], theirs[i], theirs[i] * 1280 * 0x1p-24F) << name << i;
    }
    EXPECT_EQ(kept, one["kept"].get<int>());
  }
}

// A temperature of zero is greedy, as is one that no gap of fp32 can survive.
TEST(Sample, TemperatureZeroIsGreedy) {
  for (const double temperature : {0.0, 1e-30}) {
    SamplingOptions options;
    options.temperature = temperature;
    EXPECT_EQ(draws(options, {1, 3, 2}, 10), (std::map<int32_t, int>{{1, 10}}));
  }
}

TEST(Sample, TopPOneKeepsEverything) {
  SamplingOptions options;
  const std::map<int32_t, int> seen = draws(options, logs({0.4F, 0.3F, 0.3F}), 30000);
  EXPECT_NEAR(seen.at(0) / 30000.0, 0.4, 0.01);
  EXPECT_NEAR(seen.at(1) / 30000.0, 0.3, 0.01);
  EXPECT_NEAR(seen.at(2) / 30000.0, 0.3, 0.01);
}

TEST(Sample, TopPKeepsTheTokenThatCrosses) {
  SamplingOptions options;
  options.top_p = 0.6;
  EXPECT_EQ(draws(options, logs({0.5F, 0.3F, 0.15F, 0.05F}), 20000).size(), 2U);
  options.top_p = 0.85;
  EXPECT_EQ(draws(options, logs({0.5F, 0.3F, 0.15F, 0.05F}), 20000).size(), 3U);
}

TEST(Process, PenaltyLowersNegativeLogitsToo) {
  SamplingOptions options;
  options.repetition_penalty = 2;
  options.temperature = 0;
  std::vector<float> logits = {-1, 2, 0};
  const std::vector<int32_t> history = {0, 1, 2, 1};
  process_logits(options, history, 4, logits);
  EXPECT_EQ(logits, (std::vector<float>{-2, 1, 0}));
}

TEST(Sample, TopKAndTopPAlwaysLeaveTheArgmax) {
  std::mt19937 random(1);
  std::normal_distribution<float> normal;
  for (const double temperature : {0.01, 5.0}) {
    for (const auto& [k, p] : {std::pair<int64_t, double>{1, 0.8}, {2, 0.1}}) {
      std::vector<float> logits(1000);
      for (float& logit : logits) logit = normal(random);
      SamplingOptions options;
      options.temperature = temperature;
      options.top_k = k;
      options.top_p = p;
      std::vector<float> processed = logits;
      process_logits(options, {}, 0, processed);
      int kept = 0;
      for (const float logit : processed) kept += std::isinf(logit) ? 0 : 1;
      EXPECT_GE(kept, 1);
      EXPECT_LE(kept, k);
      EXPECT_EQ(pick_greedy(processed), pick_greedy(logits));
    }
  }
}

TEST(Sample, MinPDropsWhatIsLessProbableThanItsShareOfTheMost) {
  SamplingOptions options;
  options.min_p = 0.25;
  EXPECT_EQ(draws(options, logs({0.5F, 0.3F, 0.15F, 0.05F}), 20000).size(), 3U);
}

// Only new tokens count; without end tokens nothing is masked, least of all the last entry.
TEST(Sample, MinimumCountsNewTokensOnly) {
  SamplingOptions options;
  options.temperature = 0;
  options.min_new_tokens = 5;
  options.end_tokens = {3};
  std::vector<int32_t> history(20, 1);
  for (uint32_t made = 0; made < 8; ++made) {
    std::vector<float> logits = {0, 1, 2, 9};
    Generator generator(0);
    EXPECT_EQ(sample_token(options, history, made, logits, &generator), made < 5 ? 2 : 3);
  }
  options.end_tokens.clear();
  std::vector<float> logits(16, 0.0F);
  logits[15] = 1;
  Generator generator(0);
  EXPECT_EQ(sample_token(options, history, 0, logits, &generator), 15);
}

TEST(Generator, OnlyTheLow32BitsOfASeedCount) {
  Generator a(7), b((uint64_t{1} << 32) + 7);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(a.exponential(), b.exponential());
}

TEST(Check, NamesTheOption) {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const auto refused = [](const char* word, SamplingOptions options) {
    try {
      check_sampling(options, 16);
      ADD_FAILURE() << word << " accepted";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(word), std::string::npos) << error.what();
    }
  };
  check_sampling({}, 16);
  refused("temperature", {.temperature = -1});
  refused("temperature", {.temperature = nan});
  refused("top-p", {.top_p = 0});
  refused("top-p", {.top_p = 1.5});
  refused("min-p", {.min_p = -0.5});
  refused("repetition-penalty", {.repetition_penalty = 0});
  refused("end token 16", {.end_tokens = {16}});
  refused("suppressed token -1", {.suppressed = {-1}});
}

TEST(Pick, RefusesLogitsThatSayNothing) {
  EXPECT_THROW(pick_greedy(std::vector<float>{1, std::nanf(""), 2}), Error);
  EXPECT_THROW(pick_greedy(std::vector<float>(3, -std::numeric_limits<float>::infinity())), Error);
  EXPECT_EQ(pick_greedy(std::vector<float>{1, 2, 2}), 1);
}

}  // namespace
}  // namespace ref
