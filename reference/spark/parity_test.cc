// SPDX-License-Identifier: Apache-2.0
// Golden checkpoints end to end: every stored tensor, all logits, and greedy decoding through the caches.
#include "reference/spark/parity.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "reference/io/checkpoint.h"
#include "reference/pack/packer.h"

namespace ref::spark {
namespace {

namespace fs = std::filesystem;

// The file of that path in tests/data/spark, else where OMNI_GOLDENS has it; empty when it is in neither.
fs::path golden_path(const std::string& path) {
  std::vector<fs::path> candidates = {fs::path(OMNI_TEST_DATA) / "spark" / path};
  if (const char* goldens = std::getenv("OMNI_GOLDENS")) candidates.push_back(fs::path(goldens) / "spark" / path);
  for (const fs::path& each : candidates) {
    if (fs::exists(each)) return each;
  }
  return {};
}

std::shared_ptr<const ModelWeights> load(const fs::path& directory, WeightType type = WeightType::kKeep,
                                         HeadType head = HeadType::kKeep) {
  PackOptions options;
  options.weights = type;
  options.head = head;
  return pack_in_memory(Checkpoint::open(directory), options, nullptr, {}, nullptr);
}

ParityReport compare(std::shared_ptr<const ModelWeights> weights, const fs::path& golden, DecoderOptions options) {
  options.context = 256;
  Decoder decoder(std::move(weights), options);
  return compare_with_golden(decoder, omni_files::SafetensorsFile::open(golden));
}

// A checkpoint and its goldens, which several checkpoints may share.
struct GoldenCase {
  const char *checkpoint, *fp32, *bf16;
};

class GoldenModel : public testing::TestWithParam<GoldenCase> {
 protected:
  static std::shared_ptr<const ModelWeights> weights(WeightType type = WeightType::kKeep) {
    const fs::path directory = golden_path(GetParam().checkpoint);
    return directory.empty() ? nullptr : load(directory, type);
  }
};

void PrintTo(const GoldenCase& golden, std::ostream* out) { *out << golden.checkpoint; }

#define NEEDS(weights, golden) \
  if (!(weights) || (golden).empty()) GTEST_SKIP() << GetParam().checkpoint << " is not here; OMNI_GOLDENS names the full set"

TEST_P(GoldenModel, EveryTensorInFp32) {
  const std::shared_ptr<const ModelWeights> model = weights();
  const fs::path golden = golden_path(GetParam().fp32);
  NEEDS(model, golden);
  DecoderOptions options;
  options.precision = Precision::kFp32;
  const ParityReport report = compare(model, golden, options);
  const TensorParity* departure = report.first_departure(1e-4);
  EXPECT_EQ(departure, nullptr) << departure->name << " departs by " << departure->relative;
  ASSERT_NE(report.find("logits"), nullptr);
  EXPECT_LE(report.find("logits")->relative, 1e-5);
  EXPECT_LE(report.greedy_logits, 1e-5);
  EXPECT_EQ(report.greedy.size(), 24u);
  EXPECT_FALSE(report.first_other_token().has_value()) << "at step " << *report.first_other_token();
  RecordProperty("logits", std::to_string(report.find("logits")->relative));
}

TEST_P(GoldenModel, DefaultPrecision) {
  const std::shared_ptr<const ModelWeights> model = weights();
  const fs::path golden = golden_path(GetParam().fp32);
  NEEDS(model, golden);
  const ParityReport report = compare(model, golden, {});
  ASSERT_NE(report.find("logits"), nullptr);
  EXPECT_LE(report.find("logits")->relative, 2e-2);
  RecordProperty("logits", std::to_string(report.find("logits")->relative));
}

// The official flow rounds to bf16 where this decoder keeps fp32, and knows int4 weights only as bf16.
TEST_P(GoldenModel, OfficialFlow) {
  if (GetParam().bf16 == nullptr) GTEST_SKIP() << "no golden of the official flow for " << GetParam().checkpoint;
  const std::shared_ptr<const ModelWeights> model = weights(WeightType::kBf16);
  const fs::path golden = golden_path(GetParam().bf16);
  NEEDS(model, golden);
  const ParityReport report = compare(model, golden, {});
  ASSERT_NE(report.find("logits"), nullptr);
  EXPECT_LE(report.find("logits")->relative, 3e-2);
  RecordProperty("logits", std::to_string(report.find("logits")->relative));
  RecordProperty("token", report.first_other_token() ? std::to_string(*report.first_other_token()) : "none");
}

INSTANTIATE_TEST_SUITE_P(Dense, GoldenModel,
                         testing::Values(GoldenCase{"a", "a/golden_fp32.safetensors", "a/golden_bf16.safetensors"},
                                         GoldenCase{"b", "b/golden_fp32.safetensors", "b/golden_bf16.safetensors"},
                                         GoldenCase{"c", "c/golden_fp32.safetensors", "c/golden_bf16.safetensors"},
                                         GoldenCase{"d", "d/golden_fp32.safetensors", "d/golden_bf16.safetensors"},
                                         GoldenCase{"e", "e/golden_fp32.safetensors", "e/golden_bf16.safetensors"},
                                         GoldenCase{"f", "f/golden_fp32.safetensors", "f/golden_bf16.safetensors"}));

INSTANTIATE_TEST_SUITE_P(
    Int4, GoldenModel,
    testing::Values(GoldenCase{"a_int4/gptq", "a_int4/golden_fp32.safetensors", "a_int4/golden_bf16.safetensors"},
                    GoldenCase{"a_int4/gptq_v2", "a_int4/golden_fp32.safetensors", "a_int4/golden_bf16.safetensors"},
                    GoldenCase{"a_int4/gptq_actorder", "a_int4/golden_actorder_fp32.safetensors", nullptr},
                    GoldenCase{"a_int4/compressed-tensors", "a_int4/golden_fp32.safetensors", "a_int4/golden_bf16.safetensors"},
                    GoldenCase{"d_int4/gptq", "d_int4/golden_fp32.safetensors", "d_int4/golden_bf16.safetensors"},
                    GoldenCase{"d_int4/compressed-tensors", "d_int4/golden_fp32.safetensors", "d_int4/golden_bf16.safetensors"}));

}  // namespace
}  // namespace ref::spark
