// SPDX-License-Identifier: Apache-2.0
// What reads a reference recording: the codec's encoder and the speaker encoder.
#include "reference/qwen3_tts/pack/parts.h"

namespace ref::tts {
namespace {

using Role = PartPlain::Role;

void add_seanet(const CodecEncoderConfig& config, PartList list) {
  const std::string prefix = "encoder.encoder.layers.";
  int64_t index = 0, channels = config.filters;
  const auto at = [&](int64_t layer) { return prefix + std::to_string(layer) + "."; };
  list.convolution(at(index++) + "conv", channels, 1, 7);
  for (auto ratio = config.ratios.rbegin(); ratio != config.ratios.rend(); ++ratio) {
    list.convolution(at(index) + "block.1.conv", channels / 2, channels, 3);
    list.convolution(at(index) + "block.3.conv", channels, channels / 2, 1);
    list.convolution(at(index + 2) + "conv", 2 * channels, channels, 2 * *ratio);  // behind an ELU
    channels *= 2;
    index += 3;
  }
  list.convolution(at(index + 1) + "conv", config.stack.hidden, channels, 3);
}

void add_transformer(const StackShape& shape, PartList list) {
  for (int64_t i = 0; i < shape.layers; ++i) {
    const std::string layer = "encoder.encoder_transformer.layers." + std::to_string(i) + ".";
    for (const char* norm : {"input_layernorm", "post_attention_layernorm"}) {
      list.plain(layer + norm + ".weight", {shape.hidden}, Role::kGain);
      list.plain(layer + norm + ".bias", {shape.hidden}, Role::kBias);
    }
    list.attention(layer + "self_attn.", shape);
    list.plain(layer + "self_attn_layer_scale.scale", {shape.hidden}, Role::kScale);
    list.linear(layer + "mlp.fc1", shape.intermediate, shape.hidden);
    list.linear(layer + "mlp.fc2", shape.hidden, shape.intermediate);
    list.plain(layer + "mlp_layer_scale.scale", {shape.hidden}, Role::kScale);
  }
}

}  // namespace

void add_encoder_parts(const CodecEncoderConfig& config, Parts* parts) {
  PartList list(parts, Part::kEncoder);
  const int64_t hidden = config.stack.hidden;
  add_seanet(config, list);
  add_transformer(config.stack, list);
  list.convolution("encoder.downsample.conv", hidden, hidden, 4, false);
  for (const auto& [name, levels] : {std::pair<const char*, int64_t>{"semantic", 1}, {"acoustic", kCodebooks - 1}}) {
    const std::string quantiser = std::string("encoder.quantizer.") + name + "_residual_vector_quantizer";
    list.convolution(quantiser + ".input_proj", config.codebook_dim, hidden, 1, false);
    list.codebook(quantiser, ".layers.", ".codebook.embed_sum", ".codebook.cluster_usage",
                  {levels, config.codebook_size, config.codebook_dim});
  }
}

void add_speaker_parts(const SpeakerEncoderConfig& config, Parts* parts) {
  PartList list(parts, Part::kSpeaker);
  const std::string prefix = "speaker_encoder.";
  const int64_t channels = config.channels[0], last = config.channels[4], part = channels / config.res2net_scale;
  list.convolution(prefix + "blocks.0.conv", channels, config.mels, config.kernels[0]);
  for (size_t block = 1; block <= 3; ++block) {
    const std::string inner = prefix + "blocks." + std::to_string(block) + ".";
    list.convolution(inner + "tdnn1.conv", channels, channels, 1);
    for (int64_t i = 0; i + 1 < config.res2net_scale; ++i) {
      list.convolution(inner + "res2net_block.blocks." + std::to_string(i) + ".conv", part, part, config.kernels[block]);
    }
    list.convolution(inner + "tdnn2.conv", channels, channels, 1);
    list.convolution(inner + "se_block.conv1", config.se_channels, channels, 1);
    list.convolution(inner + "se_block.conv2", channels, config.se_channels, 1);
  }
  list.convolution(prefix + "mfa.conv", last, 3 * channels, config.kernels[4]);
  list.convolution(prefix + "asp.tdnn.conv", config.attention_channels, 3 * last, 1);
  list.convolution(prefix + "asp.conv", last, config.attention_channels, 1);
  list.convolution(prefix + "fc", config.dim, 2 * last, 1);
}

}  // namespace ref::tts
