// SPDX-License-Identifier: Apache-2.0
// omni-generate info: what a model is, the kernels that would serve it, and the memory of its cache. Runs no kernel, so that it may
// describe another machine (--profile).
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "reference/cli/commands.h"
#include "reference/cli/console.h"
#include "reference/cli/memory_table.h"
#include "reference/cli/report.h"

namespace ref::cli {
namespace {

struct Options {
  std::string model;
  int64_t context = 2048;
  bool json = false;
  WeightOptions weights;
  MachineOptions machine;
};

int run(const Options& options) {
  set_up_machine(options.machine);
  Model model(options.model);
  model.load(options.weights, options.machine);
  const spark::Decoder decoder = model.decoder(options.weights, options.machine, options.context);
  const spark::Config& config = model.config();
  const CacheModel cache = spark::cache_model(config);
  const omni_dtype type = options.weights.precision == "fp32" ? OMNI_DTYPE_F32 : parse_kv(options.weights.kv);
  if (options.json) {
    Json json = model_json(model, decoder);
    for (const CacheRow& row : cache_table(cache, kTableContexts, options.machine.chunk, type)) {
      json["cache"].push_back({{"context", row.context},
                               {"hybrid_bytes", row.budget.hybrid},
                               {"flat_bytes", row.budget.flat},
                               {"needed_bytes", row.budget.needed}});
    }
    return write_out(dump(json)), 0;
  }
  std::string text = fmt::format("model    {} layers, hidden {}, {} heads, {} key-value heads of {}, vocabulary {}\n",
                                 config.layers, config.hidden, config.heads, config.kv_heads, config.head_dim, config.vocabulary);
  text += fmt::format("weights  {}, {}\n", model.form(), gb_text(model.weights()->bytes()));
  for (const std::string& line : model.notes()) text += "note     " + line + "\n";
  for (const std::string& line : decoder.describe()) text += "kernel   " + line + "\n";
  text +=
      fmt::format("token    reads {} of weights and {} of cache at the end of {} tokens\n",
                  gb_text(decoder.weight_bytes_per_token()), gb_text(decoder.cache_bytes_at(options.context - 1)), options.context);
  text += fmt::format("\nCache of keys and values in {}, prompts read {} tokens at a time:\n\n",
                      options.weights.precision == "fp32" ? "fp32" : options.weights.kv, options.machine.chunk);
  write_out(text + memory_table(cache, kTableContexts, options.machine.chunk, type));
  return 0;
}

}  // namespace

Run add_info(CLI::App* app) {
  auto options = std::make_shared<Options>();
  app->add_option("MODEL", options->model, "A packed directory, or a directory as published")->required();
  app->add_option("--ctx", options->context, "Most tokens")
      ->check(whole(1, OMNI_ROPE_MOST_POSITIONS))
      ->type_name("N")
      ->capture_default_str();
  app->add_flag("--json", options->json, "A JSON object");
  add_weight_options(app, "--", &options->weights);
  add_priority_option(app, &options->machine);
  add_machine_options(app, &options->machine);
  return [options] { return run(*options); };
}

}  // namespace ref::cli
