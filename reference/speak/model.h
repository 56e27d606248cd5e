// SPDX-License-Identifier: Apache-2.0
// A speech model's directory, packed or as published, opened step by step: what is small first, so that errors come early.
#pragma once

#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reference/cli/failure.h"
#include "reference/cli/model.h"
#include "reference/cli/options.h"
#include "reference/cli/report.h"
#include "reference/qwen3_tts/codec/decoder.h"
#include "reference/qwen3_tts/config.h"
#include "reference/qwen3_tts/model/code_predictor.h"
#include "reference/qwen3_tts/model/talker.h"
#include "reference/qwen3_tts/model/text.h"
#include "reference/speak/options.h"
#include "reference/speak/speech_defaults.h"
#include "reference/text/tokenizer.h"

namespace ref::speak {

using cli::Exit;
using cli::Failure;
using cli::guarded;
using Json = nlohmann::ordered_json;

class Model {
 public:
  // Reads configs and generation config. Throws Failure.
  explicit Model(const std::string& path);

  const tts::Config& config() const { return config_; }
  const SpeechDefaults& defaults() const { return defaults_; }
  const std::filesystem::path& path() const { return path_; }
  // "0.6B Base" and the like.
  std::string title() const;
  // Throws Failure when the directory has no tokenizer, or one that does not fit.
  const tts::TextTemplates& templates();

  // Throw Failure naming what the model has.
  void check_language(const std::string& name) const;
  void check_speaker(const std::string& name) const;

  // Maps or copies a packed model, packs a source directory in memory; a source's encoders only when `encoders`. Throws Failure,
  // Interrupted.
  void load(const WeightOptions& weights, const cli::MachineOptions& machine, bool encoders);
  double load_seconds() const { return load_seconds_; }
  const std::shared_ptr<const ModelWeights>& weights() const { return weights_; }
  const std::string& form() const { return form_; }
  const std::vector<std::string>& notes() const { return notes_; }

  // Throw Failure.
  tts::Talker talker(const WeightOptions& weights, const cli::MachineOptions& machine, int64_t context) const;
  tts::CodePredictor predictor(const WeightOptions& weights) const;
  tts::CodecDecoder codec(const WeightOptions& weights) const;

 private:
  void pack(const WeightOptions& weights, bool encoders);

  std::filesystem::path path_;
  tts::Config config_;
  SpeechDefaults defaults_;
  std::optional<Tokenizer> tokenizer_;
  std::optional<tts::TextTemplates> templates_;
  std::shared_ptr<const ModelWeights> weights_;
  std::string form_;
  std::vector<std::string> notes_;
  double load_seconds_ = 0;
};

Json model_json(const Model& model);
// Lines on stderr before a run, nothing when `quiet`.
void note_model(const Model& model, const cli::MachineOptions& options, const std::vector<std::string>& kernels);

}  // namespace ref::speak
