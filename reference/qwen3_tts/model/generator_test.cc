// SPDX-License-Identifier: Apache-2.0
// The loop of frames: what may be picked, when it ends, what each sampler draws from.
#include "reference/qwen3_tts/model/generator.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <set>

#include "reference/qwen3_tts/model/test_models.h"

namespace ref::tts {
namespace {

namespace fs = std::filesystem;
using test::error_of;
using test::golden_path;
using test::greedy;
using test::Made;
using test::Pair;

class Loop : public testing::Test {
 protected:
  void SetUp() override {
    const fs::path golden = golden_path(test::kSmallGolden);
    if (golden.empty()) GTEST_SKIP() << "the golden is not here; OMNI_GOLDENS names the full set";
    pair_.emplace(test::small_model());
    prompt_ = pair_->talker.prompt(read_golden_request(pair_->talker, test::open_golden(golden)).request());
    eos_ = pair_->talker.config().talker.eos;
    vocabulary_ = pair_->talker.config().talker.vocabulary;
  }
  Made run(const SpeechSampling& sampling, int64_t max_frames, const GeneratorHooks& hooks = {}) {
    return test::run(&*pair_, prompt_, sampling, max_frames, hooks);
  }
  // A model whose raw logits of codebook 0 are all 0 but one, which wins.
  static GeneratorHooks always(int32_t id, float logit = 50) {
    GeneratorHooks hooks;
    hooks.talker_logits = [=](int64_t, std::span<float> logits) {
      std::ranges::fill(logits, 0.0F);
      logits[static_cast<size_t>(id)] = logit;
    };
    return hooks;
  }

