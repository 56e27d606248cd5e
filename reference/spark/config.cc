// SPDX-License-Identifier: Apache-2.0
#include "reference/spark/config.h"

#include <nlohmann/json.hpp>

#include "reference/core/config_reader.h"

namespace ref::spark {
namespace {

using nlohmann::json;

using Reader = ConfigReader;
constexpr int64_t kMostSize = Reader::kMostSize;
constexpr int64_t kMostLayers = Reader::kMostLayers;

Rope read_rope(const Reader& config, const char* type, int64_t head_dim) {
  const json& all = config.object();
  if (config.has("rope_parameters") && !all["rope_parameters"].is_object()) config.refuse("rope_parameters", "must be an object");
  const json given = all.contains("rope_parameters") && all["rope_parameters"].is_object() && all["rope_parameters"].contains(type)
                         ? all["rope_parameters"][type]
                         : json::object();
  if (!given.is_object()) config.refuse("rope_parameters", std::string("of ") + type + " must be an object");
  const Reader rope(given, config.name() + ": rope_parameters of " + type);
  if (const std::string kind = rope.word("rope_type", "default"); kind != "default") rope.refuse("rope_type", "must be default");
  const double factor = rope.positive("partial_rotary_factor", 1.0);
  if (factor > 1.0) rope.refuse("partial_rotary_factor", "must be at most 1");
  const auto rot = static_cast<int64_t>(static_cast<double>(head_dim) * factor);
  if (rot % 2 != 0 || rot == 0) rope.refuse("partial_rotary_factor", "must leave an even number of dimensions to rotate");
  const double theta = rope.positive("rope_theta", 10000.0);
  if (theta <= 1.0) rope.refuse("rope_theta", "must be above 1");
  return {theta, rot};
}

std::vector<bool> read_layer_types(const Reader& config, int64_t layers) {
  if (!config.has("layer_types")) return std::vector<bool>(static_cast<size_t>(layers), false);
  const json& list = config.object()["layer_types"];
  if (!list.is_array()) config.refuse("layer_types", "must be a list");
  if (static_cast<int64_t>(list.size()) != layers) {
    throw Error(config.name() + ": \"layer_types\" has " + std::to_string(list.size()) + " entries for " + std::to_string(layers) +
                " layers");
  }
  std::vector<bool> sliding;
  for (const json& type : list) {
    if (type != "sliding_attention" && type != "full_attention") {
      throw Error(config.name() + ": \"layer_types\" knows sliding_attention and full_attention, not " + type.dump().substr(0, 80));
    }
    sliding.push_back(type == "sliding_attention");
  }
  return sliding;
}

// One id or a list of them.
std::vector<int64_t> read_end_tokens(const Reader& config, int64_t vocabulary) {
  if (!config.has("eos_token_id") || !config.object()["eos_token_id"].is_array()) {
    return {config.size("eos_token_id", 2, 0, vocabulary - 1)};
  }
  std::vector<int64_t> ids;
  for (const json& id : config.object()["eos_token_id"]) {
    if (!id.is_number_integer() || id.get<int64_t>() < 0 || id.get<int64_t>() >= vocabulary) {
      config.refuse("eos_token_id", "must hold whole numbers in 0.." + std::to_string(vocabulary - 1));
    }
    ids.push_back(id.get<int64_t>());
  }
  return ids;
}

}  // namespace

Config read_config(const json& root, const std::string& name) {
  const Reader reader(root, name);
  if (const std::string type = reader.word("model_type", ""); type != "spark2_5") reader.refuse("model_type", "must be spark2_5");
  if (reader.word("hidden_act", "gelu") != "gelu") reader.refuse("hidden_act", "must be gelu");
  const std::string gate = reader.word("gate_attn_act_mode", "sigmoid");
  if (gate != "sigmoid" && gate != "silu") reader.refuse("gate_attn_act_mode", "must be sigmoid or silu");

  Config config{};
  config.layers = reader.size("num_hidden_layers", 32, 1, kMostLayers);
  config.hidden = reader.size("hidden_size", 4096, 1, kMostSize);
  config.intermediate = reader.size("intermediate_size", 11008, 1, kMostSize);
  config.heads = reader.size("num_attention_heads", 32, 1, kMostSize);
  config.kv_heads = reader.size("num_key_value_heads", config.heads, 1, kMostSize);
  if (config.heads % config.kv_heads != 0) {
    reader.refuse("num_key_value_heads", "must divide num_attention_heads " + std::to_string(config.heads));
  }
  if (!reader.has("head_dim") && config.hidden % config.heads != 0) {
    reader.refuse("head_dim", "is absent, and num_attention_heads does not divide hidden_size");
  }
  config.head_dim = reader.size("head_dim", config.hidden / config.heads, 1, kMostSize);
  if (config.head_dim % 8 != 0 || config.head_dim > 256) reader.refuse("head_dim", "must be a multiple of 8 up to 256");
  config.vocabulary = reader.size("vocab_size", 32000, 1, kMostSize);
  config.sliding = read_layer_types(reader, config.layers);
  if (reader.has("sliding_window")) config.window = reader.size("sliding_window", 0, 1, int64_t{1} << 30);
  config.sliding_rope = read_rope(reader, "sliding_attention", config.head_dim);
  config.full_rope = read_rope(reader, "full_attention", config.head_dim);
  config.eps = reader.positive("rms_norm_eps", 1e-6);
  config.gated = reader.flag("headwise_attn_output_gate", false);
  config.gate_silu = gate == "silu";
  config.attention_bias = reader.flag("attention_bias", false);
  config.mlp_bias = reader.flag("mlp_bias", false);
  config.tied = reader.flag("tie_word_embeddings", false);
  config.max_positions = reader.size("max_position_embeddings", 2048, 1, int64_t{1} << 40);
  config.bos = reader.size("bos_token_id", 1, 0, config.vocabulary - 1);
  config.eos = read_end_tokens(reader, config.vocabulary);
  if (reader.has("pad_token_id")) config.pad = reader.size("pad_token_id", 0, 0, config.vocabulary - 1);
  return config;
}

}  // namespace ref::spark
