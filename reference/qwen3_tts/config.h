// SPDX-License-Identifier: Apache-2.0
// What the config files of a Qwen3-TTS model (12 Hz) say.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

namespace ref::tts {

inline constexpr int64_t kCodebooks = 16;       // codes of a frame
inline constexpr int64_t kSampleRate = 24000;   // of everything that is heard
inline constexpr int64_t kFrameSamples = 1920;  // 80 ms
inline constexpr double kFramesPerSecond = 12.5;
inline constexpr int64_t kControlIds = 1024;  // of the talker's vocabulary, behind the codes of codebook 0

using Frame = std::array<int32_t, kCodebooks>;

// A stack of pre-norm layers with grouped-query attention and SwiGLU.
struct StackShape {
  int64_t hidden = 0, intermediate = 0, layers = 0, heads = 0, kv_heads = 0, head_dim = 0;
  double eps = 0, theta = 0;

  int64_t q_width() const { return heads * head_dim; }
  int64_t kv_width() const { return kv_heads * head_dim; }
  int64_t qkv_rows() const { return q_width() + 2 * kv_width(); }
};

struct TalkerConfig {
  StackShape stack;
  int64_t vocabulary = 0;  // codec ids: codes of codebook 0, then control ids
  int64_t text_vocabulary = 0, text_hidden = 0;
  int64_t positions = 0;  // max_position_embeddings
  int32_t pad = 0, bos = 0, eos = 0, think = 0, nothink = 0, think_bos = 0, think_eos = 0;
  std::map<std::string, int32_t> languages;     // by lower-case name; dialects too
  std::map<std::string, int32_t> speakers;      // by lower-case name
  std::map<std::string, std::string> dialects;  // speaker to dialect, for those that have one
};

struct PredictorConfig {
  StackShape stack;
  int64_t vocabulary = 0;  // codes of a codebook
};

struct CodecDecoderConfig {
  StackShape stack;                                                                // hidden, intermediate, ... of the transformer
  int64_t window = 0, codebook_dim = 0, codebook_size = 0, latent = 0, width = 0;  // width: decoder_dim
  std::vector<int64_t> upsampling_ratios, upsample_rates;
};

struct CodecEncoderConfig {
  StackShape stack;
  int64_t filters = 0, codebook_dim = 0, codebook_size = 0, quantisers = 0, semantic_quantisers = 0;
  std::vector<int64_t> ratios;  // as in the file: the encoder takes them from the last
};

struct SpeakerEncoderConfig {
  int64_t dim = 0, mels = 128, attention_channels = 128, res2net_scale = 8, se_channels = 128;
  std::vector<int64_t> channels, kernels, dilations;
};

enum class ModelType : uint8_t { kBase, kCustomVoice, kVoiceDesign };

struct Config {
  ModelType type = ModelType::kBase;
  std::string size;                                                                        // "0b6" or "1b7"
  int32_t im_start = 0, im_end = 0, assistant = 0, tts_pad = 0, tts_bos = 0, tts_eos = 0;  // of the text vocabulary
  TalkerConfig talker;
  PredictorConfig predictor;
  CodecDecoderConfig decoder;
  CodecEncoderConfig encoder;
  std::optional<SpeakerEncoderConfig> speaker_encoder;  // Base only

  bool projects() const { return predictor.stack.hidden != talker.stack.hidden; }  // small_to_mtp_projection
  // The 0.6B models were not trained for instructions.
  bool takes_instruct() const { return type != ModelType::kBase && size != "0b6"; }
};

// `config` is config.json of the model with speech_tokenizer/config.json under "speech_tokenizer", as ModelWeights::config has it.
// Throws Error naming `name`, the key and its value for what is absent, of another type or out of range (an eos outside of the
// vocabulary, an unknown tts_model_type, tokenizer_type or speech tokenizer).
Config read_config(const nlohmann::json& config, const std::string& name);

}  // namespace ref::tts
