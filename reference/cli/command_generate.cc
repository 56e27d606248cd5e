// SPDX-License-Identifier: Apache-2.0
// omni-generate [generate]: continues a prompt.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <random>

#include "reference/cli/commands.h"
#include "reference/cli/console.h"
#include "reference/cli/report.h"
#include "reference/generate/generate.h"
#include "reference/generate/stop_matcher.h"

namespace ref::cli {
namespace {

constexpr int64_t kDefaultContext = 2048;

struct Options {
  std::string model, prompt, prompt_file, ids;
  bool no_bos = false, special = false, json = false;
  int64_t max_tokens = 256;
  std::optional<int64_t> context;
  std::vector<std::string> stops;
  WeightOptions weights;
  MachineOptions machine;
  SamplingFlags sampling;
};

// Exactly one of the three is given.
std::vector<int32_t> prompt_ids(const CLI::App& app, const Options& options, const Model& model) {
  const int given = static_cast<int>(app.count("PROMPT") + app.count("--prompt-file") + app.count("--ids"));
  if (given != 1) {
    throw Failure(Exit::kUsage, given == 0 ? "no prompt: give a text, - for stdin, --prompt-file FILE or --ids LIST"
                                           : "more than one of PROMPT, --prompt-file and --ids");
  }
  if (app.count("--ids") != 0) return parse_ids(options.ids);
  std::string text = options.prompt;
  if (app.count("--prompt-file") != 0) text = read_input("--prompt-file", options.prompt_file);
  if (text == "-" && app.count("PROMPT") != 0) text = read_input("PROMPT", "-");
  return model.encode(text, !options.no_bos);
}

void check_prompt(const std::vector<int32_t>& ids, const Options& options, const Model& model) {
  if (ids.empty())
    throw Failure(Exit::kInput, "the prompt is empty and --no-bos leaves out the token before it: nothing to predict from");
  model.check_ids(ids);
  if (options.context && static_cast<int64_t>(ids.size()) > *options.context) {
    throw Failure(Exit::kInput, fmt::format("the prompt has {} tokens, more than --ctx {}", ids.size(), *options.context));
  }
}

uint64_t random_seed() {
  std::random_device device;
  return device();  // 32 bits: all that the stream takes
}

// Tokens of a model without a tokenizer, or text.
GenerateHooks hooks_of(const Options& options, const Model& model, bool* closed) {
  GenerateHooks hooks;
  hooks.interrupted = [] { return interrupted(); };
  if (options.json) return hooks;
  if (model.tokenizer() != nullptr) {
    hooks.write = write_out;
  } else {
    hooks.token = [closed, first = true](int32_t id) mutable {
      *closed = *closed || !write_out(fmt::format("{}{}", first ? "" : " ", id));
      first = false;
    };
    hooks.interrupted = [closed] { return *closed || interrupted(); };
  }
  return hooks;
}

std::string end_text(const GenerateResult& result) {
  std::string text(stop_reason_name(result.reason));
  if (result.end_token) text += fmt::format(" (token {})", *result.end_token);
  return text;
}

Json to_json(const Options& options, const Model& model, const spark::Decoder& decoder, const GenerateOptions& generation,
             const GenerateResult& result, bool drew) {
  Json json;
  json["text"] = model.tokenizer() == nullptr ? Json(nullptr) : Json(result.text);
  json["ids"] = result.ids;
  json["stop_reason"] = stop_reason_name(result.reason);
  json["end_token"] = result.end_token ? Json(*result.end_token) : Json(nullptr);
  json["prompt_tokens"] = result.prompt_tokens;
  json["new_tokens"] = result.ids.size();
  json["prefill"] = rate_json(result.prompt_tokens, result.prefill_seconds);
  json["decode"] = rate_json(result.decode_steps, result.decode_seconds);
  json["seed"] = drew ? Json(generation.seed) : Json(nullptr);
  const SamplingOptions& sampling = generation.sampling;
  json["sampling"] = {{"temperature", sampling.temperature},
                      {"top_k", sampling.top_k},
                      {"top_p", sampling.top_p},
                      {"min_p", sampling.min_p},
                      {"repetition_penalty", sampling.repetition_penalty},
                      {"min_new_tokens", sampling.min_new_tokens},
                      {"end_tokens", sampling.end_tokens}};
  json["model"] = model_json(model, decoder);
  json["precision"] = options.weights.precision;
  json["kv"] = options.weights.precision == "fp32" ? "fp32" : options.weights.kv;
  json["peak_resident_bytes"] = peak_resident_bytes();
  return json;
}

void note_result(const GenerateResult& result, const GenerateOptions& generation, const Model& model, const spark::Decoder& decoder,
                 bool drew) {
  note(fmt::format("prefill  {}", rate_text(result.prompt_tokens, result.prefill_seconds)));
  note(fmt::format("decode   {}", rate_text(result.decode_steps, result.decode_seconds)));
  const std::string seed = drew ? fmt::format("seed {}", generation.seed) : "greedy";
  note(fmt::format("stopped  {} after {} new tokens, {}", end_text(result), result.ids.size(), seed));
  note(fmt::format("memory   weights {}, cache {}, peak {} resident (GB = 1e9 bytes)", gb_text(model.weights()->bytes()),
                   gb_text(decoder.cache_bytes()), gb_text(peak_resident_bytes())));
}

int run(const CLI::App& app, const Options& options) {
  set_up_machine(options.machine);
  guarded(Exit::kUsage, [&] { StopMatcher check(options.stops); });
  Model model(options.model);
  if (!options.stops.empty()) model.need_tokenizer("--stop");
  const std::vector<int32_t> prompt = prompt_ids(app, options, model);
  check_prompt(prompt, options, model);

  GenerateOptions generation;
  generation.sampling = resolve_sampling(options.sampling, model.sampling());
  guarded(Exit::kUsage, [&] { check_sampling(generation.sampling, model.config().vocabulary); });
  generation.stops = options.stops;
  generation.max_tokens = options.max_tokens;
  generation.show_special = options.special;
  generation.step = options.machine.chunk;
  generation.seed = options.sampling.seed ? *options.sampling.seed : random_seed();

  const auto length = static_cast<int64_t>(prompt.size());
  const int64_t context = options.context.value_or(std::max(kDefaultContext, length + options.max_tokens));
  model.load(options.weights, options.machine);
  spark::Decoder decoder = model.decoder(options.weights, options.machine, context);
  note_model(model, decoder, options.machine);
  SparkModel tokens(&decoder);
  bool closed = false;
  GenerateResult result = guarded(
      Exit::kMachine, [&] { return generate(&tokens, model.tokenizer(), prompt, generation, hooks_of(options, model, &closed)); });
  if (closed) result.reason = StopReason::kClosed;

  // A draw that no option makes greedy depends on the seed; nothing else does.
  const bool drew = generation.sampling.temperature > 0;
  if (options.json) {
    write_out(dump(to_json(options, model, decoder, generation, result, drew)));
  } else if (result.reason != StopReason::kClosed && !result.text.ends_with('\n')) {
    write_out("\n");
  }
  if (!options.machine.quiet && result.reason != StopReason::kClosed) note_result(result, generation, model, decoder, drew);
  const bool stopped_by_signal = result.reason == StopReason::kInterrupted && interrupted();
  return stopped_by_signal ? static_cast<int>(Exit::kSignal) + received_signal() : static_cast<int>(Exit::kOk);
}

}  // namespace

Run add_generate(CLI::App* app) {
  auto options = std::make_shared<Options>();
  app->add_option("MODEL", options->model, "A packed directory, or a directory as published")->required();
  app->add_option("PROMPT", options->prompt, "Text to continue, as it is, after one token that begins a sequence; - reads stdin");
  app->add_option("--prompt-file", options->prompt_file, "Reads the prompt from FILE, every byte of it")->type_name("FILE");
  app->add_option("--ids", options->ids, "Token ids instead of a text, nothing is added: 0,5,7")
      ->check(id_list())
      ->type_name("LIST");
  app->add_flag("--no-bos", options->no_bos, "No token before the prompt");
  app->add_option("-n,--max-tokens", options->max_tokens, "Most new tokens")
      ->check(whole(0, int64_t{1} << 40))
      ->type_name("N")
      ->capture_default_str();
  app->add_option("--ctx", options->context, "Most tokens of prompt and text (2048, or what both need)")
      ->check(whole(1, OMNI_ROPE_MOST_POSITIONS))
      ->type_name("N");
  app->add_option("--stop", options->stops, "Ends the text before TEXT; may be repeated")
      ->type_name("TEXT")
      ->allow_extra_args(false);
  app->add_flag("--special", options->special, "Shows special tokens in the text");
  app->add_flag("--json", options->json, "One JSON object instead of the text as it comes");
  add_sampling_options(app, &options->sampling);
  add_weight_options(app, "--", &options->weights);
  add_priority_option(app, &options->machine);
  add_machine_options(app, &options->machine);
  return [app, options] { return run(*app, *options); };
}

}  // namespace ref::cli
