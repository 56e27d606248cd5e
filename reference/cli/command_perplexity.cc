// SPDX-License-Identifier: Apache-2.0
// omni-generate perplexity and compare: how well a model predicts a text, and how far one model is from another.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "reference/cli/commands.h"
#include "reference/cli/console.h"
#include "reference/cli/report.h"
#include "reference/generate/evaluate.h"

namespace ref::cli {
namespace {

constexpr int64_t kDefaultWindow = 512;

struct Options {
  std::string model, other, file;
  bool json = false;
  int64_t window = kDefaultWindow, tokens = 0;
  int64_t prompts = 10, prompt_tokens = 16, greedy_tokens = 40;
  WeightOptions weights, other_weights;
  MachineOptions machine;
};

std::vector<int32_t> text_ids(const Model& model, const Options& options) {
  std::vector<int32_t> ids = model.encode(read_input("FILE", options.file), false);
  if (ids.size() < 2) throw Failure(Exit::kInput, fmt::format("{}: has {} tokens; two are needed", options.file, ids.size()));
  if (options.tokens > 0 && static_cast<size_t>(options.tokens) < ids.size()) ids.resize(static_cast<size_t>(options.tokens));
  return ids;
}

EvaluateHooks hooks_of(ProgressLine* progress) {
  EvaluateHooks hooks;
  hooks.progress = [progress](int64_t done, int64_t total) {
    if (!interrupted()) progress->show(static_cast<uint64_t>(done), static_cast<uint64_t>(total));
  };
  hooks.interrupted = [] { return interrupted(); };
  return hooks;
}

int exit_code(bool complete) { return complete ? 0 : static_cast<int>(Exit::kSignal) + received_signal(); }

Json perplexity_json(const Perplexity& result) {
  return {{"perplexity", result.value()}, {"nll", result.nll()}, {"tokens", result.tokens}};
}

std::string perplexity_text(const Perplexity& result) {
  return fmt::format("perplexity {:.6f}, nll {:.8f}, {} tokens scored", result.value(), result.nll(), result.tokens);
}

int run_perplexity(const Options& options) {
  set_up_machine(options.machine);
  Model model(options.model);
  const std::vector<int32_t> ids = text_ids(model, options);
  model.load(options.weights, options.machine);
  spark::Decoder decoder = model.decoder(options.weights, options.machine, options.window);
  SparkModel tokens(&decoder);
  note_model(model, decoder, options.machine);
  Perplexity result;
  {
    ProgressLine progress("perplexity");
    result = guarded(Exit::kMachine, [&] { return perplexity(&tokens, ids, options.window, hooks_of(&progress)); });
  }
  if (options.json) {
    Json json = perplexity_json(result);
    json["text_tokens"] = ids.size();
    json["window"] = options.window;
    json["complete"] = result.complete;
    json["model"] = model_json(model, decoder);
    write_out(dump(json));
  } else {
    write_out(perplexity_text(result) + (result.complete ? "\n" : ", interrupted\n"));
  }
  return exit_code(result.complete);
}

// One side of a comparison.
struct Side {
  Side(const std::string& path, const WeightOptions& weights, const Options& options) : model(path) {
    model.load(weights, options.machine);
    decoder.emplace(
        model.decoder(weights, options.machine, std::max(options.window, options.prompt_tokens + options.greedy_tokens)));
    tokens.emplace(&*decoder);
  }
  Model model;
  std::optional<spark::Decoder> decoder;
  std::optional<SparkModel> tokens;
};

Json comparison_json(const Comparison& result, const Fidelity& fidelity) {
  const auto positions = static_cast<double>(result.positions());
  Json json;
  json["kl"] = result.kl / positions;
  json["top1"] = static_cast<double>(result.top1) / positions;
  json["top5"] = static_cast<double>(result.top5) / (5 * positions);
  json["tokens"] = result.positions();
  json["a"] = perplexity_json(result.a);
  json["b"] = perplexity_json(result.b);
  json["greedy"] = {{"prompts", fidelity.prompts},
                    {"tokens", fidelity.tokens},
                    {"agreed", fidelity.agreed},
                    {"prompts_without_difference", fidelity.whole}};
  return json;
}

std::string comparison_text(const Comparison& result, const Fidelity& fidelity) {
  const auto positions = static_cast<double>(result.positions());
  std::string text = fmt::format("a       {}\nb       {}\n", perplexity_text(result.a), perplexity_text(result.b));
  text += fmt::format("kl      {:.6e} nats a token, of b from a\n", result.kl / positions);
  text += fmt::format("top 1   {:.4f} of the tokens are the same\n", static_cast<double>(result.top1) / positions);
  text += fmt::format("top 5   {:.4f} of the tokens are in both\n", static_cast<double>(result.top5) / (5 * positions));
  return text + fmt::format("greedy  {} of {} tokens agree from {} prompts, up to the first difference of each; {} have none\n",
                            fidelity.agreed, fidelity.tokens, fidelity.prompts, fidelity.whole);
}

int run_compare(const Options& options) {
  set_up_machine(options.machine);
  const std::vector<int32_t> ids = text_ids(Model(options.model), options);
  Side a(options.model, options.weights, options), b(options.other, options.other_weights, options);
  note_model(a.model, *a.decoder, options.machine);
  note_model(b.model, *b.decoder, options.machine);
  Comparison result;
  Fidelity fidelity;
  {
    ProgressLine progress("comparing");
    const EvaluateHooks hooks = hooks_of(&progress);
    guarded(Exit::kModel, [&] {
      result = compare(&*a.tokens, &*b.tokens, ids, options.window, hooks);
      fidelity = greedy_fidelity(&*a.tokens, &*b.tokens, ids, options.prompts, options.prompt_tokens, options.greedy_tokens, hooks);
    });
  }
  if (result.positions() == 0) throw Interrupted();
  if (options.json) {
    Json json = comparison_json(result, fidelity);
    json["window"] = options.window;
    json["complete"] = !interrupted();
    json["model_a"] = model_json(a.model, *a.decoder);
    json["model_b"] = model_json(b.model, *b.decoder);
    write_out(dump(json));
  } else {
    write_out(comparison_text(result, fidelity));
  }
  return exit_code(!interrupted());
}

void add_common(CLI::App* app, Options* options) {
  app->add_option("FILE", options->file, "A text; no token is put before it. - reads stdin")->required();
  app->add_option("--window", options->window, "Tokens that are read from an empty cache; all but the first are scored")
      ->check(whole(2, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  app->add_option("--tokens", options->tokens, "Only so many tokens of the text")
      ->check(whole(2, int64_t{1} << 40))
      ->type_name("N");
  app->add_flag("--json", options->json, "A JSON object");
  add_priority_option(app, &options->machine);
  add_machine_options(app, &options->machine);
}

}  // namespace

Run add_perplexity(CLI::App* app) {
  auto options = std::make_shared<Options>();
  app->add_option("MODEL", options->model, "A packed directory, or a directory as published")->required();
  add_common(app, options.get());
  add_weight_options(app, "--", &options->weights);
  return [options] { return run_perplexity(*options); };
}

Run add_compare(CLI::App* app) {
  auto options = std::make_shared<Options>();
  app->add_option("A", options->model, "The model to compare with; its tokenizer reads the text")->required();
  app->add_option("B", options->other, "The model that is compared; may be the same directory, with other options")->required();
  add_common(app, options.get());
  app->add_option("--prompts", options->prompts, "Prompts for greedy decoding, spread over the text; 0: none")
      ->check(whole(0, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  app->add_option("--prompt-tokens", options->prompt_tokens, "Length of each prompt")
      ->check(whole(1, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  app->add_option("--greedy-tokens", options->greedy_tokens, "Tokens decoded from each")
      ->check(whole(1, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  add_weight_options(app, "--a-", &options->weights);
  add_weight_options(app, "--b-", &options->other_weights);
  return [options] { return run_compare(*options); };
}

}  // namespace ref::cli