  std::optional<Pair> pair_;
  Prompt prompt_;
  int32_t eos_ = 0;
  int64_t vocabulary_ = 0;
};

TEST_F(Loop, EndsAtTheLimitOrBeforeIt) {
  for (const int64_t most : {0, 1, 3}) {
    const Made made = run(greedy(), most);
    EXPECT_EQ(static_cast<int64_t>(made.frames.size()), most);
    EXPECT_EQ(made.stop, Stop::kMaxFrames);
  }
  EXPECT_EQ(error_of([&] { run(greedy(), -1); }), "at most -1 frames");
  // A talker that ends exactly where the limit is has ended by itself.
  GeneratorHooks hooks;
  hooks.talker_logits = [&](int64_t frame, std::span<float> logits) {
    if (frame == 4) logits[static_cast<size_t>(eos_)] = 1000;
  };
  EXPECT_EQ(run(greedy(), 4, hooks).stop, Stop::kEndOfSpeech);
  EXPECT_EQ(run(greedy(), 4, hooks).frames.size(), 4U);
  EXPECT_EQ(run(greedy(), 100, hooks).frames.size(), 4U);
  EXPECT_EQ(run(greedy(), 3, hooks).stop, Stop::kMaxFrames);
}

// AC-060, of speech: the first two tokens may not end it.
TEST_F(Loop, TwoFramesAtLeast) {
  const Made made = run(greedy(), 50, always(eos_));
  EXPECT_EQ(made.frames.size(), 2U);
  EXPECT_EQ(made.stop, Stop::kEndOfSpeech);
  SpeechSampling drawn;
  drawn.top_k = 1;
  EXPECT_EQ(run(drawn, 50, always(eos_)).frames.size(), 2U);
}

// AC-067.
TEST_F(Loop, OnlyTheEndTokenEnds) {
  const auto codes = static_cast<int32_t>(vocabulary_ - kControlIds);
  for (const int32_t id : {eos_ - 1, eos_ + 1, static_cast<int32_t>(vocabulary_) - 1, codes}) {
    const Made made = run(greedy(), 5, always(id));
    EXPECT_EQ(made.stop, Stop::kMaxFrames) << id;
    for (const Frame& frame : made.frames) EXPECT_LT(frame[0], codes);
  }
  SpeechSampling drawn;  // from everything that is left
  drawn.top_k = 0;
  drawn.temperature = 100;
  std::set<int32_t> seen;
  GeneratorHooks hooks;
  hooks.picked = [&](int64_t, int64_t codebook, int32_t id) {
    if (codebook == 0) seen.insert(id);
  };
  for (uint64_t seed = 0; seed < 20; ++seed) {
    drawn.seed = seed;
    run(drawn, 10, hooks);
  }
  EXPECT_GT(seen.size(), 50U);
  for (const int32_t id : seen) EXPECT_TRUE(id < codes || id == eos_) << id;
}

// AC-058: by one owner, once, however often the token was seen; and only for tokens of this run.
TEST_F(Loop, ThePenaltyActsOnce) {
  const int32_t token = 7, other = 9, negative = 11;
  std::vector<float> positives, negatives, others;
  GeneratorHooks hooks = always(token, 1.05F);
  const auto raw = hooks.talker_logits;
  hooks.talker_logits = [&, raw](int64_t frame, std::span<float> logits) {
    raw(frame, logits);
    logits[other] = 0.9F;
    logits[negative] = -2;
  };
  hooks.talker_scores = [&](int64_t, std::span<const float> scores) {
    positives.push_back(scores[token]);
    negatives.push_back(scores[negative]);
    others.push_back(scores[other]);
  };
  hooks.forced = [&](int64_t frame, int64_t codebook) -> std::optional<int32_t> {
    return codebook == 0 ? (frame < 3 ? token : negative) : 5;  // 5 is no token of codebook 0: it must stay as it is
  };
  run(greedy(), 5, hooks);
  ASSERT_EQ(positives.size(), 6U);
  EXPECT_EQ(positives[0], 1.05F);
  for (size_t i = 1; i < positives.size(); ++i) EXPECT_NEAR(positives[i], 1.0, 1e-6);
  EXPECT_EQ(negatives[3], -2);
  EXPECT_NEAR(negatives[4], -2.1, 1e-6);
  EXPECT_NEAR(negatives[5], -2.1, 1e-6);
  for (const float score : others) EXPECT_EQ(score, 0.9F);
  // A run begins with no history, and codes of other codebooks are none.
  std::vector<float> again;
  hooks.talker_scores = [&](int64_t, std::span<const float> scores) { again.push_back(scores[5]); };
  hooks.talker_logits = [](int64_t, std::span<float> logits) { std::ranges::fill(logits, 1.05F); };
  run(greedy(), 3, hooks);
  for (const float score : again) EXPECT_EQ(score, 1.05F);
}

// The reference frames of a clone stand in the prompt; their codes are no history.
TEST(LoopOfAClone, ReferenceCodesAreNotPenalised) {
  const fs::path golden = golden_path("golden/base_icl_stream.safetensors"), model = golden_path("base-tiny");
  OMNI_NEEDS_GOLDEN(golden);
  Pair pair(test::load(model));
  const GoldenRequest request = read_golden_request(pair.talker, test::open_golden(golden));
  ASSERT_FALSE(request.voice.frames.empty());
  GeneratorHooks hooks;
  std::vector<float> raw, scores;
  hooks.talker_logits = [&](int64_t frame, std::span<float> logits) {
    if (frame == 0) raw.assign(logits.begin(), logits.end());
  };
  hooks.talker_scores = [&](int64_t frame, std::span<const float> logits) {
    if (frame == 0) scores.assign(logits.begin(), logits.end());
  };
  test::run(&pair, pair.talker.prompt(request.request()), greedy(), 1, hooks);
  for (size_t i = 0; i < 256; ++i) EXPECT_EQ(raw[i], scores[i]);
}

TEST_F(Loop, ContextFull) {
  Pair pair(test::small_model(), Precision::kFp32, nullptr, {}, 64, prompt_.length + 3);
  const Made made = test::run(&pair, prompt_, greedy(), 50);
  EXPECT_EQ(made.stop, Stop::kContextFull);
  EXPECT_EQ(made.frames.size(), 4U);  // three steps of the talker lead to frames 1, 2 and 3
  const Made whole = run(greedy(), 4);
  EXPECT_EQ(made.frames, whole.frames);
  Pair small(test::small_model(), Precision::kFp32, nullptr, {}, 64, prompt_.length - 1);
  EXPECT_EQ(error_of([&] { test::run(&small, prompt_, greedy(), 50); }), "a sequence of 10 rows does not fit the context of 9");
}

TEST_F(Loop, SeedsAndTheirSamplers) {
  SpeechSampling sampling;
  sampling.top_k = 0;
  sampling.seed = 1;
  const std::vector<Frame> one = run(sampling, 6).frames;
  EXPECT_EQ(run(sampling, 6).frames, one);
  sampling.seed = 2;
  EXPECT_NE(run(sampling, 6).frames, one);
  sampling.seed = uint64_t{1} << 40 | 1;  // every bit counts
  EXPECT_NE(run(sampling, 6).frames, one);
  // A greedy talker takes no draw from the predictor's sampler, and the other way round.
  sampling.seed = 1;
  std::vector<std::vector<int32_t>> codes;
  for (const auto& [talker, seed] :
       {std::pair(true, uint64_t{1}), std::pair(false, uint64_t{1}), std::pair(false, uint64_t{1} << 40 | 1)}) {
    sampling.sample = talker;
    sampling.seed = seed;
    GeneratorHooks flat;
    codes.emplace_back();
    flat.predictor_logits = [](int64_t, int64_t, std::span<float> logits) { std::ranges::fill(logits, 0.0F); };
    flat.picked = [&](int64_t, int64_t codebook, int32_t id) {
      if (codebook > 0) codes.back().push_back(id);
    };
    run(sampling, 3, flat);
  }
  EXPECT_EQ(codes[0], codes[1]);
  EXPECT_NE(codes[1], codes[2]);
}

TEST_F(Loop, AGeneratorStartsAfresh) {
  Generator generator(&pair_->talker, &pair_->predictor);
  std::vector<std::vector<Frame>> runs(2);
  SpeechSampling sampling;
  sampling.seed = 3;
  for (std::vector<Frame>& frames : runs) {
    generator.start(prompt_, sampling, 5);
    while (const std::optional<Frame> frame = generator.next()) frames.push_back(*frame);
    EXPECT_EQ(generator.frames(), 5);
  }
  EXPECT_EQ(runs[0], runs[1]);
  // A penalty that remembered the first run would act on the first token of the second.
  std::vector<float> scores;
  GeneratorHooks hooks = always(7, 1.05F);
  hooks.talker_scores = [&](int64_t frame, std::span<const float> made) {
    if (frame == 0) scores.push_back(made[7]);
  };
  for (int i = 0; i < 2; ++i) {
    generator.start(prompt_, greedy(), 1, hooks);
    while (generator.next()) {
    }
  }
  EXPECT_EQ(scores, (std::vector<float>{1.05F, 1.05F}));
}

TEST_F(Loop, GreedyTakesTheLowestOfEqualLogits) {
  GeneratorHooks hooks;
  hooks.talker_logits = [](int64_t, std::span<float> logits) { std::ranges::fill(logits, 1.0F); };
  hooks.predictor_logits = [](int64_t, int64_t codebook, std::span<float> logits) {
    std::ranges::fill(logits, 0.0F);
    logits[static_cast<size_t>(codebook + 20)] = logits[static_cast<size_t>(codebook + 30)] = 3;
  };
  const Made made = run(greedy(), 2, hooks);
  for (size_t j = 1; j < 16; ++j) EXPECT_EQ(made.frames[0][j], static_cast<int32_t>(j) + 20);
  EXPECT_EQ(made.frames[0][0], 0);
  EXPECT_EQ(made.frames[1][0], 1);  // 0 has been penalised
}

TEST_F(Loop, OptionsOutOfRange) {
  const auto complaint = [&](auto change) {
    SpeechSampling sampling;
    change(&sampling);
    return error_of([&] { run(sampling, 1); });
  };
  const double nan = std::nan("");
  EXPECT_EQ(complaint([&](SpeechSampling* s) { s->temperature = -1; }), "temperature must be at least 0, not -1.000000");
  EXPECT_EQ(complaint([&](SpeechSampling* s) { s->temperature = nan; }), "temperature must be at least 0, not nan");
  EXPECT_EQ(complaint([&](SpeechSampling* s) { s->top_p = 0; }), "top-p must be above 0 and at most 1, not 0.000000");
  EXPECT_EQ(complaint([&](SpeechSampling* s) { s->top_k = -1; }), "top-k must be at least 0, not -1");
  EXPECT_NE(complaint([&](SpeechSampling* s) { s->repetition_penalty = 0; }), "");
  EXPECT_EQ(complaint([&](SpeechSampling* s) { s->predictor_top_p = 2; }),
            "sub-talker top-p must be above 0 and at most 1, not 2.000000");
  EXPECT_EQ(complaint([&](SpeechSampling* s) { s->predictor_top_k = -5; }), "sub-talker top-k must be at least 0, not -5");
  // What is out of range is so for a greedy run, too.
  EXPECT_NE(complaint([&](SpeechSampling* s) { s->sample = false, s->temperature = nan; }), "");
}

TEST_F(Loop, NumbersThatAreNone) {
  GeneratorHooks hooks;
  hooks.predictor_logits = [](int64_t frame, int64_t codebook, std::span<float> logits) {
    if (frame == 1 && codebook == 4) logits[3] = std::nanf("");
  };
  Generator generator(&pair_->talker, &pair_->predictor);
  generator.start(prompt_, greedy(), 5, hooks);
  EXPECT_TRUE(generator.next().has_value());
  EXPECT_EQ(error_of([&] { generator.next(); }), "frame 1, codebook 4: logit 3 is NaN");
  EXPECT_FALSE(generator.next().has_value());  // nothing follows
  hooks = {};
  hooks.forced = [](int64_t, int64_t codebook) -> std::optional<int32_t> { return codebook == 5 ? 256 : 0; };
  EXPECT_EQ(error_of([&] { run(greedy(), 1, hooks); }), "code 256 of codebook 5 is outside of 0..255");
  hooks.forced = [](int64_t, int64_t codebook) -> std::optional<int32_t> { return codebook == 15 ? -1 : 0; };
  EXPECT_EQ(error_of([&] { run(greedy(), 1, hooks); }), "code -1 of codebook 15 is outside of 0..255");
  hooks.forced = [](int64_t, int64_t) -> std::optional<int32_t> { return 256; };
  EXPECT_EQ(error_of([&] { run(greedy(), 1, hooks); }), "code 256 of codebook 0 is outside of 0..255");
}

TEST_F(Loop, TimesAreThoseOfTheLastFrame) {
  Generator generator(&pair_->talker, &pair_->predictor);
  EXPECT_FALSE(generator.next().has_value());  // before any start
  generator.start(prompt_, greedy(), 2);
  ASSERT_TRUE(generator.next().has_value());
  EXPECT_LT(generator.times().talker, 1e-4);  // the prefill has made the first row
  ASSERT_TRUE(generator.next().has_value());
  const FrameTimes& times = generator.times();
  double sum = 0;
  for (const double substep : times.substep) {
    EXPECT_GT(substep, 0);
    sum += substep;
  }
  EXPECT_NEAR(sum, times.predictor, 1e-6);
  EXPECT_GT(times.talker, 0);
  EXPECT_GT(times.sampling, 0);
  EXPECT_EQ(generator.frames(), 2);
}

// Golden distributions: what is drawn from after penalty, minimum, suppression, temperature, top-k and top-p.
TEST(GoldenSampling, WhatIsDrawnFrom) {
  const fs::path file = golden_path("golden/sampling.safetensors"), list = golden_path("golden/sampling.json");
  OMNI_NEEDS_GOLDEN(file);
  std::ifstream stream(list);
  const nlohmann::json cases = nlohmann::json::parse(stream);
  const omni_files::SafetensorsFile golden = test::open_golden(file);
  ASSERT_EQ(cases.size(), 8U);
  for (const nlohmann::json& one : cases) {
    std::string name = "c";
    name += std::to_string(one["case"].get<int>()) + '_';
    std::vector<float> logits = golden.at(name + "logits").as<float>();
    const std::vector<int64_t> seen = golden.at(name + "history").as<int64_t>();
    const std::vector<int32_t> history(seen.begin(), seen.end());
    const std::vector<float> expected = golden.at(name + "probs").as<float>();
    SpeechSampling sampling;
    sampling.repetition_penalty = one["repetition_penalty"];
    sampling.temperature = one["temperature"];
    sampling.top_k = one["top_k"];
    sampling.top_p = one["top_p"];
    TalkerConfig config;
    config.vocabulary = one["vocab"];
    config.eos = one["eos"];
    const CodecSampler sampler = CodecSampler::of_talker(sampling, config);
    sampler.score(history, logits);
    sampler.narrow(logits);
    const std::vector<float> found = probabilities(logits);
    ASSERT_EQ(found.size(), expected.size());
    int64_t kept = 0;
    for (size_t i = 0; i < found.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 1e-6) << name << i;
      kept += found[i] > 0 ? 1 : 0;
    }
    EXPECT_EQ(kept, one["kept"].get<int64_t>()) << name;
  }
}

// What is drawn has the probabilities of what is left, and nothing else is ever drawn.
TEST(CodecSamplerTest, DrawsAreOfTheDistribution) {
  SpeechSampling sampling;
  sampling.predictor_temperature = 0.7;
  sampling.predictor_top_k = 6;
  sampling.seed = 11;
  CodecSampler sampler = CodecSampler::of_predictor(sampling);
  std::vector<float> logits(200, -3.0F);
  for (size_t i = 0; i < 8; ++i) logits[20 * i + 5] = 0.3F * static_cast<float>(i);
  std::vector<float> narrowed = logits;
  sampler.narrow(narrowed);
  const std::vector<float> expected = probabilities(narrowed);
  std::vector<int> seen(logits.size());
  constexpr int kDraws = 40000;
  for (int i = 0; i < kDraws; ++i) {
    std::vector<float> copy = logits;
    ++seen[static_cast<size_t>(sampler.pick(copy))];
  }
  for (size_t i = 0; i < logits.size(); ++i) {
    EXPECT_NEAR(static_cast<double>(seen[i]) / kDraws, expected[i], 0.01) << i;
    EXPECT_TRUE(expected[i] > 0 || seen[i] == 0) << i;
  }
}

// A temperature that leaves nothing but the largest is greedy, as 0 is.
TEST(CodecSamplerTest, TemperatureZero) {
  for (const double temperature : {0.0, 1e-30}) {
    SpeechSampling sampling;
    sampling.predictor_temperature = temperature;
    CodecSampler sampler = CodecSampler::of_predictor(sampling);
    std::vector<float> logits = {1, 3, 2, 3};
    EXPECT_EQ(sampler.pick(logits), 1) << temperature;
  }
}

}  // namespace
}  // namespace ref::tts
