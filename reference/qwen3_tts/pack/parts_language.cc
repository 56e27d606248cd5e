// SPDX-License-Identifier: Apache-2.0
// Talker and code predictor.
#include "reference/qwen3_tts/pack/parts.h"

namespace ref::tts {
namespace {

using Role = PartPlain::Role;

// Layers and final norm below "X.model.".
void add_stack(const std::string& prefix, const StackShape& shape, PartList list) {
  for (int64_t i = 0; i < shape.layers; ++i) {
    const std::string layer = prefix + "layers." + std::to_string(i) + ".";
    list.plain(layer + "input_layernorm.weight", {shape.hidden}, Role::kGain);
    list.attention(layer + "self_attn.", shape);
    list.plain(layer + "self_attn.q_norm.weight", {shape.head_dim}, Role::kGain);
    list.plain(layer + "self_attn.k_norm.weight", {shape.head_dim}, Role::kGain);
    list.plain(layer + "post_attention_layernorm.weight", {shape.hidden}, Role::kGain);
    list.swiglu(layer + "mlp.", shape);
  }
  list.plain(prefix + "norm.weight", {shape.hidden}, Role::kGain);
}

}  // namespace

void add_language_parts(const Config& config, Parts* parts) {
  const TalkerConfig& talker = config.talker;
  const int64_t hidden = talker.stack.hidden, text = talker.text_hidden;
  add_stack("talker.model.", talker.stack, PartList(parts, Part::kTalker));
  PartList(parts, Part::kHead).linear("talker.codec_head", talker.vocabulary, hidden);
  PartList rows(parts, Part::kText);
  rows.linear("talker.text_projection.linear_fc1", text, text, true);
  rows.linear("talker.text_projection.linear_fc2", hidden, text, true);
  rows.table("talker.model.codec_embedding.weight", {talker.vocabulary, hidden}, false);
  rows.table("talker.model.text_embedding.weight", {talker.text_vocabulary, text}, true);

  const std::string prefix = "talker.code_predictor.";
  const StackShape& stack = config.predictor.stack;
  add_stack(prefix + "model.", stack, PartList(parts, Part::kPredictor));
  if (config.projects()) {
    PartList(parts, Part::kPredictorInput).linear(prefix + "small_to_mtp_projection", stack.hidden, hidden, true);
  }
  PartList heads(parts, Part::kPredictorHead);
  for (int64_t j = 0; j + 1 < kCodebooks; ++j) {
    const std::string index = std::to_string(j);
    heads.linear(prefix + "lm_head." + index, config.predictor.vocabulary, stack.hidden);
    // As wide as the talker: its rows are summed up for it.
    rows.table(prefix + "model.codec_embedding." + index + ".weight", {config.predictor.vocabulary, hidden}, false);
  }
}

}  // namespace ref::tts
