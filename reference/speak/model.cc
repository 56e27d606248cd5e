// SPDX-License-Identifier: Apache-2.0
#include "reference/speak/model.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <ranges>

#include "reference/cli/console.h"
#include "reference/core/weight_path.h"
#include "reference/io/checkpoint.h"
#include "reference/pack/packer.h"

namespace ref::speak {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

std::string lower(std::string text) {
  for (char& c : text) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return text;
}

std::string layout_words(const Matrix* matrix) {
  char text[96] = {};
  if (matrix == nullptr || omni_layout_to_text(&matrix->layout, text, sizeof text) != OMNI_OK) return "none";
  const std::string whole = text, format = whole.substr(0, whole.find('.'));
  return matrix->layout.scale_type == OMNI_DTYPE_NONE ? format : fmt::format("{} g{}", format, matrix->layout.group);
}

std::string layouts_of(const ModelWeights& weights) {
  const auto words = [&](const char* name) { return layout_words(weights.find_matrix(name)); };
  return fmt::format("talker {}, head {}, predictor {}, heads {}, codec {}", words("talker.model.layers.0.self_attn.q_k_v_proj"),
                     words("talker.codec_head"), words("talker.code_predictor.model.layers.0.self_attn.q_k_v_proj"),
                     words("talker.code_predictor.lm_head.0"), words("decoder.decoder.0.conv"));
}

std::optional<HeadType> asked_head(const std::string& name) {
  return name.empty() || name == "auto" ? std::nullopt : parse_head_type(name);
}

// As omni-pack would pack it with the same options: a source directory speaks the samples of its packed form.
PackOptions resolve_pack(const WeightOptions& weights, bool encoders, std::string* reason) {
  const WeightPath path =
      weights.common.weights == "auto" ? choose_speech_path() : WeightPath{*parse_weight_type(weights.common.weights), "as asked"};
  *reason = path.reason;
  SpeechWishes wishes;
  if (!weights.predictor.empty()) wishes.predictor = parse_weight_type(weights.predictor);
  wishes.head = asked_head(weights.common.head);
  wishes.predictor_head = asked_head(weights.predictor_head);
  wishes.group = weights.common.group;
  wishes.codec = weights.codec == "bf16" ? CodecType::kBf16 : CodecType::kFp32;
  wishes.encoders = encoders;
  PackOptions pack = cli::pack_options(weights.common, path.type);
  pack.speech = speech_options(wishes, path.type);
  return pack;
}

void refuse_pack_options(const fs::path& path, const WeightOptions& weights) {
  const cli::WeightOptions& common = weights.common;
  const std::pair<const char*, bool> given[] = {{"--weights", common.weights != "auto"},
                                                {"--head", common.head != "auto"},
                                                {"--predictor", !weights.predictor.empty()},
                                                {"--predictor-head", !weights.predictor_head.empty()},
                                                {"--codec", !weights.codec.empty()},
                                                {"--group", common.group.has_value()},
                                                {"--sym", common.symmetric},
                                                {"--keep", !common.keep.empty()}};
  for (const auto& [name, is_given] : given) {
    if (!is_given) continue;
    throw Failure(Exit::kUsage, fmt::format("{}: is packed: {} is for source directories, use omni-pack", path.string(), name));
  }
}

}  // namespace

Model::Model(const std::string& path) : path_(path) {
  std::error_code unknown;
  if (!fs::is_directory(path_, unknown)) {
    const bool exists = fs::exists(path_, unknown);
    throw Failure(Exit::kModel,
                  fmt::format("{}: {}", path, exists ? "is no directory; a model is one" : "no such model directory"));
  }
  guarded(Exit::kModel, [&] {
    const nlohmann::json root = read_model_config(path_);
    const std::string file = (path_ / "config.json").string();
    if (root.value("model_type", nlohmann::json()) != "qwen3_tts") {
      throw Error(fmt::format(
          "{}: \"model_type\" {} is no speech model; qwen3_tts is", file,
          root.value("model_type", nlohmann::json()).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).substr(0, 80)));
    }
    config_ = tts::read_config(root, file);
    defaults_ = load_speech_defaults(path_);
  });
}

std::string Model::title() const {
  const char* type = config_.type == tts::ModelType::kBase          ? "Base"
                     : config_.type == tts::ModelType::kCustomVoice ? "CustomVoice"
                                                                    : "VoiceDesign";
  return fmt::format("{} {}", config_.size == "0b6" ? "0.6B" : config_.size == "1b7" ? "1.7B" : config_.size, type);
}

