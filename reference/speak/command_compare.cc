// SPDX-License-Identifier: Apache-2.0
// omni-speak compare: two models, or two forms of one model's weights, over the same frames, codebook by codebook.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <filesystem>

#include "reference/cli/console.h"
#include "reference/qwen3_tts/model/compare.h"
#include "reference/qwen3_tts/voice/voice_file.h"
#include "reference/speak/commands.h"
#include "reference/speak/model.h"
#include "reference/speak/model_source.h"
#include "reference/speak/text_split.h"

namespace ref::speak {
namespace {

constexpr const char* kText = "The quick brown fox jumps over the lazy dog, and then it rests in the shade of an old oak tree.";

struct Options {
  std::string a, b, file, language = "auto", speaker, instruct, voice;
  int64_t frames = 50;
  bool json = false;
  SamplingFlags sampling;
  WeightOptions a_weights, b_weights;
  cli::MachineOptions machine;
};

struct Side {
  Side(Model* model, const WeightOptions& weights, const cli::MachineOptions& machine, int64_t context)
      : talker(model->talker(weights, machine, context)), predictor(model->predictor(weights)) {}
  tts::SpeechModel models() { return {&talker, &predictor}; }
  tts::Talker talker;
  tts::CodePredictor predictor;
};

SpeechRequest request_of(const Options& options, const Model& model) {
  SpeechRequest request;
  SplitOptions split;
  split.language = options.language;
  const std::string text = options.file.empty() ? kText : cli::read_input("--file", options.file);
  request.pieces = split_text(text, split).pieces;
  if (request.pieces.empty()) throw Failure(Exit::kInput, fmt::format("--file {}: has no letter and no number", options.file));
  request.instruct = options.instruct;
  request.language = options.language;
  request.streaming_text = model.config().type == tts::ModelType::kBase;
  request.sampling = resolve_sampling(options.sampling, model.defaults().sampling);
  if (!options.voice.empty()) request.voice = guarded(Exit::kInput, [&] { return tts::load_voice(options.voice, model.config()); });
  request.voice.speaker_name = options.speaker;
  if (model.config().type == tts::ModelType::kCustomVoice && options.speaker.empty()) {
    request.voice.speaker_name = model.config().talker.speakers.begin()->first;
  }
  return request;
}

tts::CompareReport compare(const Options& options, const SpeechRequest& request, Model* model, Side* a, Side* b) {
  cli::ProgressLine progress("comparing");
  std::vector<tts::CompareReport> reports;
  const uint64_t total = request.pieces.size() * static_cast<uint64_t>(options.frames);
  for (size_t i = 0; i < request.pieces.size(); ++i) {
    tts::PromptRequest prompt;
    prompt.ids = model->templates().all(request.pieces[i], request.voice.reference_text, request.instruct);
    prompt.language = request.language;
    prompt.voice = &request.voice;
    prompt.streaming_text = request.streaming_text;
    tts::SpeechSampling sampling = request.sampling;
    sampling.seed = seed_of_piece(sampling.seed, i);
    const std::vector<tts::Frame> frames = tts::make_frames(a->models(), prompt, sampling, options.frames);
    if (frames.empty()) continue;
    reports.push_back(tts::compare_models(a->models(), b->models(), prompt, frames, [&](int64_t done) {
      progress.show(i * static_cast<uint64_t>(options.frames) + static_cast<uint64_t>(done), total);
    }));
  }
  return tts::merge(reports);
}

Json agreement_json(const tts::Agreement& agreement) {
  return {{"steps", agreement.steps}, {"top1", agreement.top1}, {"top5", agreement.top5}, {"kl", agreement.kl}};
}

std::string to_text(const tts::CompareReport& report) {
  std::string text = "| codebook | steps | top-1 | top-5 | KL, nats |\n|---|---|---|---|---|\n";
  const auto row = [&](const std::string& name, const tts::Agreement& agreement) {
    text += fmt::format("| {} | {} | {:.4f} | {:.4f} | {:.5f} |\n", name, agreement.steps, agreement.top1, agreement.top5,
                        agreement.kl);
  };
  for (size_t i = 0; i < report.codebooks.size(); ++i) row(std::to_string(i), report.codebooks[i]);
  row("1..15", report.others);
  return text;
}

int run(const Options& options) {
  cli::set_up_machine(options.machine);
  Model a(options.a), b(options.b);
  a.check_language(options.language);
  if (!options.speaker.empty()) a.check_speaker(options.speaker);
  const SpeechRequest request = request_of(options, a);
  const std::vector<int64_t> budgets(request.pieces.size(), options.frames);
  const int64_t context = context_needed(a.templates(), request, budgets);
  a.load(options.a_weights, options.machine, false);
  b.load(options.b_weights, options.machine, false);
  Side a_side(&a, options.a_weights, options.machine, context), b_side(&b, options.b_weights, options.machine, context);
  note_model(a, options.machine, a_side.talker.describe());
  note_model(b, options.machine, b_side.talker.describe());
  const tts::CompareReport report = guarded(Exit::kInput, [&] { return compare(options, request, &a, &a_side, &b_side); });
  if (!options.json) return cli::write_out(to_text(report)), 0;
  Json json;
  for (const tts::Agreement& agreement : report.codebooks) json["codebooks"].push_back(agreement_json(agreement));
  json["others"] = agreement_json(report.others);
  json["frames_per_text"] = options.frames;
  json["texts"] = request.pieces;
  json["seed"] = request.sampling.seed;
  json["a"] = model_json(a);
  json["b"] = model_json(b);
  cli::write_out(cli::dump(json));
  return 0;
}

}  // namespace

Run add_compare(CLI::App* app) {
  auto options = std::make_shared<Options>();
  options->sampling.seed = 1;
  app->add_option("A", options->a, "The reference: a packed directory, or one as published")->required();
  app->add_option("B", options->b, "The candidate, which may be the same with other weights")->required();
  app->add_option("--file", options->file, "Text to speak; each piece of it is a request (one sentence of its own)")
      ->type_name("FILE");
  app->add_option("--frames", options->frames, "Frames of each request, which A makes and both then follow")
      ->check(cli::whole(1, 8192))
      ->type_name("N")
      ->capture_default_str();
  app->add_option("--language", options->language, "Of the text")->type_name("NAME")->capture_default_str();
  app->add_option("--speaker", options->speaker, "Of CustomVoice models (the first)")->type_name("NAME");
  app->add_option("--instruct", options->instruct, "As omni-speak's")->type_name("TEXT");
  app->add_option("--voice", options->voice, "As omni-speak's")->type_name("FILE");
  app->add_flag("--json", options->json, "A JSON object");
  add_sampling_options(app, &options->sampling);
  add_weight_options(app, "--a-", &options->a_weights);
  add_weight_options(app, "--b-", &options->b_weights);
  cli::add_machine_options(app, &options->machine);
  return [options] { return run(*options); };
}

}  // namespace ref::speak
