// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/config.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <string_view>

#include "reference/core/config_reader.h"

namespace ref::tts {
namespace {

using nlohmann::json;
using Reader = ConfigReader;

constexpr int64_t kMostSize = Reader::kMostSize;
// Channels and ratios of the codec: products of all of them still fit 63 bits.
constexpr int64_t kMostChannels = 1 << 16;
constexpr int64_t kMostRatio = 64;

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

void need_word(const Reader& reader, const char* key, const char* wanted) {
  if (reader.word(key, wanted) != wanted) reader.refuse(key, std::string("must be ") + wanted);
}

void need_number(const Reader& reader, const char* key, int64_t wanted) { reader.size(key, wanted, wanted, wanted); }

// Both spellings of "no scaling": null, or an object of type default, mrope sections or not: all three axes carry one position.
void check_rope_scaling(const Reader& reader, int64_t head_dim) {
  if (!reader.has("rope_scaling")) return;
  const Reader scaling = reader.object("rope_scaling");
  need_word(scaling, "rope_type", "default");
  need_word(scaling, "type", "default");
  if (!scaling.has("mrope_section")) return;
  const std::vector<int64_t> sections = scaling.sizes("mrope_section", 0, head_dim);
  if (std::accumulate(sections.begin(), sections.end(), int64_t{0}) != head_dim / 2) {
    scaling.refuse("mrope_section", "must sum to half of head_dim " + std::to_string(head_dim));
  }
}

// What stacks of all parts say alike. `eps_key` differs between them.
StackShape read_stack(const Reader& reader, const char* eps_key, double eps, double theta) {
  StackShape stack;
  stack.hidden = reader.size("hidden_size", 8, kMostChannels);
  stack.intermediate = reader.size("intermediate_size", 1, kMostSize);
  stack.layers = reader.size("num_hidden_layers", 1, Reader::kMostLayers);
  stack.heads = reader.size("num_attention_heads", 1, 1024);
  stack.kv_heads = reader.size("num_key_value_heads", stack.heads, 1, 1024);
  if (stack.heads % stack.kv_heads != 0) {
    reader.refuse("num_key_value_heads", "must divide num_attention_heads " + std::to_string(stack.heads));
  }
  if (!reader.has("head_dim") && stack.hidden % stack.heads != 0) {
    reader.refuse("head_dim", "is absent, and num_attention_heads does not divide hidden_size");
  }
  stack.head_dim = reader.size("head_dim", stack.hidden / stack.heads, 1, kMostSize);
  if (stack.head_dim % 8 != 0 || stack.head_dim > 256) reader.refuse("head_dim", "must be a multiple of 8 up to 256");
  stack.eps = reader.positive(eps_key, eps);
  stack.theta = reader.positive("rope_theta", theta);
  if (stack.theta <= 1.0) reader.refuse("rope_theta", "must be above 1");
  if (reader.flag("attention_bias", false)) reader.refuse("attention_bias", "must be false");
  return stack;
}

// Talker and predictor: no window, no other kind of rotation.
StackShape read_language_stack(const Reader& reader) {
  // Neither width follows from the other: 16 heads of 128 over 1024 at 0.6B.
  reader.need("head_dim");
  const StackShape stack = read_stack(reader, "rms_norm_eps", 1e-6, 1e6);
  need_word(reader, "hidden_act", "silu");
  if (reader.flag("use_sliding_window", false)) reader.refuse("use_sliding_window", "must be false");
  need_number(reader, "num_code_groups", kCodebooks);
  check_rope_scaling(reader, stack.head_dim);
  return stack;
}

int32_t read_id(const Reader& reader, const char* key, int64_t vocabulary) {
  return static_cast<int32_t>(reader.size(key, 0, vocabulary - 1));
}

// Names to ids of the codec vocabulary.
std::map<std::string, int32_t> read_names(const Reader& reader, const char* key, int64_t vocabulary) {
  std::map<std::string, int32_t> names;
  if (!reader.has(key)) return names;
  const Reader list = reader.object(key);
  for (const auto& [name, id] : list.object().items()) {
    if (name.empty()) list.refuse("", "is no name");
    names[lower(name)] = read_id(list, name.c_str(), vocabulary);
  }
  return names;
}

void read_dialects(const Reader& reader, TalkerConfig* talker) {
  if (!reader.has("spk_is_dialect")) return;
  const Reader list = reader.object("spk_is_dialect");
  for (const auto& [name, dialect] : list.object().items()) {
    if (dialect == false) continue;
    if (!talker->speakers.contains(lower(name))) list.refuse(name.c_str(), "is no speaker of spk_id");
    if (!dialect.is_string() || !talker->languages.contains(lower(dialect.get<std::string>()))) {
      list.refuse(name.c_str(), "must be false or a language of codec_language_id");
    }
    talker->dialects[lower(name)] = lower(dialect.get<std::string>());
  }
}

TalkerConfig read_talker(const Reader& reader) {
  TalkerConfig talker;
  talker.stack = read_language_stack(reader);
  talker.vocabulary = reader.size("vocab_size", kControlIds + 1, kMostSize);
  talker.text_vocabulary = reader.size("text_vocab_size", 1, kMostSize);
  talker.text_hidden = reader.size("text_hidden_size", 8, kMostChannels);
  talker.positions = reader.size("max_position_embeddings", 32768, 1, int64_t{1} << 24);
  const auto id = [&](const char* key) { return read_id(reader, key, talker.vocabulary); };
  talker.pad = id("codec_pad_id");
  talker.bos = id("codec_bos_id");
  talker.eos = id("codec_eos_token_id");
  talker.think = id("codec_think_id");
  talker.nothink = id("codec_nothink_id");
  talker.think_bos = id("codec_think_bos_id");
  talker.think_eos = id("codec_think_eos_id");
  talker.languages = read_names(reader, "codec_language_id", talker.vocabulary);
  talker.speakers = read_names(reader, "spk_id", talker.vocabulary);
  read_dialects(reader, &talker);
  return talker;
}

PredictorConfig read_predictor(const Reader& reader) {
  PredictorConfig predictor;
  predictor.stack = read_language_stack(reader);
  predictor.vocabulary = reader.size("vocab_size", 1, kMostSize);
  return predictor;
}

int64_t product(const std::vector<int64_t>& values) {
  return std::accumulate(values.begin(), values.end(), int64_t{1}, std::multiplies<>());
}

// Three or four ratios of at most 64 each: their product cannot overflow.
std::vector<int64_t> read_ratios(const Reader& reader, const char* key) {
  std::vector<int64_t> ratios = reader.sizes(key, 1, kMostRatio);
  if (ratios.size() > 8) reader.refuse(key, "must have at most 8 ratios");
  return ratios;
}

CodecDecoderConfig read_decoder(const Reader& reader) {
  CodecDecoderConfig decoder;
  decoder.stack = read_stack(reader, "rms_norm_eps", 1e-5, 1e4);
  need_word(reader, "hidden_act", "silu");
  decoder.window = reader.size("sliding_window", 1, kMostSize);
  decoder.codebook_dim = reader.size("codebook_dim", 2, kMostChannels);
  if (decoder.codebook_dim % 2 != 0) reader.refuse("codebook_dim", "must be even: entries are half as wide");
  decoder.codebook_size = reader.size("codebook_size", 1, kMostSize);
  decoder.latent = reader.size("latent_dim", 1, kMostChannels);
  decoder.width = reader.size("decoder_dim", 1, kMostChannels);
  need_number(reader, "num_quantizers", kCodebooks);
  decoder.upsampling_ratios = read_ratios(reader, "upsampling_ratios");
  decoder.upsample_rates = read_ratios(reader, "upsample_rates");
  if (product(decoder.upsampling_ratios) * product(decoder.upsample_rates) != kFrameSamples) {
    reader.refuse("upsample_rates", "times upsampling_ratios must be " + std::to_string(kFrameSamples) + " samples of a frame");
  }
  if (decoder.width % (int64_t{1} << decoder.upsample_rates.size()) != 0) {
    reader.refuse("decoder_dim", "must halve once for each of upsample_rates");
  }
  return decoder;
}

CodecEncoderConfig read_encoder(const Reader& reader) {
  CodecEncoderConfig encoder;
  encoder.stack = read_stack(reader, "norm_eps", 1e-5, 1e4);
  need_word(reader, "hidden_act", "gelu");
  need_word(reader, "pad_mode", "constant");
  need_number(reader, "kernel_size", 7);
  need_number(reader, "last_kernel_size", 3);
  need_number(reader, "residual_kernel_size", 3);
  need_number(reader, "compress", 2);
  need_number(reader, "num_residual_layers", 1);
  need_number(reader, "audio_channels", 1);
  encoder.filters = reader.size("num_filters", 64, 2, kMostChannels);
  encoder.codebook_dim = reader.size("codebook_dim", 1, kMostChannels);
  encoder.codebook_size = reader.size("codebook_size", 1, kMostSize);
  encoder.semantic_quantisers = reader.size("num_semantic_quantizers", 1, 1, 1);
  encoder.quantisers = reader.size("num_quantizers", kCodebooks, kMostChannels);
  encoder.ratios = read_ratios(reader, "upsampling_ratios");
  // The downsampling behind the transformer halves the rate once more.
  if (2 * product(encoder.ratios) != kFrameSamples) {
    reader.refuse("upsampling_ratios", "must multiply to " + std::to_string(kFrameSamples / 2));
  }
  return encoder;
}

SpeakerEncoderConfig read_speaker_encoder(const Reader& reader, int64_t talker_hidden) {
  SpeakerEncoderConfig speaker;
  need_number(reader, "sample_rate", kSampleRate);
  speaker.dim = reader.size("enc_dim", 1, kMostChannels);
  if (speaker.dim != talker_hidden) reader.refuse("enc_dim", "must be hidden_size of the talker, " + std::to_string(talker_hidden));
  speaker.mels = reader.size("mel_dim", 128, 1, 512);
  speaker.attention_channels = reader.size("enc_attention_channels", 128, 1, kMostChannels);
  speaker.res2net_scale = reader.size("enc_res2net_scale", 8, 2, 64);
  speaker.se_channels = reader.size("enc_se_channels", 128, 1, kMostChannels);
  const auto list = [&](const char* key, std::vector<int64_t> otherwise, int64_t most) {
    std::vector<int64_t> values = reader.has(key) ? reader.sizes(key, 1, most) : std::move(otherwise);
    if (values.size() != 5) reader.refuse(key, "must have 5 entries");
    return values;
  };
  speaker.channels = list("enc_channels", {512, 512, 512, 512, 1536}, kMostChannels);
  speaker.kernels = list("enc_kernel_sizes", {5, 3, 3, 3, 1}, kMostRatio);
  speaker.dilations = list("enc_dilations", {1, 2, 3, 4, 1}, kMostRatio);
  for (const int64_t kernel : speaker.kernels) {
    if (kernel % 2 == 0) reader.refuse("enc_kernel_sizes", "must be odd");
  }
  const auto& channels = speaker.channels;
  if (std::adjacent_find(channels.begin(), channels.end() - 1, std::not_equal_to<>()) != channels.end() - 1 ||
      channels[4] != 3 * channels[0]) {
    reader.refuse("enc_channels", "must be four equal widths, then their threefold");
  }
  if (channels[0] % speaker.res2net_scale != 0) reader.refuse("enc_res2net_scale", "must divide enc_channels");
  return speaker;
}

ModelType read_type(const Reader& root) {
  const std::string type = root.word("tts_model_type");
  if (type == "base") return ModelType::kBase;
  if (type == "custom_voice") return ModelType::kCustomVoice;
  if (type != "voice_design") root.refuse("tts_model_type", "must be base, custom_voice or voice_design");
  return ModelType::kVoiceDesign;
}

// Codes go from one part to the next, so every part must have as many.
void check_codes(const Reader& talker, const Reader& predictor, const Reader& encoder, const Config& config) {
  const int64_t codes = config.decoder.codebook_size;
  const std::string there = "of the speech tokenizer's codebook_size " + std::to_string(codes);
  if (config.talker.vocabulary - kControlIds != codes) {
    talker.refuse("vocab_size", "must be the sum of 1024 control ids and " + there);
  }
  if (config.predictor.vocabulary != codes) predictor.refuse("vocab_size", "must be that " + there);
  if (config.encoder.codebook_size != codes) encoder.refuse("codebook_size", "must be that " + there);
}

void read_text_ids(const Reader& root, Config* config) {
  const auto id = [&](const char* key) { return read_id(root, key, config->talker.text_vocabulary); };
  config->im_start = id("im_start_token_id");
  config->im_end = id("im_end_token_id");
  config->assistant = id("assistant_token_id");
  config->tts_pad = id("tts_pad_token_id");
  config->tts_bos = id("tts_bos_token_id");
  config->tts_eos = id("tts_eos_token_id");
}

}  // namespace

Config read_config(const json& object, const std::string& name) {
  const Reader root(object, name);
  if (root.word("model_type") != "qwen3_tts") root.refuse("model_type", "must be qwen3_tts");
  if (root.word("tokenizer_type") != "qwen3_tts_tokenizer_12hz") {
    root.refuse("tokenizer_type", "must be qwen3_tts_tokenizer_12hz");
  }
  Config config;
  config.type = read_type(root);
  config.size = root.word("tts_model_size");
  if (config.size != "0b6" && config.size != "1b7") root.refuse("tts_model_size", "must be 0b6 or 1b7");

  const Reader talker = root.object("talker_config");
  config.talker = read_talker(talker);
  const Reader predictor = talker.object("code_predictor_config");
  config.predictor = read_predictor(predictor);
  read_text_ids(root, &config);

  if (!root.has("speech_tokenizer")) root.refuse("speech_tokenizer", "is absent: speech_tokenizer/config.json belongs to a model");
  const Reader speech = root.object("speech_tokenizer");
  if (speech.word("model_type") != "qwen3_tts_tokenizer_12hz") speech.refuse("model_type", "must be qwen3_tts_tokenizer_12hz");
  need_number(speech, "encoder_valid_num_quantizers", kCodebooks);
  need_number(speech, "input_sample_rate", kSampleRate);
  need_number(speech, "output_sample_rate", kSampleRate);
  need_number(speech, "decode_upsample_rate", kFrameSamples);
  need_number(speech, "encode_downsample_rate", kFrameSamples);
  config.decoder = read_decoder(speech.object("decoder_config"));
  const Reader encoder = speech.object("encoder_config");
  config.encoder = read_encoder(encoder);
  check_codes(talker, predictor, encoder, config);

  // Others carry no weights for it, whatever their config says.
  if (config.type == ModelType::kBase) {
    config.speaker_encoder = read_speaker_encoder(root.object("speaker_encoder_config"), config.talker.stack.hidden);
  }
  return config;
}

}  // namespace ref::tts
