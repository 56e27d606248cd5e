// SPDX-License-Identifier: Apache-2.0
// What becomes of a Qwen3-TTS checkpoint: every tensor of it against its definition, in every form.
#include <gtest/gtest.h>

#include <cmath>

#include "reference/qwen3_tts/pack/source_for_test.h"
#include "tests/support/unpack_matrix.h"

namespace ref::tts {
namespace {

using test::Expected;
using test::ExpectedModel;

const PackOptions kKeepAll{.weights = WeightType::kKeep, .head = HeadType::kKeep};

std::shared_ptr<const ModelWeights> pack(const Checkpoint& source, const PackOptions& options, PackResult* result = nullptr) {
  return pack_in_memory(source, options, result, {}, nullptr);
}

class GoldenModels : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    const std::filesystem::path path = test::source_path(GetParam());
    if (path.empty()) GTEST_SKIP() << "the golden is not here; OMNI_GOLDENS names the full set";
    source_ = std::make_unique<Checkpoint>(Checkpoint::open(path));
  }
  std::unique_ptr<Checkpoint> source_;
};
INSTANTIATE_TEST_SUITE_P(All, GoldenModels, testing::Values("base-tiny-bf16", "base-tiny", "custom-tiny", "design-tiny"),
                         [](const auto& info) { return std::regex_replace(info.param, std::regex("-"), "_"); });

TEST_P(GoldenModels, KeptMeansEveryValueInItsPlace) {
  PackResult result;
  const auto weights = pack(*source_, kKeepAll, &result);
  const ExpectedModel expected(*source_, true);
  EXPECT_EQ(weights->matrices.size(), expected.matrices.size());
  EXPECT_EQ(weights->plains.size(), expected.plains.size());
  for (const auto& [name, matrix] : expected.matrices) {
    EXPECT_EQ(unpack_matrix(weights->matrix(name, matrix.shape[0], matrix.shape[1])), matrix.values) << name;
  }
  for (const auto& [name, plain] : expected.plains) EXPECT_EQ(widen(weights->plain(name, plain.shape)), plain.values) << name;
  EXPECT_TRUE(result.notes.empty()) << result.notes.front();
}

}  // namespace
}  // namespace ref::tts
