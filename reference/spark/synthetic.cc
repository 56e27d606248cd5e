// SPDX-License-Identifier: Apache-2.0
#include "reference/spark/synthetic.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "reference/core/error.h"
#include "reference/spark/config.h"
#include "reference/text/byte_level.h"

namespace ref::spark {
namespace {

using nlohmann::json;

struct Shape {
  const char* name;
  int64_t layers, hidden, intermediate, heads, kv_heads, head_dim, vocabulary, window;
};
constexpr Shape kShapes[] = {{"spark-1.7b", 28, 2048, 6656, 8, 2, 256, 131072, 512},
                             {"spark-4b", 36, 2560, 10240, 16, 4, 256, 131072, 512},
                             {"spark-tiny", 4, 128, 320, 4, 2, 32, 512, 16}};

constexpr int64_t kFirstByte = 3;  // ids 0 to 2: begin, end, padding

const Shape& shape_of(std::string_view name) {
  for (const Shape& shape : kShapes) {
    if (name == shape.name) return shape;
  }
  throw Error("no synthetic model is called \"" + std::string(name) + "\"");
}

}  // namespace

std::vector<std::string> synthetic_names() {
  std::vector<std::string> names;
  for (const Shape& shape : kShapes) names.emplace_back(shape.name);
  return names;
}

json synthetic_config(std::string_view name) {
  const Shape& shape = shape_of(name);
  json types = json::array();
  for (int64_t i = 0; i < shape.layers; ++i) types.push_back(i % 4 == 3 ? "full_attention" : "sliding_attention");
  return {{"architectures", {"Spark2_5ForCausalLM"}},
          {"model_type", "spark2_5"},
          {"num_hidden_layers", shape.layers},
          {"hidden_size", shape.hidden},
          {"intermediate_size", shape.intermediate},
          {"num_attention_heads", shape.heads},
          {"num_key_value_heads", shape.kv_heads},
          {"head_dim", shape.head_dim},
          {"vocab_size", shape.vocabulary},
          {"layer_types", types},
          {"sliding_window", shape.window},
          {"rope_parameters",
           {{"full_attention", {{"partial_rotary_factor", 0.25}, {"rope_theta", 5000000}}},
            {"sliding_attention", {{"partial_rotary_factor", 1.0}, {"rope_theta", 10000}}}}},
          {"rms_norm_eps", 1e-6},
          {"hidden_act", "gelu"},
          {"headwise_attn_output_gate", true},
          {"gate_attn_act_mode", "sigmoid"},
          {"attention_bias", false},
          {"mlp_bias", false},
          {"tie_word_embeddings", true},
          {"max_position_embeddings", 1048576},
          {"bos_token_id", 0},
          {"eos_token_id", 1},
          {"pad_token_id", 2},
          {"dtype", "bfloat16"}};
}

std::string synthetic_tokenizer(int64_t vocabulary) {
  json tokens = json::object(), added = json::array();
  const char* special[] = {"<|begin|>", "<|end|>", "<|padding|>"};
  for (int64_t id = 0; id < vocabulary; ++id) {
    std::string text = "\u0120t" + std::to_string(id);  // U+0120 is the byte of a space
    if (id < kFirstByte) text = special[id];
    if (id >= kFirstByte && id < kFirstByte + 256) text = to_byte_level(std::string(1, static_cast<char>(id - kFirstByte)));
    tokens[text] = id;
    if (id >= kFirstByte) continue;
    added.push_back({{"id", id},
                     {"content", text},
                     {"single_word", false},
                     {"lstrip", false},
                     {"rstrip", false},
                     {"normalized", false},
                     {"special", true}});
  }
  const json byte_level = {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true}, {"use_regex", false}};
  const json model = {{"type", "BPE"}, {"vocab", tokens}, {"merges", json::array()}};
  return json({{"version", "1.0"},
               {"added_tokens", added},
               {"normalizer", nullptr},
               {"pre_tokenizer", byte_level},
               {"post_processor", nullptr},
               {"decoder", byte_level},
               {"model", model}})
      .dump();
}

PackPlan plan_synthetic_checkpoint(const json& root) {
  const Config config = read_config(root, "synthetic model");
  PackPlan plan{.file = "model.safetensors", .facts = {{"format", "pt"}}};
  const auto plain = [&](const std::string& name, std::vector<int64_t> shape, double mean) {
    const double deviation = mean != 0 ? 0 : 1 / std::sqrt(static_cast<double>(shape.back()));
    plan.plains.push_back({.name = name, .shape = std::move(shape), .mean = mean, .deviation = deviation});
  };
  const int64_t hidden = config.hidden, inner = config.intermediate;
  plain("model.embedding.weight", {config.vocabulary, hidden}, 0);
  for (int64_t layer = 0; layer < config.layers; ++layer) {
    const std::string prefix = "model.layers." + std::to_string(layer) + ".";
    plain(prefix + "input_layernorm.weight", {hidden}, 1);
    plain(prefix + "self_attn.q_k_v_proj.weight", {config.qkv_rows(), hidden}, 0);
    plain(prefix + "self_attn.g_proj.weight", {config.heads, hidden}, 0);
    plain(prefix + "self_attn.out_proj.weight", {hidden, config.attention_width()}, 0);
    plain(prefix + "post_attention_layernorm.weight", {hidden}, 1);
    plain(prefix + "mlp.gate_proj.weight", {inner, hidden}, 0);
    plain(prefix + "mlp.up_proj.weight", {inner, hidden}, 0);
    plain(prefix + "mlp.down_proj.weight", {hidden, inner}, 0);
  }
  plain("model.norm.weight", {hidden}, 1);
  return plan;
}

}  // namespace ref::spark
