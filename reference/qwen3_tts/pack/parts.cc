// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/pack/parts.h"

namespace ref::tts {

using Role = PartPlain::Role;

void PartList::linear(const std::string& name, int64_t n, int64_t k, bool biased) {
  parts_.matrices.push_back({.name = name, .part = part_, .n = n, .k = k, .pieces = {{name, n}}});
  if (biased) plain(name + ".bias", {n}, Role::kBias);
}

void PartList::convolution(const std::string& name, int64_t outputs, int64_t inputs, int64_t taps, bool biased) {
  linear(name, outputs, taps * inputs, biased);
  PartMatrix& matrix = parts_.matrices.back();
  matrix.form = PartMatrix::Form::kConvolution;
  matrix.taps = taps;
}

void PartList::transposed(const std::string& name, int64_t outputs, int64_t inputs, int64_t taps, int64_t stride) {
  linear(name, stride * outputs, taps * inputs);
  PartMatrix& matrix = parts_.matrices.back();
  matrix.form = PartMatrix::Form::kTransposed;
  matrix.taps = taps;
  matrix.stride = stride;
  plain(name + ".bias", {outputs}, Role::kBias);
}

void PartList::stack(const std::string& prefix, const std::string& name, int64_t k, const std::vector<PartMatrix::Piece>& pieces) {
  PartMatrix matrix{.name = prefix + name, .part = part_, .n = 0, .k = k, .pieces = {}};
  for (const PartMatrix::Piece& piece : pieces) {
    matrix.n += piece.rows;
    matrix.pieces.push_back({prefix + piece.module, piece.rows});
  }
  parts_.matrices.push_back(std::move(matrix));
}

void PartList::plain(const std::string& name, std::vector<int64_t> shape, Role role) {
  parts_.plains.push_back({.name = name, .part = part_, .shape = std::move(shape), .role = role});
}

void PartList::table(const std::string& name, std::vector<int64_t> shape, bool lookup) {
  plain(name, std::move(shape), Role::kRows);
  parts_.plains.back().lookup = lookup;
}

void PartList::codebook(const std::string& quantiser, const std::string& levels, const std::string& sum, const std::string& usage,
                        std::vector<int64_t> shape) {
  plain(quantiser + ".codebook", std::move(shape), Role::kCodebook);
  PartPlain& plain = parts_.plains.back();
  plain.prefix = quantiser + levels;
  plain.sum = sum;
  plain.usage = usage;
}

void PartList::attention(const std::string& prefix, const StackShape& shape) {
  stack(prefix, "q_k_v_proj", shape.hidden,
        {{"q_proj", shape.q_width()}, {"k_proj", shape.kv_width()}, {"v_proj", shape.kv_width()}});
  linear(prefix + "o_proj", shape.hidden, shape.q_width());
}

void PartList::swiglu(const std::string& prefix, const StackShape& shape) {
  stack(prefix, "gate_up_proj", shape.hidden, {{"gate_proj", shape.intermediate}, {"up_proj", shape.intermediate}});
  linear(prefix + "down_proj", shape.hidden, shape.intermediate);
}

Parts parts_of(const Config& config, bool encoders) {
  Parts parts;
  add_language_parts(config, &parts);
  add_decoder_parts(config.decoder, &parts);
  if (!encoders) return parts;
  add_encoder_parts(config.encoder, &parts);
  if (config.speaker_encoder) add_speaker_parts(*config.speaker_encoder, &parts);
  return parts;
}

}  // namespace ref::tts
