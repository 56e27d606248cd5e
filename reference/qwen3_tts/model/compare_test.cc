// SPDX-License-Identifier: Apache-2.0
// Agreement of two forms of the weights under teacher forcing.
#include "reference/qwen3_tts/model/compare.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "reference/core/memory.h"
#include "reference/qwen3_tts/model/test_models.h"

namespace ref::tts {
namespace {

using test::error_of;
using test::golden_path;
using test::Pair;

class Compare : public testing::Test {
 protected:
  void SetUp() override {
    if (golden_path(test::kSmallGolden).empty()) GTEST_SKIP() << "the golden is not here; OMNI_GOLDENS names the full set";
    reference_.emplace(test::small_model());
    request_ = read_golden_request(reference_->talker, test::open_golden(golden_path(test::kSmallGolden)));
  }
  static SpeechModel borrow(Pair* pair) { return {&pair->talker, &pair->predictor}; }
  CompareReport compare(Pair* candidate) {
    return compare_models(borrow(&*reference_), borrow(candidate), request_.request(), request_.frames);
  }

  std::optional<Pair> reference_;
  GoldenRequest request_;
};

TEST_F(Compare, AModelAgreesWithItsTwin) {
  Pair twin(test::small_model());
  const CompareReport report = compare(&twin);
  const auto steps = static_cast<int64_t>(request_.frames.size());
  for (const Agreement& codebook : report.codebooks) {
    EXPECT_EQ(codebook.steps, steps);
    EXPECT_EQ(codebook.top1, 1);
    EXPECT_EQ(codebook.top5, 1);
    EXPECT_EQ(codebook.kl, 0);
  }
  EXPECT_EQ(report.others.steps, 15 * steps);
  EXPECT_EQ(report.others.top1, 1);
}

TEST_F(Compare, FewerBitsAgreeLess) {
  Pair eight(test::small_model(WeightType::kW8A8, HeadType::kW8), Precision::kDefault);
  Pair four(test::small_model(WeightType::kW4A8, HeadType::kW4), Precision::kDefault);
  const CompareReport near = compare(&eight), far = compare(&four);
  EXPECT_GT(near.others.kl, 0);
  EXPECT_LT(near.others.kl, 0.05);
  EXPECT_GT(far.others.kl, 5 * near.others.kl);
  EXPECT_GT(near.others.top1, far.others.top1);
  EXPECT_GE(far.others.top5, far.others.top1);
  EXPECT_LT(near.codebooks[0].kl, far.codebooks[0].kl);
}

// A head of zeros ranks by number and says nothing: log V minus the entropy of what the golden's logits say.
TEST_F(Compare, AHeadOfZeros) {
  auto changed = std::make_shared<ModelWeights>(*test::small_model());
  Matrix& head = changed->matrices.at("talker.code_predictor.lm_head.3");
  const Memory zeros(head.codes.size());
  head.codes = {zeros.data(), zeros.size()};
  Pair candidate(changed);
  const CompareReport report = compare(&candidate);
  const std::vector<float> golden = test::open_golden(golden_path(test::kSmallGolden)).at("cp_logits").as<float>();
  double divergence = 0, first = 0, fifth = 0;
  for (size_t i = 0; i < request_.frames.size(); ++i) {
    const float* logits = golden.data() + (i * 15 + 3) * 256;
    double sum = 0, mean = 0;
    for (size_t c = 0; c < 256; ++c) sum += std::exp(static_cast<double>(logits[c]));
    for (size_t c = 0; c < 256; ++c) mean += std::exp(static_cast<double>(logits[c])) / sum * static_cast<double>(logits[c]);
    divergence += std::log(256) - (std::log(sum) - mean);
    const auto best = std::max_element(logits, logits + 256) - logits;
    first += best == 0 ? 1 : 0;
    fifth += best < 5 ? 1 : 0;
  }
  const auto frames = static_cast<double>(request_.frames.size());
  EXPECT_NEAR(report.codebooks[4].kl, divergence / frames, 1e-4);
  EXPECT_NEAR(report.codebooks[4].top1, first / frames, 1e-12);
  EXPECT_NEAR(report.codebooks[4].top5, fifth / frames, 1e-12);
  for (const size_t other : {0U, 3U, 5U, 15U}) EXPECT_EQ(report.codebooks[other].kl, 0) << other;
  EXPECT_NEAR(report.others.kl, report.codebooks[4].kl / 15, 1e-12);
  Pair twin(test::small_model());
  const std::vector<CompareReport> parts = {report, compare(&twin)};
  EXPECT_NEAR(merge(parts).codebooks[4].kl, report.codebooks[4].kl / 2, 1e-12);
  EXPECT_EQ(merge(parts).others.steps, 2 * report.others.steps);
}

TEST_F(Compare, FramesOfAModel) {
  EXPECT_EQ(make_frames(borrow(&*reference_), request_.request(), test::greedy(), 13), request_.frames);
  EXPECT_EQ(make_frames(borrow(&*reference_), request_.request(), test::greedy(), 2).size(), 2U);
}

TEST_F(Compare, NotInStepWithItself) {
  EXPECT_EQ(error_of([&] { compare(&*reference_); }), "a model cannot be compared in step with itself");
}

}  // namespace
}  // namespace ref::tts
