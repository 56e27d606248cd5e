// SPDX-License-Identifier: Apache-2.0
// Configs of the released models, as published, and of one for tests.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "reference/core/error.h"
#include "reference/io/checkpoint.h"
#include "reference/qwen3_tts/pack/synthetic.h"

namespace ref::tts {
namespace {

using nlohmann::json;

struct Shape {
  const char* name;
  const char* size;
  const char* type;
  int64_t hidden, intermediate, layers;
};
constexpr std::array kShapes = {Shape{"qwen3-tts-0.6b", "0b6", "base", 1024, 3072, 28},
                                Shape{"qwen3-tts-0.6b-custom", "0b6", "custom_voice", 1024, 3072, 28},
                                Shape{"qwen3-tts-1.7b", "1b7", "base", 2048, 6144, 28},
                                Shape{"qwen3-tts-1.7b-custom", "1b7", "custom_voice", 2048, 6144, 28},
                                Shape{"qwen3-tts-1.7b-design", "1b7", "voice_design", 2048, 6144, 28},
                                Shape{"qwen3-tts-tiny", "1b7", "base", 64, 96, 2}};

constexpr const char* kTiny = "qwen3-tts-tiny";

json predictor_config(bool tiny) {
  return {{"vocab_size", tiny ? 64 : 2048},
          {"hidden_size", tiny ? 48 : 1024},
          {"intermediate_size", tiny ? 80 : 3072},
          {"num_hidden_layers", tiny ? 1 : 5},
          {"num_attention_heads", tiny ? 4 : 16},
          {"num_key_value_heads", tiny ? 2 : 8},
          {"head_dim", tiny ? 16 : 128},
          {"hidden_act", "silu"},
          {"max_position_embeddings", 65536},
          {"rms_norm_eps", 1e-6},
          {"rope_theta", 1000000},
          {"rope_scaling", nullptr},
          {"attention_bias", false},
          {"num_code_groups", 16},
          {"use_sliding_window", false},
          {"model_type", "qwen3_tts_talker_code_predictor"}};
}

// Ids behind the codes, as far from them as in the released models.
json control_ids(int64_t codes) {
  const int64_t by = codes - 2048;
  json config = {{"codec_pad_id", 2148 + by},       {"codec_bos_id", 2149 + by},     {"codec_eos_token_id", 2150 + by},
                 {"codec_think_id", 2154 + by},     {"codec_nothink_id", 2155 + by}, {"codec_think_bos_id", 2156 + by},
                 {"codec_think_eos_id", 2157 + by}, {"spk_id", json::object()},      {"spk_is_dialect", json::object()}};
  json& languages = config["codec_language_id"] = {{"english", 2050},  {"german", 2053},    {"spanish", 2054}, {"chinese", 2055},
                                                   {"japanese", 2058}, {"french", 2061},    {"korean", 2064},  {"russian", 2069},
                                                   {"italian", 2070},  {"portuguese", 2071}};
  for (json& id : languages) id = id.get<int64_t>() + by;
  return config;
}

void add_speakers(json* talker) {
  (*talker)["codec_language_id"]["sichuan_dialect"] = 2062;
  (*talker)["codec_language_id"]["beijing_dialect"] = 2074;
  (*talker)["spk_id"] = {{"aiden", 2861},    {"sohee", 2864}, {"ono_anna", 2873}, {"eric", 2875},  {"dylan", 2878},
                         {"uncle_fu", 3010}, {"ryan", 3061},  {"vivian", 3065},   {"serena", 3066}};
  json& dialects = (*talker)["spk_is_dialect"];
  for (const auto& [speaker, id] : (*talker)["spk_id"].items()) dialects[speaker] = false;
  dialects["eric"] = "sichuan_dialect";
  dialects["dylan"] = "beijing_dialect";
}

json talker_config(const Shape& shape, bool tiny) {
  json config = control_ids(tiny ? 64 : 2048);
  config.update({{"model_type", "qwen3_tts_talker"},
                 {"attention_bias", false},
                 {"code_predictor_config", predictor_config(tiny)},
                 {"head_dim", tiny ? 32 : 128},
                 {"hidden_act", "silu"},
                 {"hidden_size", shape.hidden},
                 {"intermediate_size", shape.intermediate},
                 {"max_position_embeddings", 32768},
                 {"num_attention_heads", tiny ? 4 : 16},
                 {"num_code_groups", 16},
                 {"num_hidden_layers", shape.layers},
                 {"num_key_value_heads", tiny ? 2 : 8},
                 {"rms_norm_eps", 1e-6},
                 {"rope_theta", 1000000},
                 {"sliding_window", nullptr},
                 {"text_hidden_size", tiny ? 80 : 2048},
                 {"text_vocab_size", tiny ? 512 : 151936},
                 {"use_sliding_window", false},
                 {"vocab_size", tiny ? 64 + 1024 : 3072}});
  const json sections = tiny ? json{6, 5, 5} : json{24, 20, 20};
  config["rope_scaling"] = {{"interleaved", true}, {"mrope_section", sections}, {"rope_type", "default"}, {"type", "default"}};
  if (shape.type == std::string_view("custom_voice")) add_speakers(&config);
  return config;
}

json decoder_config(bool tiny) {
  return {{"attention_bias", false},
          {"latent_dim", tiny ? 48 : 1024},
          {"codebook_dim", tiny ? 32 : 512},
          {"codebook_size", tiny ? 64 : 2048},
          {"decoder_dim", tiny ? 64 : 1536},
          {"hidden_act", "silu"},
          {"hidden_size", tiny ? 32 : 512},
          {"intermediate_size", tiny ? 64 : 1024},
          {"head_dim", tiny ? 16 : 64},
          {"num_attention_heads", tiny ? 2 : 16},
          {"num_hidden_layers", tiny ? 2 : 8},
          {"num_key_value_heads", tiny ? 2 : 16},
          {"num_quantizers", 16},
          {"num_semantic_quantizers", 1},
          {"rms_norm_eps", 1e-5},
          {"rope_theta", 10000},
          {"sliding_window", tiny ? 8 : 72},
          {"upsample_rates", {8, 5, 4, 3}},
          {"upsampling_ratios", {2, 2}}};
}

json encoder_config(bool tiny) {
  return {{"_frame_rate", 12.5},
          {"attention_bias", false},
          {"audio_channels", 1},
          {"codebook_dim", tiny ? 16 : 256},
          {"codebook_size", tiny ? 64 : 2048},
          {"compress", 2},
          {"head_dim", tiny ? 8 : 64},
          {"hidden_act", "gelu"},
          {"hidden_size", tiny ? 32 : 512},
          {"intermediate_size", tiny ? 64 : 2048},
          {"kernel_size", 7},
          {"last_kernel_size", 3},
          {"norm_eps", 1e-5},
          {"num_attention_heads", tiny ? 4 : 8},
          {"num_filters", tiny ? 4 : 64},
          {"num_hidden_layers", tiny ? 1 : 8},
          {"num_key_value_heads", tiny ? 4 : 8},
          {"num_quantizers", 32},
          {"num_residual_layers", 1},
          {"num_semantic_quantizers", 1},
          {"pad_mode", "constant"},
          {"residual_kernel_size", 3},
          {"rope_theta", 10000.0},
          {"sampling_rate", 24000},
          {"sliding_window", 250},
          {"upsampling_ratios", {8, 6, 5, 4}}};
}

json speaker_config(const Shape& shape, bool tiny) {
  json config = {{"enc_dim", shape.hidden}, {"sample_rate", 24000}};
  if (tiny) config.update({{"enc_channels", {32, 32, 32, 32, 96}}, {"enc_attention_channels", 16}, {"enc_se_channels", 12}});
  return config;
}

}  // namespace

std::vector<std::string> synthetic_names() {
  std::vector<std::string> names;
  for (const Shape& shape : kShapes) names.emplace_back(shape.name);
  return names;
}

json synthetic_config(std::string_view name) {
  const auto shape = std::find_if(kShapes.begin(), kShapes.end(), [&](const Shape& each) { return name == each.name; });
  if (shape == kShapes.end()) throw Error("no synthetic model is called \"" + std::string(name) + "\"");
  const bool tiny = name == kTiny;
  json config = {{"architectures", {"Qwen3TTSForConditionalGeneration"}},
                 {"model_type", "qwen3_tts"},
                 {"tokenizer_type", "qwen3_tts_tokenizer_12hz"},
                 {"tts_model_size", shape->size},
                 {"tts_model_type", shape->type},
                 {"im_start_token_id", tiny ? 301 : 151644},
                 {"im_end_token_id", tiny ? 302 : 151645},
                 {"assistant_token_id", tiny ? 290 : 77091},
                 {"tts_pad_token_id", tiny ? 303 : 151671},
                 {"tts_bos_token_id", tiny ? 304 : 151672},
                 {"tts_eos_token_id", tiny ? 305 : 151673},
                 {"talker_config", talker_config(*shape, tiny)}};
  if (shape->type == std::string_view("base")) config["speaker_encoder_config"] = speaker_config(*shape, tiny);
  config[kSpeechTokenizer] = {{"architectures", {"Qwen3TTSTokenizerV2Model"}},
                              {"model_type", "qwen3_tts_tokenizer_12hz"},
                              {"encoder_valid_num_quantizers", 16},
                              {"input_sample_rate", 24000},
                              {"output_sample_rate", 24000},
                              {"decode_upsample_rate", 1920},
                              {"encode_downsample_rate", 1920},
                              {"decoder_config", decoder_config(tiny)},
                              {"encoder_config", encoder_config(tiny)}};
  return config;
}

}  // namespace ref::tts
