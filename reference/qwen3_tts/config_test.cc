// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/config.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "reference/core/error.h"

namespace ref::tts {
namespace {

using nlohmann::json;

// The published 0.6B CustomVoice model and its speech tokenizer.
json published() {
  return json::parse(R"({
    "model_type": "qwen3_tts", "tokenizer_type": "qwen3_tts_tokenizer_12hz",
    "tts_model_size": "0b6", "tts_model_type": "custom_voice",
    "im_start_token_id": 151644, "im_end_token_id": 151645, "assistant_token_id": 77091,
    "tts_pad_token_id": 151671, "tts_bos_token_id": 151672, "tts_eos_token_id": 151673,
    "talker_config": {
      "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 28, "num_attention_heads": 16,
      "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 3072, "text_vocab_size": 151936, "text_hidden_size": 2048,
      "rms_norm_eps": 1e-6, "rope_theta": 1000000, "max_position_embeddings": 32768, "num_code_groups": 16,
      "hidden_act": "silu", "attention_bias": false, "sliding_window": null, "use_sliding_window": false,
      "rope_scaling": {"interleaved": true, "mrope_section": [24, 20, 20], "rope_type": "default", "type": "default"},
      "codec_pad_id": 2148, "codec_bos_id": 2149, "codec_eos_token_id": 2150, "codec_think_id": 2154,
      "codec_nothink_id": 2155, "codec_think_bos_id": 2156, "codec_think_eos_id": 2157,
      "codec_language_id": {"english": 2050, "Chinese": 2055, "sichuan_dialect": 2062},
      "spk_id": {"Eric": 2875, "ryan": 3061}, "spk_is_dialect": {"Eric": "sichuan_dialect", "ryan": false},
      "code_predictor_config": {
        "hidden_size": 1024, "intermediate_size": 3072, "num_hidden_layers": 5, "num_attention_heads": 16,
        "num_key_value_heads": 8, "head_dim": 128, "vocab_size": 2048, "rope_theta": 1000000, "rms_norm_eps": 1e-6,
        "max_position_embeddings": 65536, "hidden_act": "silu", "num_code_groups": 16, "rope_scaling": null}},
    "speech_tokenizer": {
      "model_type": "qwen3_tts_tokenizer_12hz", "encoder_valid_num_quantizers": 16, "input_sample_rate": 24000,
      "output_sample_rate": 24000, "decode_upsample_rate": 1920, "encode_downsample_rate": 1920,
      "decoder_config": {
        "codebook_dim": 512, "codebook_size": 2048, "latent_dim": 1024, "hidden_size": 512, "intermediate_size": 1024,
        "num_hidden_layers": 8, "num_attention_heads": 16, "num_key_value_heads": 16, "head_dim": 64, "sliding_window": 72,
        "rope_theta": 10000, "rms_norm_eps": 1e-5, "decoder_dim": 1536, "num_quantizers": 16,
        "upsample_rates": [8, 5, 4, 3], "upsampling_ratios": [2, 2], "semantic_codebook_size": 4096},
      "encoder_config": {
        "num_filters": 64, "upsampling_ratios": [8, 6, 5, 4], "kernel_size": 7, "last_kernel_size": 3, "hidden_size": 512,
        "num_hidden_layers": 8, "num_attention_heads": 8, "head_dim": 64, "intermediate_size": 2048, "hidden_act": "gelu",
        "norm_eps": 1e-5, "rope_theta": 10000.0, "codebook_size": 2048, "codebook_dim": 256, "num_quantizers": 32}}})");
}

json published_base() {
  json config = published();
  config["tts_model_type"] = "base";
  config["speaker_encoder_config"] = {{"enc_dim", 1024}, {"sample_rate", 24000}};
  return config;
}

// The complaint about a config, "" when it is taken.
std::string complaint(const json& config) {
  try {
    read_config(config, "dir");
    return "";
  } catch (const Error& error) {
    return error.what();
  }
}

// With one value changed, at a JSON pointer.
std::string with(const char* at, const json& value) {
  json config = published();
  config[json::json_pointer(at)] = value;
  return complaint(config);
}
std::string without(const std::string& parent, const char* key) {
  json config = published();
  config[json::json_pointer(parent)].erase(key);
  return complaint(config);
}

TEST(TtsConfig, Published) {
  const Config config = read_config(published(), "dir");
  EXPECT_EQ(config.type, ModelType::kCustomVoice);
  EXPECT_FALSE(config.projects());
  EXPECT_FALSE(config.takes_instruct());
  EXPECT_FALSE(config.speaker_encoder.has_value());
  EXPECT_EQ(config.talker.stack.q_width(), 2048);
  EXPECT_EQ(config.talker.stack.qkv_rows(), 4096);
  EXPECT_EQ(config.talker.eos, 2150);
  EXPECT_EQ(config.talker.languages.at("chinese"), 2055);
  EXPECT_EQ(config.talker.speakers.at("eric"), 2875);
  EXPECT_EQ(config.talker.dialects, (std::map<std::string, std::string>{{"eric", "sichuan_dialect"}}));
  EXPECT_EQ(config.predictor.vocabulary, 2048);
  EXPECT_EQ(config.decoder.window, 72);
  EXPECT_EQ(config.encoder.quantisers, 32);
  EXPECT_EQ(config.encoder.ratios, (std::vector<int64_t>{8, 6, 5, 4}));
}

TEST(TtsConfig, BaseHasASpeakerEncoderOfThePublishedWidths) {
  const Config config = read_config(published_base(), "dir");
  ASSERT_TRUE(config.speaker_encoder.has_value());
  EXPECT_EQ(config.speaker_encoder->dim, 1024);
  EXPECT_EQ(config.speaker_encoder->channels, (std::vector<int64_t>{512, 512, 512, 512, 1536}));
  json narrow = published_base();
  narrow["speaker_encoder_config"]["enc_dim"] = 2048;
  EXPECT_EQ(complaint(narrow), "dir: speaker_encoder_config: \"enc_dim\" must be hidden_size of the talker, 1024, not 2048");
  narrow.erase("speaker_encoder_config");
  EXPECT_EQ(complaint(narrow), "dir: \"speaker_encoder_config\" is absent");
}

TEST(TtsConfig, LargerModelsProjectAndTakeInstructions) {
  json config = published();
  config["tts_model_size"] = "1b7";
  config["talker_config"]["hidden_size"] = 2048;
  EXPECT_TRUE(read_config(config, "dir").projects());
  EXPECT_TRUE(read_config(config, "dir").takes_instruct());
  config["tts_model_type"] = "base";
  config["speaker_encoder_config"] = {{"enc_dim", 2048}};
  EXPECT_FALSE(read_config(config, "dir").takes_instruct());
}

// AC-067: an end token of the text vocabulary would never be drawn.
TEST(TtsConfig, EndTokenOfTheTextVocabulary) {
  EXPECT_EQ(with("/talker_config/codec_eos_token_id", 151673),
            "dir: talker_config: \"codec_eos_token_id\" must be a whole number in 0..3071, not 151673");
  EXPECT_NE(with("/talker_config/codec_eos_token_id", -1), "");
  EXPECT_NE(with("/talker_config/codec_eos_token_id", 2150.5), "");
  EXPECT_NE(with("/talker_config/codec_eos_token_id", uint64_t{1} << 63), "");
  EXPECT_EQ(with("/talker_config/codec_eos_token_id", nullptr), "dir: talker_config: \"codec_eos_token_id\" is absent");
}

TEST(TtsConfig, UnknownKinds) {
  EXPECT_EQ(with("/tts_model_type", "podcast"),
            "dir: \"tts_model_type\" must be base, custom_voice or voice_design, not \"podcast\"");
  EXPECT_EQ(with("/tokenizer_type", "qwen3_tts_tokenizer_25hz"),
            "dir: \"tokenizer_type\" must be qwen3_tts_tokenizer_12hz, not \"qwen3_tts_tokenizer_25hz\"");
  EXPECT_EQ(with("/tts_model_size", "3b"), "dir: \"tts_model_size\" must be 0b6 or 1b7, not \"3b\"");
  EXPECT_NE(with("/model_type", "qwen3"), "");
  EXPECT_NE(with("/speech_tokenizer/model_type", "mimi"), "");
  EXPECT_EQ(without("", "tts_model_type"), "dir: \"tts_model_type\" is absent");
}

TEST(TtsConfig, MissingSpeechTokenizer) {
  EXPECT_EQ(without("", "speech_tokenizer"),
            "dir: \"speech_tokenizer\" is absent: speech_tokenizer/config.json belongs to a model");
  EXPECT_EQ(with("/speech_tokenizer", json::array()), "dir: \"speech_tokenizer\" must be an object, not []");
  EXPECT_EQ(without("/speech_tokenizer", "decoder_config"), "dir: speech_tokenizer: \"decoder_config\" is absent");
}

TEST(TtsConfig, NamesOutsideOfTheVocabulary) {
  EXPECT_EQ(with("/talker_config/spk_id/ryan", 3072),
            "dir: talker_config: spk_id: \"ryan\" must be a whole number in 0..3071, not 3072");
  EXPECT_NE(with("/talker_config/codec_language_id/english", "2050"), "");
  EXPECT_NE(with("/talker_config/spk_id", json::array({1})), "");
  EXPECT_EQ(with("/talker_config/spk_is_dialect/ryan", "klingon"),
            "dir: talker_config: spk_is_dialect: \"ryan\" must be false or a language of codec_language_id, not \"klingon\"");
  EXPECT_NE(with("/talker_config/spk_is_dialect/nobody", "english"), "");
  EXPECT_NE(with("/tts_pad_token_id", 151936), "");
}

// What would be another model in other ways, or reach beyond a table.
TEST(TtsConfig, ShapesThatAreNone) {
  EXPECT_EQ(without("/talker_config", "head_dim"), "dir: talker_config: \"head_dim\" is absent");
  EXPECT_NE(with("/talker_config/head_dim", 12), "");
  EXPECT_NE(with("/talker_config/num_key_value_heads", 3), "");
  EXPECT_NE(with("/talker_config/num_code_groups", 32), "");
  EXPECT_NE(with("/talker_config/attention_bias", true), "");
  EXPECT_NE(with("/talker_config/rope_theta", 1), "");
  EXPECT_NE(with("/talker_config/rope_scaling/rope_type", "yarn"), "");
  EXPECT_NE(with("/talker_config/rope_scaling/mrope_section", json::array({24, 20, 19})), "");
  EXPECT_NE(with("/talker_config/vocab_size", 4096), "");
  EXPECT_NE(with("/talker_config/vocab_size", 1000), "");
  EXPECT_NE(with("/talker_config/hidden_size", int64_t{1} << 40), "");
  EXPECT_NE(with("/talker_config/code_predictor_config/vocab_size", 3072), "");
  EXPECT_NE(with("/talker_config/code_predictor_config", "none"), "");
  EXPECT_NE(with("/speech_tokenizer/decoder_config/upsample_rates", json::array({8, 5, 4, 4})), "");
  EXPECT_NE(with("/speech_tokenizer/decoder_config/upsample_rates", json::array()), "");
  EXPECT_NE(with("/speech_tokenizer/decoder_config/decoder_dim", 1544), "");
  EXPECT_NE(with("/speech_tokenizer/decoder_config/num_quantizers", 8), "");
  EXPECT_NE(with("/speech_tokenizer/encoder_config/num_quantizers", 15), "");
  EXPECT_NE(with("/speech_tokenizer/encoder_config/codebook_size", 1024), "");
  EXPECT_NE(with("/speech_tokenizer/output_sample_rate", 48000), "");
  EXPECT_EQ(complaint(json::array()), "dir: \"model_type\" is absent");
}

}  // namespace
}  // namespace ref::tts
