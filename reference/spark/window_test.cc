// SPDX-License-Identifier: Apache-2.0
// Windows, rings and taking tokens back.
#include <gtest/gtest.h>

#include "reference/spark/decoder.h"
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

// A layer whose scores are all equal and whose value at position p is values[p], in every channel. Token p stands for position p:
// its embedding is one large number in place p, which the norm makes sqrt(hidden) exactly.
struct UniformAttention {
  static constexpr int64_t kHidden = 1024, kHeadDim = 16;

  static std::shared_ptr<const ModelWeights> make(int64_t window, const std::vector<float>& values) {
    TinySpark model;
    model.layers = 1;
    model.hidden = kHidden;
    model.vocabulary = kHidden;
    model.heads = 2;
    model.kv_heads = 1;
    model.head_dim = kHeadDim;
    model.gated = false;
    model.dtype = "F32";
    json config = model.config();
    config["sliding_window"] = window;
    config["layer_types"] = {"sliding_attention"};
    std::vector<float> embedding(kHidden * kHidden), ones(kHidden, 1.0F), qkv(4 * kHeadDim * kHidden);
    for (int64_t i = 0; i < kHidden; ++i) embedding[static_cast<size_t>(i * kHidden + i)] = 0x1p40F;
    for (int64_t row = 3 * kHeadDim; row < 4 * kHeadDim; ++row) {
      for (size_t p = 0; p < values.size(); ++p) qkv[static_cast<size_t>(row * kHidden) + p] = values[p] / 32;
    }
    SafetensorsWriter tensors = model.weights();
    tensors.add("model.embedding.weight", "F32", {kHidden, kHidden}, embedding);
    tensors.add("model.layers.0.input_layernorm.weight", "F32", {kHidden}, ones);
    tensors.add("model.layers.0.self_attn.q_k_v_proj.weight", "F32", {4 * kHeadDim, kHidden}, qkv);
    return load(config, tensors);
  }

  // The attention's output at every position, after checking that all channels agree.
  static std::vector<float> run(Decoder& decoder, const std::vector<size_t>& calls) {
    Recorder recorder;
    int32_t next = static_cast<int32_t>(decoder.position());
    for (const size_t count : calls) {
      std::vector<int32_t> ids(count);
      for (int32_t& id : ids) id = next++;
      decoder.forward(ids, Rows::kNone, {}, &recorder);
    }
    const std::vector<float>& all = recorder.tensors.at("layer.0.attn");
    std::vector<float> rows;
    for (size_t i = 0; i < all.size(); ++i) {
      if (i % (2 * kHeadDim) == 0) rows.push_back(all[i]);
      EXPECT_EQ(all[i], rows.back());
    }
    return rows;
  }
};

std::vector<float> count_up(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i);
  return values;
}

// AC-024: a query sees `window` keys, itself included.
TEST(Window, CountsTheTokenItself) {
  const auto model = UniformAttention::make(4, count_up(10));
  for (const Precision precision : {Precision::kFp32, Precision::kDefault}) {
    for (const int64_t chunk : {1, 5, 64}) {
      Decoder decoder(model, with(64, chunk, precision));
      const std::vector<float> out = UniformAttention::run(decoder, {10});
      EXPECT_EQ(out[3], 1.5F);
      EXPECT_EQ(out[4], 2.5F);
      Decoder one_by_one(model, with(64, chunk, precision));
      EXPECT_EQ(UniformAttention::run(one_by_one, std::vector<size_t>(10, 1)), out);
    }
  }
}

TEST(Window, Of512ForgetsTheFirstTokenExactly) {
  const auto model = UniformAttention::make(512, {1.0F});
  for (const int64_t chunk : {600, 100}) {
    Decoder decoder(model, with(1024, chunk));
    const std::vector<float> out = UniformAttention::run(decoder, {510, 1, 1, 1, 1});
    EXPECT_EQ(out[511], 1.0F / 512);
    EXPECT_EQ(out[512], 0.0F);
  }
}

