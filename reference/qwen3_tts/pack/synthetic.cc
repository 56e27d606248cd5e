// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/pack/synthetic.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "reference/io/checkpoint.h"
#include "reference/qwen3_tts/config.h"
#include "reference/qwen3_tts/pack/part_wishes.h"
#include "reference/qwen3_tts/pack/parts.h"
#include "reference/text/byte_level.h"

namespace ref::tts {
namespace {

using nlohmann::json;
using Role = PartPlain::Role;

bool is_codec(Part part) { return part == Part::kDecoder || part == Part::kEncoder; }

// 1 / sqrt(k) keeps the size of what goes through. Others: logits with a few nats of entropy, as those of trained heads have;
// residual units that do not outgrow their input; samples that are mostly below 0.5.
double deviation_of(const PartMatrix& matrix) {
  double factor = 1;
  if (matrix.part == Part::kHead || matrix.part == Part::kPredictorHead) factor = 3;
  if (matrix.part == Part::kDecoder && matrix.name.ends_with(".conv2.conv")) factor = 0.3;
  if (matrix.part == Part::kDecoder && matrix.n == 1) factor = 0.1;
  return factor / std::sqrt(static_cast<double>(matrix.k));
}

struct Spread {
  double mean, deviation;
};
Spread spread_of(const PartPlain& plain) {
  switch (plain.role) {
    case Role::kGain:
      return {1, 0};
    case Role::kBias:
      return {0, 0.02};
    case Role::kRows:  // 16 rows of codes are summed up, beside one of text
      return {0, plain.lookup ? 1.0 : 0.25};
    case Role::kScale:
      return {0.05, 0};
    case Role::kSnake:
      return {0, 0.1};
    case Role::kDepthwise:
      return {0, 1 / std::sqrt(static_cast<double>(plain.shape[0]))};
    case Role::kCodebook:  // entries of all levels are summed up
      break;
  }
  return {0, 1 / std::sqrt(static_cast<double>(plain.shape[0]))};
}

PlainPlan plain_plan(const std::string& name, Part part, std::vector<int64_t> shape, Spread spread) {
  PlainPlan plan{.name = name, .shape = std::move(shape), .mean = spread.mean, .deviation = spread.deviation};
  if (is_codec(part)) plan.type = OMNI_DTYPE_F32;
  return plan;
}

// Tensors of a checkpoint.
class CheckpointPlanner {
 public:
  std::vector<PackPlan> run(const Parts& parts) {
    for (const PartMatrix& matrix : parts.matrices) add(matrix);
    for (const PartPlain& plain : parts.plains) add(plain);
    return {std::move(model_), std::move(codec_)};
  }

 private:
  void add(const std::string& name, Part part, std::vector<int64_t> shape, Spread spread) {
    (is_codec(part) ? codec_ : model_).plains.push_back(plain_plan(name, part, std::move(shape), spread));
  }

  void add(const PartMatrix& matrix) {
    for (const PartMatrix::Piece& piece : matrix.pieces) {
      std::vector<int64_t> shape = {piece.rows, matrix.k};
      if (matrix.form == PartMatrix::Form::kConvolution) shape = {piece.rows, matrix.inputs(), matrix.taps};
      if (matrix.form == PartMatrix::Form::kTransposed) {
        shape = {matrix.inputs(), piece.rows / matrix.stride, matrix.stride * matrix.taps};
      }
      add(piece.module + ".weight", matrix.part, std::move(shape), {0, deviation_of(matrix)});
    }
  }

  void add(const PartPlain& plain) {
    const Spread spread = spread_of(plain);
    if (plain.role == Role::kDepthwise) return add(plain.name, plain.part, {plain.shape[1], 1, plain.shape[0]}, spread);
    if (plain.role != Role::kCodebook) return add(plain.name, plain.part, plain.shape, spread);
    for (int64_t level = 0; level < plain.shape[0]; ++level) {
      const std::string prefix = plain.prefix + std::to_string(level);
      add(prefix + plain.sum, plain.part, {plain.shape[1], plain.shape[2]}, spread);
      add(prefix + plain.usage, plain.part, {plain.shape[1]}, {1, 0});
    }
  }

