// SPDX-License-Identifier: Apache-2.0
// What a checkpoint holds besides, or lacks: heads, gates, leftovers.
#include <gtest/gtest.h>

#include "reference/core/error.h"
#include "reference/pack/packer.h"
#include "tests/support/int4_checkpoint.h"
#include "tests/support/temporary_directory.h"
#include "tests/support/tiny_spark.h"
#include "tests/support/unpack_matrix.h"

namespace ref {
namespace {

using nlohmann::json;
using omni_files::SafetensorsWriter;
using omni_files::TemporaryDirectory;
using omni_files::TinySpark;

struct Packed {
  std::shared_ptr<const ModelWeights> weights;
  PackResult result;
  std::string error;
};

Packed pack(const json& config, const SafetensorsWriter& writer,
            PackOptions options = {.weights = WeightType::kKeep, .head = HeadType::kKeep}) {
  const TemporaryDirectory directory;
  TinySpark::write(directory / "m", config, writer);
  Packed packed;
  try {
    packed.weights = pack_in_memory(Checkpoint::open(directory / "m"), options, &packed.result, {}, nullptr);
  } catch (const Error& error) {
    packed.error = error.what();
  }
  return packed;
}

int notes_with(const Packed& packed, const std::string& text) {
  return static_cast<int>(
      std::ranges::count_if(packed.result.notes, [&](const auto& note) { return note.find(text) != note.npos; }));
}

bool same_weights(const ModelWeights& a, const ModelWeights& b) {
  if (a.matrices.size() != b.matrices.size() || a.plains.size() != b.plains.size()) return false;
  for (const auto& [name, matrix] : a.matrices) {
    if (!std::ranges::equal(matrix.codes, b.matrices.at(name).codes)) return false;
  }
  return true;
}

// AC-020: whatever form the gate comes in, it is dense, and the report says so.
TEST(PackerNotes, GatesStayDenseWhateverTheirRows) {
  for (const int64_t heads : {16, 20, 24}) {
    const TinySpark tiny{.layers = 1, .hidden = 256, .heads = heads, .kv_heads = 4, .head_dim = 8};
    const std::string gate = "model.layers.0.self_attn.g_proj";
    const Packed dense = pack(tiny.config(), tiny.weights(), {.weights = WeightType::kW4A16, .group = 32});
    ASSERT_NE(dense.weights, nullptr) << dense.error;
    EXPECT_EQ(dense.weights->plain(gate + ".weight", {heads, 256}).type, OMNI_DTYPE_BF16);
    EXPECT_EQ(notes_with(dense, "g_proj stays dense (bf16)"), 1);

    const auto module = omni_files::Int4Module::varied(heads, 256, 32, false);
    SafetensorsWriter writer = tiny.weights();
    writer.remove(gate + ".weight");
    add_compressed_tensors(&writer, gate, module);
    json config = tiny.config();
    config["quantization_config"] = {
        {"quant_method", "compressed-tensors"},
        {"format", "pack-quantized"},
        {"config_groups",
         {{"group_0",
           {{"targets", {"Linear"}},
            {"weights", {{"num_bits", 4}, {"type", "int"}, {"symmetric", false}, {"strategy", "group"}, {"group_size", 32}}}}}}}};
    const Packed int4 = pack(config, writer, {.weights = WeightType::kW4A16, .group = 32});
    ASSERT_NE(int4.weights, nullptr) << int4.error;
    const std::vector<float> values = widen(int4.weights->plain(gate + ".weight", {heads, 256}));
    for (int64_t i = 0; i < heads * 256; ++i) {
      // Scales of the file are bf16: the top half of the given ones.
      const float scale = widen_bf16(static_cast<uint16_t>(std::bit_cast<uint32_t>(module.scale(i / 256, i % 256 / 32)) >> 16));
      const auto steps = static_cast<float>(module.code(i / 256, i % 256) - module.zero(i / 256, i % 256 / 32));
      ASSERT_EQ(values[static_cast<size_t>(i)], steps * scale) << i;
    }
    EXPECT_EQ(notes_with(int4, "g_proj stays dense (fp32)"), 1);
  }
}

TEST(PackerNotes, ATiedHeadNeedsNoTensorOfItsOwn) {  // AC-021
  const TinySpark tied, untied{.tied = false};
  SafetensorsWriter copied = tied.weights();
  copied.add("lm_head.weight", "BF16", {80, 64}, std::vector<uint16_t>(80 * 64));
  tied.add(copied, "lm_head.weight", {80, 64}, 1);  // the embedding's seed
  const Packed a = pack(tied.config(), tied.weights()), b = pack(untied.config(), copied);
  ASSERT_NE(a.weights, nullptr) << a.error;
  ASSERT_NE(b.weights, nullptr) << b.error;
  EXPECT_EQ(unpack_matrix(a.weights->matrix("lm_head", 80, 64)), unpack_matrix(b.weights->matrix("lm_head", 80, 64)));
  EXPECT_TRUE(a.result.notes.empty());
}

TEST(PackerNotes, AnUntiedHeadThatIsAbsentIsAnError) {
  const TinySpark tied, untied{.tied = false};
  const Packed packed = pack(untied.config(), tied.weights());
  EXPECT_NE(packed.error.find("has no tensor \"lm_head.weight\", and its config does not tie"), std::string::npos) << packed.error;
}

TEST(PackerNotes, AHeadBesideATiedEmbeddingIsRedundant) {  // AC-022
  const TinySpark tied;
  SafetensorsWriter writer = tied.weights();
  tied.add(writer, "lm_head.weight", {80, 64}, 77);
  const Packed plain = pack(tied.config(), tied.weights()), more = pack(tied.config(), writer);
  ASSERT_NE(more.weights, nullptr) << more.error;
  EXPECT_TRUE(same_weights(*plain.weights, *more.weights));
  EXPECT_EQ(notes_with(more, "lm_head.weight is redundant"), 1);
  EXPECT_EQ(more.result.notes.size(), 1U);
}

TEST(PackerNotes, LeftoversAreIgnoredNotedOrRefused) {  // AC-023
  const TinySpark tiny;
  SafetensorsWriter rotary = tiny.weights();
  rotary.add("model.layers.0.self_attn.rotary_emb.inv_freq", "F32", {4}, std::vector<float>(4, 1));
  const Packed plain = pack(tiny.config(), tiny.weights()), first = pack(tiny.config(), rotary);
  ASSERT_NE(first.weights, nullptr) << first.error;
  EXPECT_TRUE(same_weights(*plain.weights, *first.weights));
  EXPECT_TRUE(first.result.notes.empty());

  SafetensorsWriter unknown = tiny.weights();
  unknown.add("foo.bar", "F32", {1}, std::vector<float>(1, 1));
  const Packed second = pack(tiny.config(), unknown);
  ASSERT_NE(second.weights, nullptr) << second.error;
  EXPECT_EQ(notes_with(second, "tensor \"foo.bar\" is no part of the model and was left out"), 1);
  const Packed strict = pack(tiny.config(), unknown, {.weights = WeightType::kKeep, .head = HeadType::kKeep, .strict = true});
  EXPECT_TRUE(strict.error.ends_with("tensor \"foo.bar\" is no part of the model")) << strict.error;

  json config = tiny.config();
  config["layer_types"].erase(1);
  EXPECT_NE(pack(config, tiny.weights()).error.find("\"layer_types\" has 1 entries for 2 layers"), std::string::npos);
}

TEST(PackerNotes, ManyLeftoversAreCounted) {
  const TinySpark tiny;
  SafetensorsWriter writer = tiny.weights();
  for (int i = 0; i < 30; ++i) writer.add("foo." + std::to_string(i), "F32", {1}, std::vector<float>(1, 1));
  const Packed packed = pack(tiny.config(), writer);
  EXPECT_EQ(packed.result.notes.size(), 9U);
  EXPECT_EQ(notes_with(packed, "22 more such tensors"), 1);
}

// A bias that the config does not know changes nothing, so the user hears of it.
TEST(PackerNotes, ABiasThatTheConfigDeniesIsNoted) {
  const TinySpark tiny;
  SafetensorsWriter writer = tiny.weights();
  tiny.add(writer, "model.layers.0.mlp.down_proj.bias", {64}, 5);
  EXPECT_EQ(notes_with(pack(tiny.config(), writer), "down_proj.bias\" is no part of the model"), 1);
}

TEST(PackerNotes, ShapesFollowTheConfig) {
  const TinySpark tiny;
  json config = tiny.config();
  config["intermediate_size"] = 1 << 24;
  const Packed wide = pack(config, tiny.weights());
  EXPECT_NE(wide.error.find("gate_proj.weight\" "), std::string::npos) << wide.error;
  config = tiny.config();
  config["model_type"] = "llama";
  EXPECT_NE(pack(config, tiny.weights()).error.find("\"llama\" is not known here"), std::string::npos);
  config = tiny.config();
  config["num_hidden_layers"] = 3;
  config["layer_types"].push_back("full_attention");
  EXPECT_NE(pack(config, tiny.weights()).error.find("model.layers.2."), std::string::npos);
}

}  // namespace
}  // namespace ref