const tts::TextTemplates& Model::templates() {
  if (!templates_) {
    guarded(Exit::kModel, [&] {
      tokenizer_.emplace(tts::load_tokenizer(path_));
      templates_.emplace(*tokenizer_, config_, path_.string());
    });
  }
  return *templates_;
}

void Model::check_language(const std::string& name) const {
  const auto& languages = config_.talker.languages;
  if (lower(name) == "auto" || languages.contains(lower(name))) return;
  throw Failure(Exit::kUsage, fmt::format("--language \"{}\": is unknown; there are auto, {}", name,
                                          fmt::join(std::views::keys(languages), ", ")));
}

void Model::check_speaker(const std::string& name) const {
  const auto& speakers = config_.talker.speakers;
  if (speakers.contains(lower(name))) return;
  if (speakers.empty()) {
    throw Failure(Exit::kUsage,
                  fmt::format("--speaker \"{}\": {} is a {} model, which has no speakers by name", name, path_.string(), title()));
  }
  throw Failure(Exit::kUsage,
                fmt::format("--speaker \"{}\": is unknown; there are {}", name, fmt::join(std::views::keys(speakers), ", ")));
}

void Model::pack(const WeightOptions& weights, bool encoders) {
  std::string reason;
  const PackOptions options = resolve_pack(weights, encoders, &reason);
  cli::ProgressLine progress("packing");
  PackResult result;
  const Checkpoint checkpoint = Checkpoint::open(path_);
  weights_ = pack_in_memory(
      checkpoint, options, &result, [&](const std::string&, uint64_t done, uint64_t total) { progress.show(done, total); },
      nullptr);
  notes_ = std::move(result.notes);
  // Left out here because nothing asks for them: no news to the user.
  if (!encoders) std::erase_if(notes_, [](const std::string& line) { return line.starts_with("without encoders"); });
  form_ = fmt::format("{} ({}): {}", weight_type_name(options.weights), layouts_of(*weights_), reason);
}

void Model::load(const WeightOptions& weights, const cli::MachineOptions& machine, bool encoders) {
  const Clock::time_point start = Clock::now();
  guarded(Exit::kModel, [&] {
    if (!is_packed(path_)) {
      pack(weights, encoders);
      return;
    }
    refuse_pack_options(path_, weights);
    const WeightsMemory memory = machine.weights_memory == "mapped" ? WeightsMemory::kMapped : WeightsMemory::kHuge;
    weights_ = load_packed(path_, memory, nullptr);
    form_ = fmt::format("{}: as packed", layouts_of(*weights_));
  });
  load_seconds_ = std::chrono::duration<double>(Clock::now() - start).count();
}

tts::Talker Model::talker(const WeightOptions& weights, const cli::MachineOptions& machine, int64_t context) const {
  tts::TalkerOptions options;
  options.context = context;
  options.chunk = std::min(machine.chunk, context);
  options.cache = cli::parse_kv(weights.common.kv);
  options.precision = weights.common.precision == "fp32" ? tts::Precision::kFp32 : tts::Precision::kDefault;
  return guarded(Exit::kModel, [&] { return tts::Talker(weights_, options); });
}

tts::CodePredictor Model::predictor(const WeightOptions& weights) const {
  tts::PredictorOptions options;
  options.cache = cli::parse_kv(weights.common.kv);
  options.precision = weights.common.precision == "fp32" ? tts::Precision::kFp32 : tts::Precision::kDefault;
  return guarded(Exit::kModel, [&] { return tts::CodePredictor(weights_, options); });
}

tts::CodecDecoder Model::codec(const WeightOptions& weights) const {
  tts::CodecDecoderOptions options;
  options.fp32 = weights.common.precision == "fp32";
  return guarded(Exit::kModel, [&] { return tts::CodecDecoder(weights_, options); });
}

Json model_json(const Model& model) {
  return {{"path", model.path().string()}, {"title", model.title()},
          {"weight_path", model.form()},   {"weight_bytes", model.weights()->bytes()},
          {"threads", omni_num_threads()}, {"load_seconds", model.load_seconds()},
          {"notes", model.notes()}};
}

void note_model(const Model& model, const cli::MachineOptions& options, const std::vector<std::string>& kernels) {
  if (options.quiet) return;
  for (const std::string& line : model.notes()) cli::note("note: " + line);
  cli::note(fmt::format("model    {}, {}; {} threads, loaded in {:.2f} s", model.title(), model.form(), omni_num_threads(),
                        model.load_seconds()));
  if (!options.verbose && options.profile.empty()) return;
  for (const std::string& line : kernels) cli::note("kernel   " + line);
}

}  // namespace ref::speak
