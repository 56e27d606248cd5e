// SPDX-License-Identifier: Apache-2.0
// A model directory, packed or as its makers publish it, opened step by step: what is small first, so that errors come early.
#pragma once

#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reference/cli/failure.h"
#include "reference/cli/options.h"
#include "reference/core/error.h"
#include "reference/core/weight_path.h"
#include "reference/generate/generation_config.h"
#include "reference/generate/token_model.h"
#include "reference/spark/decoder.h"
#include "reference/text/tokenizer.h"

namespace ref::cli {

// Runs `body`; what it throws becomes a Failure: too little memory kMemory, any other Error `code`.
template <typename Body>
auto guarded(Exit code, const Body& body) {
  try {
    return body();
  } catch (const MemoryError& error) {
    throw Failure(Exit::kMemory, error.what());
  } catch (const Error& error) {
    throw Failure(code, error.what());
  } catch (const std::bad_alloc&) {
    throw Failure(Exit::kMemory, "out of memory");
  }
}

// Threads and profile, before anything else of the library is used. Throws Failure.
void set_up_machine(const MachineOptions& options);

class Model {
 public:
  // Reads the config, the tokenizer (where there is one) and the generation config. Throws Failure.
  explicit Model(const std::string& path);

  const spark::Config& config() const { return config_; }
  // nullptr when the directory has none.
  const Tokenizer* tokenizer() const { return tokenizer_ ? &*tokenizer_ : nullptr; }
  // Throws Failure when there is none, naming what needs it.
  const Tokenizer& need_tokenizer(const std::string& what) const;
  // Its end tokens are those of the generation config, else of the config.
  const SamplingOptions& sampling() const { return sampling_; }
  const std::filesystem::path& path() const { return path_; }
  // Ids of a text; with `bos` after the token that begins a sequence. Throws Failure.
  std::vector<int32_t> encode(const std::string& text, bool bos) const;

  // Throws Failure naming an id that the vocabulary lacks.
  void check_ids(const std::vector<int32_t>& ids) const;

  // Maps or copies a packed model, packs a source directory in memory. Throws Failure, Interrupted.
  void load(const WeightOptions& weights, const MachineOptions& machine);
  double load_seconds() const { return load_seconds_; }
  const std::shared_ptr<const ModelWeights>& weights() const { return weights_; }
  // What form the weights have, and why: one line.
  const std::string& form() const { return form_; }
  const std::vector<std::string>& notes() const { return notes_; }

  // Throws Failure.
  spark::Decoder decoder(const WeightOptions& weights, const MachineOptions& machine, int64_t context) const;

 private:
  void pack(const WeightOptions& weights, const MachineOptions& machine);

  std::filesystem::path path_;
  spark::Config config_;
  std::optional<Tokenizer> tokenizer_;
  SamplingOptions sampling_;
  std::shared_ptr<const ModelWeights> weights_;
  std::string form_;
  std::vector<std::string> notes_;
  double load_seconds_ = 0;
};

// Weights a source directory should be packed with, and why. Throws Failure when the machine cannot be asked.
PackOptions resolve_pack(const WeightOptions& weights, const MachineOptions& machine, std::string* reason);
// The rest of them when the form of the layers is known.
PackOptions pack_options(const WeightOptions& weights, WeightType type);

class SparkModel : public TokenModel {
 public:
  explicit SparkModel(spark::Decoder* decoder) : decoder_(*decoder) {}
  int64_t vocabulary() const override { return decoder_.config().vocabulary; }
  int64_t context() const override { return decoder_.options().context; }
  int64_t position() const override { return decoder_.position(); }
  void reset() override { decoder_.reset(); }
  void append(std::span<const int32_t> ids) override { decoder_.forward(ids, spark::Rows::kNone, {}); }
  void append_last(std::span<const int32_t> ids, std::span<float> logits) override {
    decoder_.forward(ids, spark::Rows::kLast, logits);
  }
  void append_all(std::span<const int32_t> ids, std::span<float> logits) override {
    decoder_.forward(ids, spark::Rows::kAll, logits);
  }

 private:
  spark::Decoder& decoder_;
};

}  // namespace ref::cli
