// SPDX-License-Identifier: Apache-2.0
#include "reference/generate/generate.h"

#include <gtest/gtest.h>

#include "reference/core/error.h"
#include "reference/generate/fake_model.h"

namespace ref {
namespace {

using testing::FakeModel;

// The vocabulary is bytes 0..15; the favourite has logit 9, the others rise with their id up to 1.
std::vector<float> favour(int32_t id, size_t vocabulary = 16) {
  std::vector<float> logits(vocabulary);
  for (size_t i = 0; i < vocabulary; ++i) logits[i] = static_cast<float>(i) / static_cast<float>(vocabulary);
  logits[static_cast<size_t>(id)] = 9;
  return logits;
}

FakeModel constant(int32_t id, int64_t context = 100) {
  return {16, context, [id](const std::vector<int32_t>&) { return favour(id); }};
}
// Predicts the token after the last one.
FakeModel counting(int64_t context = 100) {
  return {16, context, [](const std::vector<int32_t>& ids) { return favour((ids.back() + 1) % 16); }};
}

GenerateOptions greedy(int64_t most = 10) {
  GenerateOptions options;
  options.sampling.temperature = 0;
  options.max_tokens = most;
  return options;
}

const std::vector<int32_t> kPrompt(20, 1);

TEST(Generate, StopsAtTheEndToken) {
  FakeModel model = counting();
  GenerateOptions options = greedy();
  options.sampling.end_tokens = {9, 5};
  const GenerateResult result = generate(&model, nullptr, std::vector<int32_t>{1, 2}, options, {});
  EXPECT_EQ(result.reason, StopReason::kEos);
  EXPECT_EQ(result.ids, (std::vector<int32_t>{3, 4}));
  EXPECT_EQ(result.end_token, 5);
  EXPECT_EQ(result.prompt_tokens, 2);
  EXPECT_EQ(result.decode_steps, 2);
}

// Limits count new tokens; the minimum too. Without end tokens nothing is masked, least of all the last entry.
TEST(Generate, LimitsCountNewTokens) {
  FakeModel ending = constant(3);
  GenerateOptions options = greedy();
  options.sampling.end_tokens = {3};
  options.sampling.min_new_tokens = 5;
  const GenerateResult result = generate(&ending, nullptr, kPrompt, options, {});
  EXPECT_EQ(result.reason, StopReason::kEos);
  EXPECT_EQ(result.ids, std::vector<int32_t>(5, 15));

  options.sampling.end_tokens.clear();
  FakeModel last = constant(15);
  const GenerateResult all = generate(&last, nullptr, kPrompt, options, {});
  EXPECT_EQ(all.reason, StopReason::kMaxTokens);
  EXPECT_EQ(all.ids, std::vector<int32_t>(10, 15));
  EXPECT_EQ(all.decode_steps, 9);
}

TEST(Generate, NothingIsDrawnWithNoTokens) {
  FakeModel model = counting();
  const GenerateResult result = generate(&model, nullptr, kPrompt, greedy(0), {});
  EXPECT_EQ(result.reason, StopReason::kMaxTokens);
  EXPECT_TRUE(result.ids.empty());
  EXPECT_EQ(model.position(), 20);
}

// A context of 32: 31 tokens leave room for one and the one after it, 32 for one, 33 are refused with both figures.
TEST(Generate, TheContextIsALimit) {
  for (const size_t prompt : {31U, 32U}) {
    FakeModel model = counting(32);
    const GenerateResult result = generate(&model, nullptr, std::vector<int32_t>(prompt, 1), greedy(), {});
    EXPECT_EQ(result.reason, StopReason::kContext);
    EXPECT_EQ(result.ids.size(), 33 - prompt);
  }
  FakeModel model = counting(32);
  try {
    generate(&model, nullptr, std::vector<int32_t>(33, 1), greedy(), {});
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("33"), std::string::npos) << error.what();
    EXPECT_NE(std::string(error.what()).find("32"), std::string::npos) << error.what();
  }
  EXPECT_EQ(model.position(), 0);
}

TEST(Generate, ThePromptIsReadInStepsThatDoNotShow) {
  std::vector<int32_t> expected;
  for (const int64_t step : {512, 1, 3, 19, 20, 21}) {
    FakeModel model(16, 100, [](const std::vector<int32_t>& ids) { return favour(static_cast<int32_t>(ids.size()) % 16); });
    GenerateOptions options = greedy();
    options.step = step;
    const GenerateResult result = generate(&model, nullptr, kPrompt, options, {});
    if (expected.empty()) expected = result.ids;
    EXPECT_EQ(result.ids, expected) << step;
  }
}

TEST(Generate, InterruptionEndsPromptAndText) {
  FakeModel model = counting();
  GenerateOptions options = greedy();
  options.step = 4;
  GenerateHooks hooks;
  hooks.interrupted = [&] { return model.position() >= 8; };
  const GenerateResult during = generate(&model, nullptr, kPrompt, options, hooks);
  EXPECT_EQ(during.reason, StopReason::kInterrupted);
  EXPECT_TRUE(during.ids.empty());
  EXPECT_EQ(model.position(), 8);
  hooks.interrupted = [&] { return model.position() >= 23; };
  const GenerateResult after = generate(&model, nullptr, kPrompt, options, hooks);
  EXPECT_EQ(after.reason, StopReason::kInterrupted);
  EXPECT_EQ(after.ids.size(), 4U);
}

TEST(Generate, APenaltyCountsPromptAndText) {
  FakeModel model(4, 100, [](const std::vector<int32_t>&) { return std::vector<float>{4, 3, 2, 1}; });
  GenerateOptions options = greedy(4);
  options.sampling.repetition_penalty = 100;
  EXPECT_EQ(generate(&model, nullptr, std::vector<int32_t>{1}, options, {}).ids, (std::vector<int32_t>{0, 2, 3, 0}));
}

TEST(Generate, TheSeedDecides) {
  FakeModel model(16, 100, [](const std::vector<int32_t>&) { return std::vector<float>(16, 0.0F); });
  GenerateOptions options;
  options.max_tokens = 30;
  const auto ids = [&](uint64_t seed) {
    options.seed = seed;
    return generate(&model, nullptr, kPrompt, options, {}).ids;
  };
  EXPECT_EQ(ids(1), ids(1));
  EXPECT_NE(ids(1), ids(2));
}

TEST(Generate, RefusesWhatItCannotDo) {
  FakeModel model = counting();
  EXPECT_THROW(generate(&model, nullptr, {}, greedy(), {}), Error);
  GenerateOptions options = greedy();
  options.stops = {"x"};
  EXPECT_THROW(generate(&model, nullptr, kPrompt, options, {}), Error);
  options = greedy();
  options.sampling.end_tokens = {16};
  EXPECT_THROW(generate(&model, nullptr, kPrompt, options, {}), Error);
  FakeModel broken(16, 100, [](const std::vector<int32_t>&) { return std::vector<float>(16, std::nanf("")); });
  EXPECT_THROW(generate(&broken, nullptr, kPrompt, greedy(), {}), Error);
}

// With a tokenizer: the pieces are whole characters, and together the text.
class Text : public ::testing::Test {
 protected:
  // A model that says the ids of `text`.
  GenerateResult say(const std::string& text, GenerateOptions options) {
    const std::vector<int32_t> ids = tokenizer_.encode(text);
    tokens_ = ids.size();
    const auto vocabulary = static_cast<int64_t>(tokenizer_.size());
    FakeModel model(vocabulary, 1000, [&](const std::vector<int32_t>& sequence) {
      const size_t at = sequence.size() - 1;
      return favour(at < ids.size() ? ids[at] : 1, static_cast<size_t>(vocabulary));
    });
    options.sampling.end_tokens = {1};
    GenerateHooks hooks;
    pieces_.clear();
    hooks.write = [this](std::string_view piece) {
      EXPECT_FALSE(piece.empty());
      EXPECT_EQ(utf8_lossy(piece), piece);
      pieces_.emplace_back(piece);
      return open_;
    };
    GenerateResult result = generate(&model, &tokenizer_, std::vector<int32_t>{0}, options, hooks);
    std::string all;
    for (const std::string& piece : pieces_) all += piece;
    EXPECT_EQ(all, result.text);
    return result;
  }

