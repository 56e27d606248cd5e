// SPDX-License-Identifier: Apache-2.0
#include "reference/spark/config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reference/core/error.h"

namespace ref::spark {
namespace {

using nlohmann::json;

// The published 1.7B model.
json published() {
  json config = {{"model_type", "spark2_5"},
                 {"num_hidden_layers", 28},
                 {"hidden_size", 2048},
                 {"intermediate_size", 6656},
                 {"num_attention_heads", 8},
                 {"num_key_value_heads", 2},
                 {"head_dim", 256},
                 {"vocab_size", 131072},
                 {"sliding_window", 512},
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
                 {"rope_parameters",
                  {{"full_attention", {{"rope_type", "default"}, {"partial_rotary_factor", 0.25}, {"rope_theta", 5000000}}},
                   {"sliding_attention", {{"rope_type", "default"}, {"partial_rotary_factor", 1.0}, {"rope_theta", 10000}}}}},
                 {"attention_dropout", 0.0},
                 {"auto_map", json::object()}};
  for (int i = 0; i < 28; ++i) config["layer_types"].push_back(i % 4 == 3 ? "full_attention" : "sliding_attention");
  return config;
}

// The complaint about a config, "" when it is taken.
std::string complaint(const json& config) {
  try {
    read_config(config, "config.json");
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

std::string complaint_with(const char* key, const json& value) {
  json config = published();
  config[key] = value;
  return complaint(config);
}

TEST(SparkConfig, ReadsThePublishedModel) {
  const Config config = read_config(published(), "config.json");
  EXPECT_EQ(config.layers, 28);
  EXPECT_EQ(config.hidden, 2048);
  EXPECT_EQ(config.intermediate, 6656);
  EXPECT_EQ(config.qkv_rows(), 3072);
  EXPECT_EQ(config.attention_width(), 2048);
  EXPECT_EQ(config.vocabulary, 131072);
  EXPECT_EQ(config.window, 512);
  EXPECT_TRUE(config.sliding[0]);
  EXPECT_FALSE(config.sliding[3]);
  EXPECT_EQ(config.rope(0).rot, 256);
  EXPECT_EQ(config.rope(0).theta, 10000.0);
  EXPECT_EQ(config.rope(3).rot, 64);
  EXPECT_EQ(config.rope(3).theta, 5000000.0);
  EXPECT_EQ(config.eps, 1e-6);
  EXPECT_TRUE(config.gated);
  EXPECT_FALSE(config.gate_silu);
  EXPECT_TRUE(config.tied);
  EXPECT_EQ(config.bos, 0);
  EXPECT_EQ(config.eos, std::vector<int64_t>{1});
  EXPECT_EQ(config.pad, 2);
}

// The defaults of the published configuration class, which are not those of the published models.
TEST(SparkConfig, AbsentKeysTakeTheDefaultsOfTheClass) {
  const Config config = read_config({{"model_type", "spark2_5"}}, "config.json");
  EXPECT_EQ(config.layers, 32);
  EXPECT_EQ(config.hidden, 4096);
  EXPECT_EQ(config.intermediate, 11008);
  EXPECT_EQ(config.heads, 32);
  EXPECT_EQ(config.kv_heads, 32);
  EXPECT_EQ(config.head_dim, 128);
  EXPECT_EQ(config.vocabulary, 32000);
  EXPECT_EQ(config.sliding, std::vector<bool>(32, false));
  EXPECT_FALSE(config.window.has_value());
  EXPECT_EQ(config.full_rope.rot, 128);
  EXPECT_EQ(config.full_rope.theta, 10000.0);
  EXPECT_FALSE(config.gated);
  EXPECT_FALSE(config.tied);
  EXPECT_EQ(config.bos, 1);
  EXPECT_EQ(config.eos, std::vector<int64_t>{2});
  EXPECT_FALSE(config.pad.has_value());
}

TEST(SparkConfig, NullIsAbsent) {
  json config = published();
  config["sliding_window"] = nullptr;
  config["pad_token_id"] = nullptr;
  EXPECT_FALSE(read_config(config, "config.json").window.has_value());
}

TEST(SparkConfig, EndTokensMayBeAList) {
  json config = published();
  config["eos_token_id"] = {1, 130976};
  EXPECT_EQ(read_config(config, "config.json").eos, (std::vector<int64_t>{1, 130976}));
  config["eos_token_id"] = {1, 131072};
  EXPECT_EQ(complaint(config), "config.json: \"eos_token_id\" must hold whole numbers in 0..131071, not [1,131072]");
}

TEST(SparkConfig, TheHeadDimensionStandsApartFromTheHiddenSize) {
  json config = published();
  config.update({{"hidden_size", 2560}, {"num_attention_heads", 16}, {"num_key_value_heads", 4}});
  EXPECT_EQ(read_config(config, "config.json").attention_width(), 4096);
}

// layer_types shorter than the model would leave layers without a kind of attention.
TEST(SparkConfig, LayerTypesMustCoverTheLayers) {
  json config = published();
  config["layer_types"].erase(27);
  EXPECT_EQ(complaint(config), "config.json: \"layer_types\" has 27 entries for 28 layers");
  config["layer_types"].push_back("chunked_attention");
  EXPECT_EQ(complaint(config),
            "config.json: \"layer_types\" knows sliding_attention and full_attention, not \"chunked_attention\"");
}

struct BadKey {
  const char* key;
  json value;
};

class SparkConfigRefuses : public testing::TestWithParam<BadKey> {};

TEST_P(SparkConfigRefuses, NamesTheKeyAndTheValue) {
  const std::string line = complaint_with(GetParam().key, GetParam().value);
  EXPECT_TRUE(line.starts_with("config.json: ")) << line;
  EXPECT_NE(line.find(GetParam().key), line.npos) << line;
  EXPECT_EQ(line.find('\n'), line.npos) << line;
}

INSTANTIATE_TEST_SUITE_P(
    Keys, SparkConfigRefuses,
    testing::Values(BadKey{"model_type", "llama"}, BadKey{"hidden_act", "gelu_pytorch_tanh"}, BadKey{"hidden_act", 3},
                    BadKey{"gate_attn_act_mode", "tanh"}, BadKey{"num_hidden_layers", 0}, BadKey{"num_hidden_layers", -1},
                    BadKey{"num_hidden_layers", 1e9}, BadKey{"hidden_size", "2048"}, BadKey{"hidden_size", 4294967296},
                    BadKey{"hidden_size", 18446744073709551615u}, BadKey{"intermediate_size", 2.5},
                    BadKey{"num_attention_heads", 7}, BadKey{"num_key_value_heads", 3}, BadKey{"head_dim", 12},
                    BadKey{"head_dim", 264}, BadKey{"head_dim", 0}, BadKey{"vocab_size", 0}, BadKey{"layer_types", "full"},
                    BadKey{"sliding_window", 0}, BadKey{"sliding_window", -4}, BadKey{"sliding_window", true},
                    BadKey{"rms_norm_eps", 0}, BadKey{"rms_norm_eps", -1e-6}, BadKey{"rms_norm_eps", "1e-6"},
                    BadKey{"headwise_attn_output_gate", 1}, BadKey{"tie_word_embeddings", "yes"}, BadKey{"bos_token_id", -1},
                    BadKey{"eos_token_id", 131072}, BadKey{"max_position_embeddings", -1},
                    BadKey{"rope_parameters", {{"sliding_attention", {{"rope_type", "yarn"}}}}},
                    BadKey{"rope_parameters", {{"sliding_attention", {{"partial_rotary_factor", 1.5}}}}},
                    BadKey{"rope_parameters", {{"sliding_attention", {{"partial_rotary_factor", 0.004}}}}},
                    BadKey{"rope_parameters", {{"sliding_attention", {{"partial_rotary_factor", 0.003}}}}},
                    BadKey{"rope_parameters", {{"full_attention", {{"rope_theta", -1}}}}},
                    BadKey{"rope_parameters", {{"full_attention", {{"rope_theta", 0.5}}}}},
                    BadKey{"rope_parameters", {{"full_attention", 4}}}, BadKey{"rope_parameters", "none"}));

// A value that is itself enormous does not make the line enormous.
TEST(SparkConfig, LinesStayShort) { EXPECT_LT(complaint_with("model_type", std::string(100000, 'x')).size(), 300u); }

}  // namespace
}  // namespace ref::spark
