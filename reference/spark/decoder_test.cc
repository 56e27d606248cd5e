// SPDX-License-Identifier: Apache-2.0
// What a decoder does around its arithmetic: limits, memory, the gate, the head, what it tells.
#include "reference/spark/decoder.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <fstream>

#include "reference/spark/layer_runner.h"
#include "reference/spark/test_models.h"

namespace ref::spark {
namespace {

using nlohmann::json;
using omni_files::SafetensorsWriter;
using omni_files::TinySpark;
using test::error_of;
using test::load;
using test::Recorder;
using test::some_ids;
using test::with;

// AC-028.
TEST(Context, TakesExactlyWhatItHolds) {
  const auto model = load(TinySpark{});
  for (const size_t tokens : {31u, 32u, 33u}) {
    Decoder decoder(model, with(32, 512));
    std::vector<float> logits(80);
    const std::string error = error_of([&] { decoder.forward(some_ids(tokens, 80), Rows::kLast, logits); });
    EXPECT_EQ(error, tokens < 33 ? "" : "a sequence of 33 tokens does not fit the context of 32");
    EXPECT_EQ(decoder.position(), tokens < 33 ? static_cast<int64_t>(tokens) : 0);
    const int32_t next = 3;
    EXPECT_EQ(error_of([&] { decoder.forward({&next, 1}, Rows::kLast, logits); }).empty(), tokens != 32);
  }
}

TEST(Context, IdsOutsideOfTheVocabularyAppendNothing) {
  Decoder decoder(load(TinySpark{}), with(32, 4));
  std::vector<float> logits(80);
  for (const int32_t bad : {-1, 80, INT32_MAX, INT32_MIN}) {
    const std::vector<int32_t> ids = {1, 2, 3, 4, 5, bad};
    EXPECT_EQ(error_of([&] { decoder.forward(ids, Rows::kLast, logits); }),
              "token id " + std::to_string(bad) + " is outside of the vocabulary of 80");
    EXPECT_EQ(decoder.position(), 0);
  }
  EXPECT_NE(error_of([&] { decoder.forward(some_ids(2, 80), Rows::kAll, logits); }), "");
  decoder.forward({}, Rows::kLast, {});
  EXPECT_EQ(decoder.position(), 0);
}

uint64_t resident_bytes() {
  std::ifstream statm("/proc/self/statm");
  uint64_t size = 0, resident = 0;
  statm >> size >> resident;
  return resident * static_cast<uint64_t>(::sysconf(_SC_PAGESIZE));
}

// AC-029: tables and caches are those of the context in use, whatever the config says.
TEST(Context, MostPositionsOfTheConfigCostNothing) {
  TinySpark model;
  for (const int64_t most : {int64_t{1} << 20, int64_t{50'000'000}}) {
    json config = model.config();
    config["max_position_embeddings"] = most;
    const auto weights = load(config, model.weights());
    const uint64_t before = resident_bytes();
    Decoder decoder(weights, with(128, 512));
    decoder.forward(some_ids(128, 80), Rows::kNone, {});
    EXPECT_LT(resident_bytes(), before + (uint64_t{100} << 20));
  }
}

TEST(Context, ALongOneIsResidentAsFarAsItIsUsed) {
  const auto weights = load(TinySpark{});
  const uint64_t before = resident_bytes();
  Decoder decoder(weights, with(int64_t{1} << 20, 64));  // 128 MiB of keys and values in one full layer, 64 MiB of tables
  decoder.forward(some_ids(64, 80), Rows::kNone, {});
  EXPECT_LT(resident_bytes(), before + (uint64_t{40} << 20));
}

TEST(Context, MemoryIsAskedForBeforeItIsTaken) {
  TinySpark model;
  model.layers = 4;
  DecoderOptions options = with(100'000, 512);
  options.memory_limit = uint64_t{20} << 20;
  const std::string error = error_of([&] { Decoder(load(model), options); });
  // One full layer of 100,032 slots of 2 heads of 16 in fp32 (with padding 264 bytes), three rings of 576.
  EXPECT_NE(error.find("the KV cache of 100000 tokens takes 25.6 MiB (100.7 MiB if every layer kept the whole context)"),
            std::string::npos)
      << error;
  EXPECT_NE(error.find("20.0 MiB of memory is available"), std::string::npos) << error;
  EXPECT_NE(error_of([&] { Decoder(load(model), with(0, 1)); }), "");
  EXPECT_NE(error_of([&] { Decoder(load(model), with(int64_t{1} << 40, 1)); }), "");
  EXPECT_NE(error_of([&] { Decoder(load(model), with(10, 0)); }), "");
}

// AC-019: a gate of zero weights halves (sigmoid) or silences (silu) the attention.
TEST(Gate, OfZeroWeightsHalves) {
  TinySpark model;
  SafetensorsWriter tensors = model.weights();
  for (const char* layer : {"0", "1"}) {
    tensors.add("model.layers." + std::string(layer) + ".self_attn.g_proj.weight", "BF16", {4, 64}, std::vector<uint16_t>(4 * 64));
  }
  json config = model.config();
  for (const bool silu : {false, true}) {
    config["gate_attn_act_mode"] = silu ? "silu" : "sigmoid";
    for (const Precision precision : {Precision::kFp32, Precision::kDefault}) {
      Decoder decoder(load(config, tensors), with(64, 16, precision));
      Recorder recorder;
      decoder.forward(some_ids(20, 80), Rows::kNone, {}, &recorder);
      for (const std::string layer : {"layer.0.", "layer.1."}) {
        const std::vector<float>& before = recorder.tensors.at(layer + "attn");
        const std::vector<float>& after = recorder.tensors.at(layer + "attn_gated");
        ASSERT_EQ(before.size(), 20u * 64);
        ASSERT_EQ(after.size(), before.size());
        for (size_t i = 0; i < before.size(); ++i) ASSERT_EQ(after[i], silu ? 0.0F * before[i] : 0.5F * before[i]);
      }
    }
  }
}

// AC-021 and AC-022: a tied head is the embedding, with or without a tensor of its own in the file.
TEST(Head, TiedOrCopiedOrRedundantIsOneHead) {
  TinySpark model;
  model.vocabulary = 16;
  model.hidden = 8;
  std::vector<float> embedding = TinySpark::values(16 * 8, 99);
  for (size_t i = 0; i < 16; ++i) embedding[i * 8 + i % 8] += i < 8 ? 1.0F : -1.0F;
  SafetensorsWriter tied = model.weights();
  tied.add("model.embedding.weight", "F32", {16, 8}, embedding);
  SafetensorsWriter both = tied;
  both.add("lm_head.weight", "F32", {16, 8}, embedding);
  json untied = model.config();
  untied["tie_word_embeddings"] = false;
  const auto logits_of = [&](const std::shared_ptr<const ModelWeights>& weights, Recorder* recorder) {
    Decoder decoder(weights, with(32, 32));
    std::vector<float> logits(20 * 16);
    decoder.forward(some_ids(20, 16), Rows::kAll, logits, recorder);
    return logits;
  };
  Recorder recorder;
  const std::vector<float> expected = logits_of(load(model.config(), tied), &recorder);
  EXPECT_EQ(logits_of(load(untied, both), nullptr), expected);
  EXPECT_EQ(logits_of(load(model.config(), both), nullptr), expected);
  const std::vector<float>& hidden = recorder.tensors.at("final_norm");
  for (size_t row = 0; row < 20; ++row) {
    for (size_t id = 0; id < 16; ++id) {
      double sum = 0;
      for (size_t k = 0; k < 8; ++k) sum += static_cast<double>(hidden[row * 8 + k]) * static_cast<double>(embedding[id * 8 + k]);
      EXPECT_NEAR(expected[row * 16 + id], sum, 1e-5);
    }
  }
}

TEST(Head, ObservedBlocksAreTheLogits) {
  const auto model = load(TinySpark{});
  Decoder decoder(model, with(200, 150));
  std::vector<float> logits(150 * 80);
  decoder.forward(some_ids(150, 80), Rows::kAll, logits);
  decoder.reset();
  Recorder recorder;
  decoder.forward(some_ids(150, 80), Rows::kAll, {}, &recorder);
  EXPECT_EQ(recorder.tensors.at("logits"), logits);
}

TEST(Weights, OfAnotherShapeAreRefused) {
  const auto good = load(TinySpark{});
  const auto refused = [&](const std::function<void(ModelWeights&)>& change) {
    auto changed = std::make_shared<ModelWeights>(*good);
    change(*changed);
    return error_of([&] { Decoder(changed, with(32, 8)); });
  };
  const std::string out = "model.layers.1.self_attn.out_proj";
  EXPECT_NE(refused([&](ModelWeights& w) { w.matrices.erase(out); }).find(out), std::string::npos);
  EXPECT_NE(refused([&](ModelWeights& w) { w.matrices.at(out).layout.k = 32; }).find(out), std::string::npos);
  EXPECT_NE(refused([&](ModelWeights& w) { w.matrices.at(out).codes = w.matrices.at(out).codes.first(100); }).find(out),
            std::string::npos);
  EXPECT_NE(refused([&](ModelWeights& w) { w.plains.erase("model.norm.weight"); }).find("model.norm.weight"), std::string::npos);
  EXPECT_NE(refused([&](ModelWeights& w) { w.config["vocab_size"] = 96; }).find("lm_head"), std::string::npos);
  EXPECT_NE(refused([&](ModelWeights& w) { w.config["num_hidden_layers"] = 3; }).find("layer_types"), std::string::npos);
}

TEST(LayerRunner, GivesWhatTheDecoderSees) {
  TinySpark shape;
  shape.layers = 4;
  const auto model = load(shape);
  const std::vector<int32_t> ids = some_ids(50, 80);
  for (const Precision precision : {Precision::kFp32, Precision::kDefault}) {
    Decoder decoder(model, with(64, 16, precision));
    Recorder expected;
    decoder.forward(ids, Rows::kNone, {}, &expected);
    LayerRunner runner(model, with(64, 16, precision));
    std::vector<float> stream(ids.size() * 64);
    runner.embed(ids, stream);
    EXPECT_EQ(stream, expected.tensors.at("embed"));
    for (int64_t i = 0; i < 4; ++i) {
      const std::string layer = "layer." + std::to_string(i) + ".";
      runner.load(i);
      std::vector<float> twice = stream;
      Recorder inputs;
      runner.run(stream, &inputs);
      runner.run(twice, nullptr);  // windows do not see each other
      EXPECT_EQ(stream, expected.tensors.at(layer + "out"));
      EXPECT_EQ(twice, stream);
      for (const char* input : {"attn_norm", "attn_gated", "ffn_norm", "ffn_act"}) {
        EXPECT_EQ(inputs.tensors.at(layer + input), expected.tensors.at(layer + input)) << input;
      }
    }
  }
}

TEST(Describe, NamesEveryKindOnce) {
  TinySpark shape;
  shape.layers = 4;
  Decoder decoder(load(shape), with(64, 16));
  std::string all;
  for (const std::string& line : decoder.describe()) all += line + "\n";
  for (const char* part : {"q_k_v_proj (fp32 rows) w16.1", "attention, window 8: ", "attention, full: ", "rope of 16 of 16: ",
                           "rope of 4 of 16: ", "head gate: ", "geglu: ", "norm, residual added: ", "lm_head (fp32 rows) "}) {
    const size_t first = all.find(part);
    EXPECT_NE(first, std::string::npos) << part << " in\n" << all;
    EXPECT_EQ(all.find(part, first + 1), std::string::npos) << part;
  }
  // A token reads all matrices and gates once, and of the embedding its row.
  EXPECT_GT(decoder.weight_bytes_per_token(), 4u * (128 * 64 + 64 * 64 + 3 * 96 * 64) * 2 + 80 * 64 * 2);
  // Keys and values of 2 heads of 16 in fp32: three windows of 8 and a full layer.
  EXPECT_EQ(decoder.cache_bytes_at(0), 4u * 256);
  EXPECT_EQ(decoder.cache_bytes_at(40), (3u * 8 + 41) * 256);
}

}  // namespace
}  // namespace ref::spark
