// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/pack/pack_plan.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "reference/core/error.h"
#include "reference/io/quant_config.h"
#include "reference/pack/source_scan.h"
#include "reference/pack/tensor_use.h"
#include "reference/qwen3_tts/pack/codebook.h"
#include "reference/qwen3_tts/pack/part_wishes.h"
#include "reference/qwen3_tts/pack/parts.h"

namespace ref::tts {
namespace {

constexpr const char* kEncoderPrefix = "encoder.";
constexpr const char* kSpeakerPrefix = "speaker_encoder.";

[[noreturn]] void refuse_calibration(const std::string& name) {
  throw Error(name + ": model type qwen3_tts cannot be calibrated with a text, so that gptq and --calibrate are not for it");
}

// Without a speech tokenizer its config is missed first; the directory says more.
Config read_checked(const Checkpoint& checkpoint, const nlohmann::json& root, const std::string& name) {
  if (!root.contains(kSpeechTokenizer)) {
    throw Error((checkpoint.directory() / kSpeechTokenizer).string() +
                ": is absent, but a Qwen3-TTS model needs its speech tokenizer");
  }
  return read_config(root, name);
}

// What training leaves in a checkpoint and speech has no use for: the projections of the other direction of each quantiser, levels
// behind the sixteenth, and flags.
bool is_leftover(const std::string& tensor) {
  if (tensor.starts_with("decoder.quantizer.")) return tensor.ends_with(".input_proj.weight");
  if (!tensor.starts_with("encoder.quantizer.")) return false;
  return tensor.ends_with(".output_proj.weight") || tensor.ends_with(".codebook.initialized") ||
         tensor.ends_with(".codebook.embed_sum") || tensor.ends_with(".codebook.cluster_usage");
}

class Planner {
 public:
  Planner(const Checkpoint& checkpoint, const nlohmann::json& root, const PackOptions& options)
      : checkpoint_(checkpoint),
        name_((checkpoint.directory() / "config.json").string()),
        config_(read_checked(checkpoint, root, name_)),
        quant_(read_quant_config(root, name_)),
        options_(options) {}

  PackPlan run() {
    if (options_.quantiser == Quantiser::kGptq) refuse_calibration(name_);
    const Parts parts = parts_of(config_, options_.speech.encoders);
    for (const PartMatrix& matrix : parts.matrices) add_matrix(matrix);
    for (const PartPlain& plain : parts.plains) add_plain(plain);
    plan_.facts = part_facts(options_);
    plan_.facts["source"] = quant_ ? method_name(*quant_) : checkpoint_.at("talker.model.text_embedding.weight").dtype();
    add_notes();
    return std::move(plan_);
  }

 private:
  LinearSource find(const PartMatrix& matrix, const PartMatrix::Piece& piece) {
    use_.add_module(piece.module);
    switch (matrix.form) {
      case PartMatrix::Form::kConvolution:
        return find_convolution(checkpoint_, piece.module, piece.rows, matrix.inputs(), matrix.taps);
      case PartMatrix::Form::kTransposed:
        return find_transposed(checkpoint_, piece.module, piece.rows / matrix.stride, matrix.inputs(), matrix.taps, matrix.stride);
      case PartMatrix::Form::kLinear:
        break;
    }
    return find_linear(checkpoint_, quant_, piece.module, piece.rows, matrix.k);
  }

  // A stack is one matrix of one form, so that a pattern for one of its modules is for all.
  bool is_kept_in_whole(const PartMatrix& matrix) const {
    return is_kept(options_, matrix.name) || std::any_of(matrix.pieces.begin(), matrix.pieces.end(),
                                                         [&](const auto& piece) { return is_kept(options_, piece.module); });
  }

