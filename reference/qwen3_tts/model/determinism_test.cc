// SPDX-License-Identifier: Apache-2.0
// A run has one set of bits for each form of the weights: on every tier, for any threads and any cut of the prompt, watched or not.
// The SHA-256 of all logits and frames is kept here, so that it also holds over time.
#include <gtest/gtest.h>

#include "reference/pack/sha256.h"
#include "reference/qwen3_tts/model/test_models.h"
#include "tests/support/threads.h"

namespace ref::tts {
namespace {

using test::golden_path;
using test::Pair;

struct Form {
  const char* name;
  WeightType weights;
  HeadType head;
  Precision precision;
  const char* digest;
};
void PrintTo(const Form& form, std::ostream* out) { *out << form.name; }

constexpr int64_t kFrames = 8;

// Of the prompt's rows, every logit that was picked from, and the frames; codes are drawn, not the largest.
std::string digest_of(Pair* pair, const GoldenRequest& request, Observer* observer = nullptr) {
  Sha256 sha;
  const auto add = [&](std::span<const float> values) { sha.add(std::as_bytes(values)); };
  const Prompt prompt = pair->talker.prompt(request.request());
  add(prompt.rows);
  add(prompt.trailing);
  GeneratorHooks hooks;
  hooks.observer = observer;
  hooks.talker_logits = [&](int64_t, std::span<float> logits) { add(logits); };
  hooks.predictor_logits = [&](int64_t, int64_t, std::span<float> logits) { add(logits); };
  SpeechSampling sampling;
  sampling.seed = 5;
  const test::Made made = test::run(pair, prompt, sampling, kFrames, hooks);
  EXPECT_EQ(static_cast<int64_t>(made.frames.size()), kFrames);
  for (const Frame& frame : made.frames) sha.add(std::as_bytes(std::span(frame)));
  return sha.finish();
}

class SpeechDeterminism : public testing::TestWithParam<Form> {
 protected:
  void SetUp() override {
    if (golden_path(test::kSmallGolden).empty()) GTEST_SKIP() << "the golden is not here; OMNI_GOLDENS names the full set";
    weights_ = test::small_model(GetParam().weights, GetParam().head);
  }
  // Whole text in the prompt, so that it is long.
  std::string run(const omni_parallel* parallel = nullptr, const std::string& isa = {}, int64_t chunk = 64,
                  Observer* observer = nullptr) const {
    Pair pair(weights_, GetParam().precision, parallel, isa, chunk);
    GoldenRequest request = read_golden_request(pair.talker, test::open_golden(golden_path(test::kSmallGolden)));
    request.streaming_text = false;
    return digest_of(&pair, request, observer);
  }

  std::shared_ptr<const ModelWeights> weights_;
};

TEST_P(SpeechDeterminism, TheKeptBits) { EXPECT_EQ(run(), GetParam().digest); }

TEST_P(SpeechDeterminism, ThreadsTiersAndChunks) {
  const std::string digest = run();
  const omni_parallel reversed = okl::test::backwards(3);
  EXPECT_EQ(run(&reversed), digest);
  for (const uint32_t threads : {1U, 2U, 5U}) {
    const omni_parallel fresh = okl::test::fresh_threads(&threads);
    EXPECT_EQ(run(&fresh), digest) << threads << " threads";
  }
  for (const char* isa : {"avx2", "avxvnni", "avx512f", "avx512vnni", "avx512bf16", "amxint8"}) {
    EXPECT_EQ(run(nullptr, isa), digest) << isa;
  }
  for (const int64_t chunk : {1, 2, 7, 30}) EXPECT_EQ(run(nullptr, {}, chunk), digest) << "chunks of " << chunk;
}

// An observer sees rows of the last layer that nobody else asks for.
TEST_P(SpeechDeterminism, WatchedOrNot) {
  class Nothing final : public Observer {
   public:
    void tensor(const std::string& name, int64_t, int64_t rows, int64_t, omni_dtype, const void*, int64_t) override {
      if (name == "talker.hidden") seen += rows;
    }
    int64_t seen = 0;
  } observer;
  EXPECT_EQ(run(nullptr, {}, 7, &observer), run());
  EXPECT_GT(observer.seen, 30);
}

INSTANTIATE_TEST_SUITE_P(Forms, SpeechDeterminism,
                         testing::Values(Form{"fp32", WeightType::kKeep, HeadType::kKeep, Precision::kFp32,
                                              "1bdc66197cba45fe20077a6fc9f317a0be6d6fc866c8d3b79f8a9981c3d78e78"},
                                         Form{"bf16", WeightType::kKeep, HeadType::kKeep, Precision::kDefault,
                                              "ab7bf4a4ad81dc7019a06c1890a8bb30388ead477b7e58526793e17659005d0c"},
                                         Form{"W8A8", WeightType::kW8A8, HeadType::kW8, Precision::kDefault,
                                              "5dd1792adfac6be579936d443ac24afedd5525b7af8d03d4d849e49ae80f3357"},
                                         Form{"W4A8", WeightType::kW4A8, HeadType::kW8, Precision::kDefault,
                                              "39d9388d4fbb93675f4badb23aeb8f2f9f4e0709da9ffb4153fe53838d761b9c"},
                                         Form{"W4A16", WeightType::kW4A16, HeadType::kBf16, Precision::kDefault,
                                              "1c91e54f1974e6cad739f7add994ae56fa9ef0b35f2ae2a72bdbb9b599d2f083"}));

}  // namespace
}  // namespace ref::tts