// AC-026: a chunk of several rows must not overwrite keys that its first rows still see.
TEST(Window, RingHoldsAChunkAndTheWindowBeforeIt) {
  const auto model = UniformAttention::make(4, count_up(200));
  Decoder decoder(model, with(256, 6));
  std::vector<float> out = UniformAttention::run(decoder, {3, 6});
  EXPECT_EQ(std::vector<float>(out.begin() + 3, out.end()), (std::vector<float>{1.5F, 2.5F, 3.5F, 4.5F, 5.5F, 6.5F}));
  out = UniformAttention::run(decoder, {6, 6, 60, 1, 59, 50});  // round the ring, which has 64 slots
  for (size_t i = 0; i < out.size(); ++i) EXPECT_EQ(out[i], static_cast<float>(i + 9) - 1.5F);
}

// AC-025 for the model of the other tests; determinism_test has every form of weights.
TEST(Window, WrapsTheSameForEveryChunking) {
  const auto model = load(TinySpark{});
  const std::vector<int32_t> ids = some_ids(200, 80);
  std::vector<float> expected;
  for (const size_t step : {25u, 1u, 3u, 7u, 8u, 9u, 200u}) {
    Decoder decoder(model, with(200, 9));
    std::vector<float> logits(ids.size() * 80);
    for (size_t done = 0; done < ids.size();) {
      const size_t count = std::min(step, ids.size() - done);
      decoder.forward({&ids[done], count}, Rows::kAll, {&logits[done * 80], count * 80});
      done += count;
    }
    if (expected.empty()) expected = logits;
    EXPECT_EQ(logits, expected) << "calls of " << step;
  }
}

// AC-027: rewinding gives what a fresh run gives, or is refused.
TEST(Rewind, EqualsAFreshRunOrIsRefused) {
  const auto model = load(TinySpark{});  // windows of 8: 64 slots with chunks of up to 57
  const std::vector<int32_t> ids = some_ids(130, 80);
  const auto continued = [&](Decoder& decoder) {  // 20 other tokens
    std::vector<float> logits(80);
    decoder.forward({&ids[110], 20}, Rows::kLast, logits);
    return logits;
  };
  const auto fresh = [&](int64_t length) {
    Decoder decoder(model, with(200, 8));
    decoder.forward({ids.data(), static_cast<size_t>(length)}, Rows::kNone, {});
    return continued(decoder);
  };
  for (int64_t target = 0; target <= 100; ++target) {
    Decoder decoder(model, with(200, 8));
    decoder.forward({ids.data(), 100}, Rows::kNone, {});
    // 64 slots hold 36..99; position p sees p - 7 .. p - 1 besides itself.
    const bool resident = target == 0 || target - 7 >= 100 - 64;
    const std::string error = error_of([&] { decoder.rewind(target); });
    EXPECT_EQ(error.empty(), resident) << target << ": " << error;
    if (resident) {
      EXPECT_EQ(decoder.position(), target);
      EXPECT_EQ(continued(decoder), fresh(target)) << target;
    } else {
      EXPECT_NE(error.find("position " + std::to_string(target)), std::string::npos) << error;
      EXPECT_EQ(decoder.position(), 100);
      EXPECT_EQ(continued(decoder), fresh(100)) << "after a refusal";
    }
  }
}

TEST(Rewind, RefusesWhatIsNoPosition) {
  Decoder decoder(load(TinySpark{}), with(64, 8));
  decoder.forward(some_ids(5, 80), Rows::kNone, {});
  EXPECT_EQ(error_of([&] { decoder.rewind(6); }), "rewind to position 6: the sequence has 5 tokens");
  EXPECT_EQ(error_of([&] { decoder.rewind(-1); }), "rewind to position -1: the sequence has 5 tokens");
  decoder.reset();
  EXPECT_EQ(decoder.position(), 0);
}

}  // namespace
}  // namespace ref::spark