  void add_matrix(const PartMatrix& matrix) {
    std::vector<LinearSource> sources;
    for (const PartMatrix::Piece& piece : matrix.pieces) sources.push_back(find(matrix, piece));
    const LinearSource& first = sources.front();
    MatrixWish wish = part_wish(options_, matrix.part, first.dense != nullptr && first.dense->dtype() == "F32");
    if (is_kept_in_whole(matrix)) wish.type = WeightType::kKeep;
    for (const LinearSource& source : sources) {
      if (can_stack(first, wish, source, wish)) continue;
      throw Error(checkpoint_.directory().string() + ": modules \"" + first.name + "\" and \"" + source.name +
                  "\" are quantised in forms that one matrix cannot hold");
    }
    const bool int4 = first.dense == nullptr;
    plan_.matrices.push_back(plan_matrix(matrix.name, std::move(sources), wish));
    MatrixPlan& plan = plan_.matrices.back();
    plan.seldom = is_encoder(matrix.part);
    if (int4 && plan.route != Route::kImport) ++rounded_again_;
    for (const LinearSource& source : plan.sources) release_pages(source);
  }

  void add_plain(const PartPlain& plain) {
    plan_.plains.push_back(plan_of(plain));
    plan_.plains.back().lookup = plain.lookup;
    plan_.plains.back().seldom = is_encoder(plain.part);
  }

  PlainPlan plan_of(const PartPlain& plain) {
    if (plain.role == PartPlain::Role::kCodebook) return plan_codebook(checkpoint_, plain, &use_);
    if (plain.role == PartPlain::Role::kDepthwise) return plan_depthwise(checkpoint_, plain, &use_);
    use_.add_tensor(plain.name);
    return plan_plain(plain.name, {&checkpoint_.at(plain.name, plain.shape)}, plain.shape);
  }

  void add_notes() {
    use_.note_unknown(
        checkpoint_, [&](const std::string& tensor) { return is_leftover(tensor) || is_left_out(tensor); }, options_, &plan_.notes);
    if (rounded_again_ > 0) {
      plan_.notes.push_back(std::to_string(rounded_again_) + " int4 matrices of the source were dequantised and rounded again");
    }
    if (!options_.speech.encoders) plan_.notes.emplace_back("without encoders the packed model cannot read a reference recording");
    use_.note_patterns(options_, names_of_stacks(), &plan_.notes);
  }

  bool is_left_out(const std::string& tensor) const {
    return !options_.speech.encoders && (tensor.starts_with(kEncoderPrefix) || tensor.starts_with(kSpeakerPrefix));
  }

  std::vector<std::string> names_of_stacks() const {
    std::vector<std::string> names;
    for (const MatrixPlan& matrix : plan_.matrices) names.push_back(matrix.name);
    return names;
  }

  const Checkpoint& checkpoint_;
  std::string name_;
  Config config_;
  std::optional<QuantConfig> quant_;
  const PackOptions& options_;
  PackPlan plan_;
  TensorUse use_;
  int rounded_again_ = 0;
};

}  // namespace

PackPlan plan_pack(const Checkpoint& checkpoint, const nlohmann::json& config, const PackOptions& options) {
  return Planner(checkpoint, config, options).run();
}

std::unique_ptr<Calibration> calibrate(const Checkpoint& checkpoint, const nlohmann::json& /*config*/,
                                       const std::vector<int32_t>& /*ids*/, const CalibrationOptions& /*options*/) {
  refuse_calibration(checkpoint.directory().string());
}

void check_weights(const ModelWeights& weights) {
  const Config config = read_config(weights.config, weights.name);
  // All of the encoders, or nothing.
  const auto has = [&](const std::string& prefix) {
    const auto found = weights.matrices.lower_bound(prefix);
    return found != weights.matrices.end() && found->first.starts_with(prefix);
  };
  const bool encoders = has(kEncoderPrefix) || has(kSpeakerPrefix);
  const Parts parts = parts_of(config, encoders);
  for (const PartMatrix& matrix : parts.matrices) weights.matrix(matrix.name, matrix.n, matrix.k);
  for (const PartPlain& plain : parts.plains) weights.plain(plain.name, plain.shape);
}

}  // namespace ref::tts