  PackPlan model_{.file = "model.safetensors", .facts = {{"format", "pt"}}};
  PackPlan codec_{.file = std::string(kSpeechTokenizer) + "/model.safetensors", .facts = {{"format", "pt"}}};
};

// The order of bytes in GPT-2's vocabularies: those that are printable first.
std::vector<std::string> byte_tokens() {
  std::vector<std::string> printable, others;
  for (int byte = 0; byte < 256; ++byte) {
    std::string token = to_byte_level(std::string(1, static_cast<char>(byte)));
    const bool itself = (byte > ' ' && byte < 0x7F) || (byte > 0xA0 && byte != 0xAD);
    (itself ? printable : others).push_back(std::move(token));
  }
  printable.insert(printable.end(), others.begin(), others.end());
  return printable;
}

struct Vocabulary {
  json tokens = json::object();
  std::string merges = "#version: 0.2\n";
  int64_t next = 0;

  // A word with the merges that make it of its letters, and the id of the whole.
  void add_word(const std::string& word, int64_t id) {
    for (size_t length = 2; length <= word.size(); ++length) {
      merges += word.substr(0, length - 1) + " " + word[length - 1] + "\n";
      tokens[word.substr(0, length)] = length == word.size() ? id : next++;
    }
  }
};

json added_tokens(const json& config) {
  const std::map<std::string, const char*> known = {{"<|im_start|>", "im_start_token_id"},
                                                    {"<|im_end|>", "im_end_token_id"},
                                                    {"<tts_pad>", "tts_pad_token_id"},
                                                    {"<tts_text_bos>", "tts_bos_token_id"},
                                                    {"<tts_text_eod>", "tts_eos_token_id"}};
  json added = json::object();
  for (const auto& [text, key] : known) {
    added[std::to_string(config[key].get<int64_t>())] = {{"content", text}, {"lstrip", false},      {"normalized", false},
                                                         {"rstrip", false}, {"single_word", false}, {"special", true}};
  }
  return added;
}

}  // namespace

std::map<std::string, std::string> synthetic_files(const json& config) {
  Vocabulary vocabulary;
  for (const std::string& token : byte_tokens()) vocabulary.tokens[token] = vocabulary.next++;
  vocabulary.add_word("assistant", config["assistant_token_id"]);
  vocabulary.add_word("user", vocabulary.next + 2);
  const json generation = {
      {"do_sample", true},     {"repetition_penalty", 1.05}, {"temperature", 0.9},           {"top_p", 1.0},
      {"top_k", 50},           {"subtalker_dosample", true}, {"subtalker_temperature", 0.9}, {"subtalker_top_p", 1.0},
      {"subtalker_top_k", 50}, {"max_new_tokens", 8192}};
  const json tokenizer = {{"added_tokens_decoder", added_tokens(config)}, {"tokenizer_class", "Qwen2Tokenizer"}};
  return {{"generation_config.json", generation.dump(2) + "\n"},
          {"vocab.json", vocabulary.tokens.dump() + "\n"},
          {"merges.txt", vocabulary.merges},
          {"tokenizer_config.json", tokenizer.dump(2) + "\n"}};
}

PackPlan plan_synthetic(const json& config, const PackOptions& options) {
  PackPlan plan;
  plan.facts = part_facts(options);
  plan.facts["source"] = "random weights";
  const Parts parts = parts_of(read_config(config, "synthetic model"), options.speech.encoders);
  for (const PartMatrix& matrix : parts.matrices) {
    MatrixWish wish = part_wish(options, matrix.part, is_codec(matrix.part));
    if (is_kept(options, matrix.name)) wish.type = WeightType::kKeep;
    plan.matrices.push_back(plan_random(matrix.name, matrix.n, matrix.k, wish, deviation_of(matrix)));
    plan.matrices.back().seldom = is_encoder(matrix.part);
  }
  for (const PartPlain& plain : parts.plains) {
    plan.plains.push_back(plain_plan(plain.name, plain.part, plain.shape, spread_of(plain)));
    if (plain.role == Role::kDepthwise) plan.plains.back().type = OMNI_DTYPE_F32;
    plan.plains.back().lookup = plain.lookup;
    plan.plains.back().seldom = is_encoder(plain.part);
  }
  return plan;
}

std::vector<PackPlan> plan_synthetic_checkpoint(const json& config) {
  return CheckpointPlanner().run(parts_of(read_config(config, "synthetic model"), true));
}

}  // namespace ref::tts
