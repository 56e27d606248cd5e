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

// The golden directory of that name: tests/data/spark, else the one that OMNI_GOLDENS has; empty when neither is there.
fs::path golden_directory(const std::string& name) {
  std::vector<fs::path> candidates = {fs::path(OMNI_TEST_DATA) / "spark" / name};
  if (const char* goldens = std::getenv("OMNI_GOLDENS")) candidates.push_back(fs::path(goldens) / "spark" / name);
  for (const fs::path& path : candidates) {
    if (fs::exists(path)) return path;
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

class GoldenModel : public testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    directory_ = golden_directory(GetParam());
    if (directory_.empty()) GTEST_SKIP() << "no golden directory " << GetParam() << " (OMNI_GOLDENS names the full set)";
  }
  fs::path directory_;
};

TEST_P(GoldenModel, EveryTensorInFp32) {
  DecoderOptions options;
  options.precision = Precision::kFp32;
  const ParityReport report = compare(load(directory_), directory_ / "golden_fp32.safetensors", options);
  const TensorParity* departure = report.first_departure(1e-4);
  EXPECT_EQ(departure, nullptr) << departure->name << " departs by " << departure->relative;
  ASSERT_NE(report.find("logits"), nullptr);
  EXPECT_LE(report.find("logits")->relative, 1e-5);
  EXPECT_LE(report.greedy_logits, 1e-4);
  EXPECT_EQ(report.greedy.size(), 24u);
  EXPECT_FALSE(report.first_other_token().has_value()) << "at step " << *report.first_other_token();
  RecordProperty("logits", std::to_string(report.find("logits")->relative));
}

TEST_P(GoldenModel, OfficialFlowInTheDefaultPrecision) {
  const ParityReport report = compare(load(directory_), directory_ / "golden_bf16.safetensors", {});
  ASSERT_NE(report.find("logits"), nullptr);
  EXPECT_LE(report.find("logits")->relative, 3e-2);
  RecordProperty("logits", std::to_string(report.find("logits")->relative));
  const ParityReport exact = compare(load(directory_), directory_ / "golden_fp32.safetensors", {});
  EXPECT_LE(exact.find("logits")->relative, 3e-2);
  RecordProperty("logits_fp32", std::to_string(exact.find("logits")->relative));
  RecordProperty("other_token", report.first_other_token() ? std::to_string(*report.first_other_token()) : "none");
}

INSTANTIATE_TEST_SUITE_P(Dense, GoldenModel, testing::Values("a", "b", "c", "d", "e", "f"));

}  // namespace
}  // namespace ref::spark
