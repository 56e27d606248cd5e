// SPDX-License-Identifier: Apache-2.0
// The codec's decoder.
#include "reference/qwen3_tts/pack/parts.h"

namespace ref::tts {
namespace {

using Role = PartPlain::Role;

void add_codebooks(const CodecDecoderConfig& config, PartList list) {
  // Entries are half as wide as what is made of them.
  const int64_t width = config.codebook_dim / 2;
  for (const auto& [name, levels] : {std::pair<const char*, int64_t>{"rvq_first", 1}, {"rvq_rest", kCodebooks - 1}}) {
    const std::string quantiser = std::string("decoder.quantizer.") + name;
    list.codebook(quantiser, ".vq.layers.", "._codebook.embedding_sum", "._codebook.cluster_usage",
                  {levels, config.codebook_size, width});
    list.convolution(quantiser + ".output_proj", config.codebook_dim, width, 1, false);
  }
}

void add_transformer(const CodecDecoderConfig& config, PartList list) {
  const std::string prefix = "decoder.pre_transformer.";
  const StackShape& shape = config.stack;
  list.linear(prefix + "input_proj", shape.hidden, config.latent, true);
  for (int64_t i = 0; i < shape.layers; ++i) {
    const std::string layer = prefix + "layers." + std::to_string(i) + ".";
    list.plain(layer + "input_layernorm.weight", {shape.hidden}, Role::kGain);
    list.attention(layer + "self_attn.", shape);
    list.plain(layer + "self_attn_layer_scale.scale", {shape.hidden}, Role::kScale);
    list.plain(layer + "post_attention_layernorm.weight", {shape.hidden}, Role::kGain);
    list.swiglu(layer + "mlp.", shape);
    list.plain(layer + "mlp_layer_scale.scale", {shape.hidden}, Role::kScale);
  }
  list.plain(prefix + "norm.weight", {shape.hidden}, Role::kGain);
  list.linear(prefix + "output_proj", config.latent, shape.hidden, true);
}

// A transposed convolution whose kernel is its stride, and a ConvNeXt block.
void add_upsampling(const std::string& prefix, int64_t width, int64_t ratio, PartList list) {
  list.transposed(prefix + "0.conv", width, width, 1, ratio);
  const std::string block = prefix + "1.";
  list.plain(block + "dwconv.conv.weight", {7, width}, Role::kDepthwise);
  list.plain(block + "dwconv.conv.bias", {width}, Role::kBias);
  list.plain(block + "norm.weight", {width}, Role::kGain);
  list.plain(block + "norm.bias", {width}, Role::kBias);
  list.linear(block + "pwconv1", 4 * width, width, true);
  list.linear(block + "pwconv2", width, 4 * width, true);
  list.plain(block + "gamma", {width}, Role::kScale);
}

void add_snake(const std::string& prefix, int64_t channels, PartList list) {
  list.plain(prefix + "alpha", {channels}, Role::kSnake);
  list.plain(prefix + "beta", {channels}, Role::kSnake);
}

void add_block(const std::string& prefix, int64_t channels, int64_t rate, PartList list) {
  const int64_t outputs = channels / 2;
  add_snake(prefix + "0.", channels, list);
  list.transposed(prefix + "1.conv", outputs, channels, 2, rate);
  for (int unit = 2; unit <= 4; ++unit) {
    const std::string residual = prefix + std::to_string(unit) + ".";
    add_snake(residual + "act1.", outputs, list);
    list.convolution(residual + "conv1.conv", outputs, outputs, 7);
    add_snake(residual + "act2.", outputs, list);
    list.convolution(residual + "conv2.conv", outputs, outputs, 1);
  }
}

}  // namespace

void add_decoder_parts(const CodecDecoderConfig& config, Parts* parts) {
  PartList list(parts, Part::kDecoder);
  add_codebooks(config, list);
  list.convolution("decoder.pre_conv.conv", config.latent, config.codebook_dim, 3);
  add_transformer(config, list);
  for (size_t i = 0; i < config.upsampling_ratios.size(); ++i) {
    add_upsampling("decoder.upsample." + std::to_string(i) + ".", config.latent, config.upsampling_ratios[i], list);
  }
  int64_t index = 0, channels = config.width;
  const auto next = [&index] { return "decoder.decoder." + std::to_string(index++) + "."; };
  list.convolution(next() + "conv", channels, config.latent, 7);
  for (const int64_t rate : config.upsample_rates) {
    add_block(next() + "block.", channels, rate, list);
    channels /= 2;
  }
  add_snake(next(), channels, list);
  list.convolution(next() + "conv", 1, channels, 7);
}

}  // namespace ref::tts
