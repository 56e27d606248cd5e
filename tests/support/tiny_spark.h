// SPDX-License-Identifier: Apache-2.0
// A small Spark-X2.5 checkpoint of random weights, for tests that then change one thing in it.
#pragma once

#include <bit>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/support/safetensors_writer.h"

namespace omni_files {

struct TinySpark {
  int64_t layers = 2, hidden = 64, intermediate = 96, heads = 4, kv_heads = 2, head_dim = 16, vocabulary = 80;
  bool tied = true, gated = true, bias = false;
  std::string dtype = "BF16";

  nlohmann::json config() const {
    nlohmann::json types = nlohmann::json::array();
    for (int64_t i = 0; i < layers; ++i) types.push_back(i % 4 == 3 ? "full_attention" : "sliding_attention");
    return {{"model_type", "spark2_5"},
            {"num_hidden_layers", layers},
            {"hidden_size", hidden},
            {"intermediate_size", intermediate},
            {"num_attention_heads", heads},
            {"num_key_value_heads", kv_heads},
            {"head_dim", head_dim},
            {"vocab_size", vocabulary},
            {"layer_types", types},
            {"sliding_window", 8},
            {"rope_parameters",
             {{"full_attention", {{"partial_rotary_factor", 0.25}, {"rope_theta", 5000000}}},
              {"sliding_attention", {{"partial_rotary_factor", 1.0}, {"rope_theta", 10000}}}}},
            {"headwise_attn_output_gate", gated},
            {"attention_bias", bias},
            {"mlp_bias", bias},
            {"tie_word_embeddings", tied},
            {"bos_token_id", 0},
            {"eos_token_id", 1}};
  }

  // Values in (-1, 1) / 8, the same for the same seed.
  static std::vector<float> values(int64_t count, uint32_t seed) {
    std::mt19937 random(seed);
    std::vector<float> values(static_cast<size_t>(count));
    for (float& value : values) value = (static_cast<float>(random() >> 8) * 0x1p-23F - 1) / 8;
    return values;
  }

  void add(SafetensorsWriter& writer, const std::string& name, std::vector<int64_t> shape, uint32_t seed) const {
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    const std::vector<float> fp32 = values(count, seed);
    if (dtype == "F32") {
      writer.add(name, dtype, std::move(shape), fp32);
      return;
    }
    std::vector<uint16_t> bits;
    for (const float value : fp32) bits.push_back(static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16));
    writer.add(name, dtype, std::move(shape), bits);
  }

  SafetensorsWriter weights() const {
    SafetensorsWriter writer;
    uint32_t seed = 1;
    const auto put = [&](const std::string& name, std::vector<int64_t> shape) { add(writer, name, std::move(shape), seed++); };
    const auto linear = [&](const std::string& name, int64_t n, int64_t k) {
      put(name + ".weight", {n, k});
      if (bias) put(name + ".bias", {n});
    };
    put("model.embedding.weight", {vocabulary, hidden});
    put("model.norm.weight", {hidden});
    if (!tied) put("lm_head.weight", {vocabulary, hidden});
    for (int64_t i = 0; i < layers; ++i) {
      const std::string layer = "model.layers." + std::to_string(i);
      put(layer + ".input_layernorm.weight", {hidden});
      put(layer + ".post_attention_layernorm.weight", {hidden});
      linear(layer + ".self_attn.q_k_v_proj", (heads + 2 * kv_heads) * head_dim, hidden);
      if (gated) linear(layer + ".self_attn.g_proj", heads, hidden);
      linear(layer + ".self_attn.out_proj", hidden, heads * head_dim);
      linear(layer + ".mlp.gate_proj", intermediate, hidden);
      linear(layer + ".mlp.up_proj", intermediate, hidden);
      linear(layer + ".mlp.down_proj", hidden, intermediate);
    }
    return writer;
  }

  static void write(const std::filesystem::path& directory, const nlohmann::json& config, const SafetensorsWriter& weights) {
    std::filesystem::create_directories(directory);
    std::ofstream(directory / "config.json") << config.dump(2);
    weights.write(directory / "model.safetensors");
  }
  void write(const std::filesystem::path& directory) const { write(directory, config(), weights()); }
};

}  // namespace omni_files
