// SPDX-License-Identifier: Apache-2.0
// Synthetic models: the published shapes, packed and as checkpoints alike, with a tokenizer that the templates accept.
#include "reference/qwen3_tts/pack/synthetic.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "reference/pack/packer.h"
#include "reference/pack/synthetic_models.h"
#include "reference/qwen3_tts/model/text.h"
#include "reference/qwen3_tts/pack/parts.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/unpack_matrix.h"

namespace ref::tts {
namespace {

using omni_files::TemporaryDirectory;

constexpr const char* kTiny = "qwen3-tts-tiny";

// Weights of matrices and tables of a part.
int64_t weights_of(const Parts& parts, Part part, bool tables = false) {
  int64_t sum = 0;
  for (const PartMatrix& matrix : parts.matrices) sum += matrix.part == part && !tables ? matrix.n * matrix.k : 0;
  for (const PartPlain& plain : parts.plains) {
    sum += plain.part == part && tables && plain.role == PartPlain::Role::kRows ? plain.shape[0] * plain.shape[1] : 0;
  }
  return sum;
}

TEST(SyntheticSpeech, HasThePublishedSizes) {
  const Config small = read_config(synthetic_config("qwen3-tts-0.6b"), "small");
  const Parts parts = parts_of(small, true);
  EXPECT_EQ(weights_of(parts, Part::kTalker), 440401920);
  EXPECT_EQ(weights_of(parts, Part::kHead), 3072 * 1024);
  EXPECT_EQ(weights_of(parts, Part::kPredictor), 78643200);
  EXPECT_EQ(weights_of(parts, Part::kPredictorHead), 15 * 2048 * 1024);
  EXPECT_EQ(weights_of(parts, Part::kPredictorInput), 0);
  EXPECT_EQ(weights_of(parts, Part::kText, true), 151936 * 2048 + 3072 * 1024 + 15 * 2048 * 1024);
  EXPECT_NEAR(static_cast<double>(weights_of(parts, Part::kDecoder) + 16 * 2048 * 256), 114e6, 1e5);  // codebooks, too
  EXPECT_TRUE(small.speaker_encoder.has_value());

  const Config large = read_config(synthetic_config("qwen3-tts-1.7b-custom"), "large");
  const Parts large_parts = parts_of(large, true);
  EXPECT_EQ(weights_of(large_parts, Part::kTalker), int64_t{1409286144});
  EXPECT_EQ(weights_of(large_parts, Part::kPredictor), 78643200);
  EXPECT_EQ(weights_of(large_parts, Part::kPredictorInput), 1024 * 2048);
  EXPECT_EQ(weights_of(large_parts, Part::kSpeaker), 0);
  EXPECT_TRUE(large.takes_instruct());
  EXPECT_EQ(large.talker.speakers.size(), 9U);
  EXPECT_EQ(large.talker.dialects.at("dylan"), "beijing_dialect");
  EXPECT_EQ(large.talker.eos, 2150);
  for (const std::string& name : synthetic_names()) EXPECT_NO_THROW(read_config(synthetic_config(name), name)) << name;
}

// A model per option set, in a directory.
class Synthetic : public testing::Test {
 protected:
  std::filesystem::path packed(const PackOptions& options) {
    const std::filesystem::path path = directory_ / ("packed" + std::to_string(made_++));
    write_synthetic(synthetic_packed(kTiny, options), path, options, false, {}, nullptr);
    return path;
  }
  TemporaryDirectory directory_;
  int made_ = 0;
};

TEST_F(Synthetic, PackedIsWhatItsCheckpointPacksInto) {
  const PackOptions options{.weights = WeightType::kW4A8, .group = 32, .quantiser = Quantiser::kNearest};
  const auto made = load_packed(packed(options), WeightsMemory::kMapped, nullptr);
  write_synthetic(synthetic_checkpoint(kTiny), directory_ / "source", {}, false, {}, nullptr);
  PackResult result;
  const auto source = pack_in_memory(Checkpoint::open(directory_ / "source"), options, &result, {}, nullptr);
  EXPECT_TRUE(result.notes.empty()) << result.notes.front();
  EXPECT_EQ(made->config, source->config);
  ASSERT_EQ(made->matrices.size(), source->matrices.size());
  for (const auto& [name, matrix] : source->matrices) {
    const Matrix& other = made->matrix(name, matrix.layout.n, matrix.layout.k);
    EXPECT_EQ(other.layout.format, matrix.layout.format) << name;
    EXPECT_EQ(other.layout.scale_type, matrix.layout.scale_type) << name;
  }
  ASSERT_EQ(made->plains.size(), source->plains.size());
  for (const auto& [name, plain] : source->plains) {
    EXPECT_EQ(made->plain(name, plain.shape).type, plain.type) << name;
    for (const float value : widen(made->plain(name, plain.shape))) ASSERT_TRUE(std::isfinite(value)) << name;
  }
}

TEST_F(Synthetic, TheTokenizerHasTheTemplatesTokens) {
  const std::filesystem::path path = packed({});
  const Tokenizer tokenizer = load_tokenizer(path);
  const Config config = read_config(synthetic_config(kTiny), kTiny);
  const TextTemplates templates(tokenizer, config, kTiny);
  const std::vector<int32_t> ids = templates.text("Hi!", Tokenizer::AddedTokens::kAsText);
  EXPECT_EQ(ids.size(), 3U + 3U + 5U);
  EXPECT_EQ(templates.instruct("x", Tokenizer::AddedTokens::kAsText).size(), 6U);
  EXPECT_EQ(tokenizer.encode("\n"), std::vector<int32_t>{198});  // as in the published vocabulary
}

}  // namespace
}  // namespace ref::tts
