// SPDX-License-Identifier: Apache-2.0
// omni-speak info: what a model is, its voices and languages, and the kernels that would serve it. Runs no kernel.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <ranges>

#include "reference/cli/console.h"
#include "reference/speak/commands.h"
#include "reference/speak/model.h"

namespace ref::speak {
namespace {

struct Options {
  std::string model;
  int64_t context = 1024;
  bool json = false;
  WeightOptions weights;
  cli::MachineOptions machine;
};

struct Parts {
  Parts(const Model& model, const Options& options)
      : talker(model.talker(options.weights, options.machine, options.context)),
        predictor(model.predictor(options.weights)),
        codec(model.codec(options.weights)) {
    kernels = talker.describe();
    for (const std::vector<std::string>& more : {predictor.describe(), codec.describe()}) {
      kernels.insert(kernels.end(), more.begin(), more.end());
    }
  }
  tts::Talker talker;
  tts::CodePredictor predictor;
  tts::CodecDecoder codec;
  std::vector<std::string> kernels;
};

Json to_json(const Model& model, const Parts& parts, const Options& options) {
  const tts::Config& config = model.config();
  Json json = model_json(model);
  json["speakers"] = Json::array();
  for (const auto& [name, id] : config.talker.speakers) json["speakers"].push_back(name);
  json["languages"] = Json::array();
  for (const auto& [name, id] : config.talker.languages) json["languages"].push_back(name);
  json["takes_instruct"] = config.takes_instruct();
  json["context"] = options.context;
  json["cache_bytes"] = parts.talker.cache_bytes();
  json["codec_state_bytes"] = parts.codec.state_bytes();
  json["frame_bytes"] = {{"talker", parts.talker.weight_bytes_per_step()},
                         {"predictor", parts.predictor.weight_bytes_per_frame()},
                         {"codec", parts.codec.weight_bytes()}};
  json["kernels"] = parts.kernels;
  return json;
}

std::string to_text(const Model& model, const Parts& parts, const Options& options) {
  const tts::Config& config = model.config();
  const auto stack = [](const tts::StackShape& shape) {
    return fmt::format("{} layers, hidden {}, {} heads and {} for keys, of {}", shape.layers, shape.hidden, shape.heads,
                       shape.kv_heads, shape.head_dim);
  };
  std::string text = fmt::format("model      {}\n", model.title());
  text += fmt::format("talker     {}\npredictor  {}\ncodec      {}\n", stack(config.talker.stack), stack(config.predictor.stack),
                      stack(config.decoder.stack));
  text += fmt::format("weights    {}, {}\n", model.form(), cli::gb_text(model.weights()->bytes()));
  text += fmt::format("frame      reads {} of talker, {} of predictor (15 sub-steps), {} of codec; it is heard for 80 ms\n",
                      cli::gb_text(parts.talker.weight_bytes_per_step()), cli::gb_text(parts.predictor.weight_bytes_per_frame()),
                      cli::gb_text(parts.codec.weight_bytes()));
  text += fmt::format("memory     cache {} for {} positions, codec state {}\n", cli::gb_text(parts.talker.cache_bytes()),
                      options.context, cli::gb_text(parts.codec.state_bytes()));
  text += fmt::format("speakers   {}\n", config.talker.speakers.empty()
                                             ? "none by name"
                                             : fmt::format("{}", fmt::join(std::views::keys(config.talker.speakers), ", ")));
  text += fmt::format("languages  auto, {}\n", fmt::join(std::views::keys(config.talker.languages), ", "));
  text += fmt::format("instruct   {}\n", config.takes_instruct() ? "yes" : "ignored: not trained for it");
  for (const std::string& line : model.notes()) text += "note       " + line + "\n";
  for (const std::string& line : parts.kernels) text += "kernel     " + line + "\n";
  return text;
}

int run(const Options& options) {
  cli::set_up_machine(options.machine);
  Model model(options.model);
  model.load(options.weights, options.machine, true);
  const Parts parts(model, options);
  cli::write_out(options.json ? cli::dump(to_json(model, parts, options)) : to_text(model, parts, options));
  return 0;
}

}  // namespace

Run add_info(CLI::App* app) {
  auto options = std::make_shared<Options>();
  app->add_option("MODEL", options->model, "A packed directory, or a directory as published")->required();
  app->add_option("--ctx", options->context, "Positions: rows of the prompt and frames")
      ->check(cli::whole(1, int64_t{1} << 24))
      ->type_name("N")
      ->capture_default_str();
  app->add_flag("--json", options->json, "A JSON object");
  add_weight_options(app, "--", &options->weights);
  cli::add_machine_options(app, &options->machine);
  return [options] { return run(*options); };
}

}  // namespace ref::speak
