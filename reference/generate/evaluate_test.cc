// SPDX-License-Identifier: Apache-2.0
#include "reference/generate/evaluate.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>

#include "reference/core/error.h"
#include "reference/generate/fake_model.h"

namespace ref {
namespace {

using testing::FakeModel;

std::vector<float> logs(std::vector<float> probability) {
  for (float& p : probability) p = std::log(p);
  return probability;
}

// Shifted, so that normalising shows.
FakeModel fixed(const std::vector<float>& probability, float shift, int64_t context = 100) {
  std::vector<float> logits = logs(probability);
  for (float& logit : logits) logit += shift;
  return {static_cast<int64_t>(logits.size()), context, [logits](const std::vector<int32_t>&) { return logits; }};
}

TEST(LogSumExp, IsStableAndRefusesWhatIsNoDistribution) {
  EXPECT_NEAR(log_sum_exp(std::vector<float>{1000, 1000}), 1000 + std::log(2.0), 1e-9);
  EXPECT_NEAR(log_sum_exp(std::vector<float>{-1000, -1000}), -1000 + std::log(2.0), 1e-9);
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(log_sum_exp(std::vector<float>{-infinity, 5}), 5);
  EXPECT_THROW(log_sum_exp(std::vector<float>{infinity, 1}), Error);
  EXPECT_THROW(log_sum_exp(std::vector<float>{1, std::nanf("")}), Error);
}

TEST(TopIds, LowestFirstAmongEquals) {
  EXPECT_EQ(top_ids(std::vector<float>{1, 3, 3, 0}, 3), (std::vector<int32_t>{1, 2, 0}));
  EXPECT_EQ(top_ids(std::vector<float>{1, 3}, 5), (std::vector<int32_t>{1, 0}));
}

TEST(Perplexity, ScoresAllButTheFirstOfEachWindow) {
  FakeModel model = fixed({0.5F, 0.25F, 0.25F}, 7);
  const std::vector<int32_t> ids = {0, 1, 0, 0, 2, 1, 0};  // windows 0 1 0 | 0 2 1 | 0, the last of one token
  const Perplexity result = perplexity(&model, ids, 3, {});
  EXPECT_EQ(result.tokens, 4);
  EXPECT_NEAR(result.sum, std::log(4.0) + std::log(2.0) + 2 * std::log(4.0), 1e-6);
  EXPECT_NEAR(result.value(), std::exp(result.sum / 4), 1e-12);
  EXPECT_EQ(model.resets, 2);
}

// What a window sees is its own tokens.
TEST(Perplexity, WindowsAreIndependent) {
  FakeModel model(8, 4, [](const std::vector<int32_t>& ids) {
    std::vector<float> logits(8, 0.0F);
    logits[static_cast<size_t>(std::accumulate(ids.begin(), ids.end(), 0)) % 8] = 50;  // the next id is the sum of all before
    return logits;
  });
  const std::vector<int32_t> ids = {1, 1, 2, 4, 2, 2, 4, 0};
  EXPECT_NEAR(perplexity(&model, ids, 4, {}).nll(), 0, 1e-9);
}

TEST(Perplexity, RefusesWhatScoresNothing) {
  FakeModel model = fixed({0.5F, 0.5F}, 0, 8);
  EXPECT_THROW(perplexity(&model, std::vector<int32_t>{1}, 4, {}), Error);
  EXPECT_THROW(perplexity(&model, std::vector<int32_t>{1, 1}, 1, {}), Error);
  EXPECT_THROW(perplexity(&model, std::vector<int32_t>{1, 1}, 9, {}), Error);
}

TEST(Perplexity, CanBeInterrupted) {
  FakeModel model = fixed({0.5F, 0.5F}, 0);
  EvaluateHooks hooks;
  int looks = 0;
  hooks.interrupted = [&] { return ++looks > 1; };
  const Perplexity result = perplexity(&model, std::vector<int32_t>(10, 1), 5, hooks);
  EXPECT_FALSE(result.complete);
  EXPECT_EQ(result.tokens, 4);
}

TEST(Compare, MeasuresTheDivergenceFromA) {
  FakeModel a = fixed({0.5F, 0.25F, 0.25F}, 3), b = fixed({0.25F, 0.5F, 0.25F}, -3);
  const Comparison result = compare(&a, &b, std::vector<int32_t>{0, 0, 1, 2}, 4, {});
  ASSERT_EQ(result.positions(), 3);
  EXPECT_NEAR(result.kl / 3, 0.5 * std::log(2.0) + 0.25 * std::log(0.5), 1e-6);
  EXPECT_EQ(result.top1, 0);
  EXPECT_EQ(result.top5, 9);  // all three of both
  EXPECT_NEAR(result.a.sum, std::log(2.0) + 2 * std::log(4.0), 1e-6);
  EXPECT_NEAR(result.b.sum, std::log(2.0) + 2 * std::log(4.0), 1e-6);
  EXPECT_EQ(compare(&a, &a, std::vector<int32_t>{0, 0, 1, 2}, 4, {}).kl, 0);
}

TEST(Compare, CountsWhatBothFavour) {
  const auto favouring = [](int shift) {
    return FakeModel(20, 100, [shift](const std::vector<int32_t>&) {
      std::vector<float> logits(20, 0.0F);
      for (size_t i = 0; i < 5; ++i) logits[i + static_cast<size_t>(shift)] = 10 - static_cast<float>(i);
      return logits;
    });
  };
  FakeModel a = favouring(0), b = favouring(2);
  const Comparison result = compare(&a, &b, std::vector<int32_t>(11, 1), 11, {});
  EXPECT_EQ(result.top5, 3 * 10);
  EXPECT_EQ(result.top1, 0);
}

TEST(Compare, RefusesOtherVocabularies) {
  FakeModel a = fixed({0.5F, 0.5F}, 0), b = fixed({0.5F, 0.25F, 0.25F}, 0);
  EXPECT_THROW(compare(&a, &b, std::vector<int32_t>{0, 0}, 2, {}), Error);
}

TEST(Fidelity, CountsTokensUpToTheFirstDifference) {
  const auto counting = [](int64_t different) {
    return FakeModel(16, 100, [different](const std::vector<int32_t>& ids) {
      std::vector<float> logits(16, 0.0F);
      logits[static_cast<size_t>(static_cast<int64_t>(ids.size()) == different ? 0 : (ids.back() + 1) % 16)] = 1;
      return logits;
    });
  };
  FakeModel a = counting(-1), b = counting(7), same = counting(-1);
  const std::vector<int32_t> ids(40, 3);
  const Fidelity whole = greedy_fidelity(&a, &same, ids, 3, 4, 6, {});
  EXPECT_EQ(whole.prompts, 3);
  EXPECT_EQ(whole.whole, 3);
  EXPECT_EQ(whole.agreed, 18);
  const Fidelity part = greedy_fidelity(&a, &b, ids, 3, 4, 6, {});  // token 4 of each differs: prompt 4, then 3 equal ones
  EXPECT_EQ(part.agreed, 9);
  EXPECT_EQ(part.tokens, 18);
  EXPECT_EQ(part.whole, 0);
}

}  // namespace
}  // namespace ref