  Tokenizer tokenizer_ = Tokenizer::load(std::string(OMNI_TEST_DATA) + "/tokenizer/spark_small/tokenizer.json");
  std::vector<std::string> pieces_;
  size_t tokens_ = 0;
  bool open_ = true;
};

TEST_F(Text, StreamsWholeCharacters) {
  const std::string text = "a\U0001F980 \u9F98\u9F98 end";
  const GenerateResult result = say(text, greedy(100));
  EXPECT_EQ(result.text, text);
  EXPECT_EQ(result.reason, StopReason::kEos);
  EXPECT_LT(pieces_.size(), tokens_);  // some characters took several tokens
  EXPECT_EQ(text.find("\uFFFD"), std::string::npos);
}

TEST_F(Text, AStopTextEndsIt) {
  GenerateOptions options = greedy(100);
  options.stops = {"king and"};
  const GenerateResult result = say("The king and the queen", options);
  EXPECT_EQ(result.text, "The ");
  EXPECT_EQ(result.reason, StopReason::kStop);
  EXPECT_FALSE(result.end_token);
}

TEST_F(Text, WhatWasHeldBackComesAtTheEnd) {
  GenerateOptions options = greedy(100);
  options.stops = {"queen of"};
  EXPECT_EQ(say("The king and the queen", options).text, "The king and the queen");
  options.max_tokens = 1;  // half an emoji
  EXPECT_EQ(say("\U0001F980", options).text, "\uFFFD");
}

TEST_F(Text, NobodyReadsOn) {
  open_ = false;
  const GenerateResult result = say("The king and the queen", greedy(100));
  EXPECT_EQ(result.reason, StopReason::kClosed);
  EXPECT_EQ(pieces_.size(), 1U);
}

TEST_F(Text, SpecialTokensShowOnlyWhenAsked) {
  const std::string text = "a<\uFF5Cfim\u2581begin\uFF5C><\uFF5C\u2581pad\u2581\uFF5C>b";
  GenerateOptions options = greedy(100);
  EXPECT_EQ(say(text, options).text.find("pad"), std::string::npos);
  options.show_special = true;
  EXPECT_EQ(say(text, options).text, text);
}

}  // namespace
}  // namespace ref
