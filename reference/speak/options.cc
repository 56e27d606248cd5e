// SPDX-License-Identifier: Apache-2.0
#include "reference/speak/options.h"

#include <CLI/CLI.hpp>
#include <limits>
#include <random>

#include "omni/omni.h"

namespace ref::speak {

void add_weight_options(CLI::App* app, const std::string& prefix, WeightOptions* options) {
  cli::WeightOptions* common = &options->common;
  const std::vector<std::string> heads = {"auto", "w8", "w4", "bf16", "keep"}, forms = {"w4a16", "w4a8", "w8a8", "bf16", "keep"};
  const auto add = [&](const char* name, auto& target, const char* help) { return app->add_option(prefix + name, target, help); };
  add("weights", common->weights,
      "Form of a source directory's talker: auto (w8a8), w4a16, w4a8, w8a8, bf16, keep (its own precision)")
      ->check(cli::one_of({"auto", "w4a16", "w4a8", "w8a8", "bf16", "keep"}))
      ->type_name("FORM");
  add("head", common->head, "Form of its head: auto (w8; with bf16 and keep as those), w8, w4, bf16, keep")
      ->check(cli::one_of(heads))
      ->type_name("FORM");
  add("predictor", options->predictor, "Form of the code predictor (as --weights, but 8 bits at least)")
      ->check(cli::one_of(forms))
      ->type_name("FORM");
  add("predictor-head", options->predictor_head, "Form of its heads (as --head, else by its layers)")
      ->check(cli::one_of(heads))
      ->type_name("FORM");
  add("codec", options->codec, "Form of the codec's decoder: fp32 or bf16 (fp32)")
      ->check(cli::one_of({"fp32", "bf16"}))
      ->type_name("FORM");
  add("group", common->group, "Inputs that share a scale: 32, 64, 128, 256 or 0 for the whole row (128; 0 for w8a8)")
      ->check(cli::one_of({"0", "32", "64", "128", "256"}))
      ->type_name("N");
  app->add_flag(prefix + "sym", common->symmetric, "Symmetric quantisation: no zero points");
  add("quantiser", common->quantiser, "How scales are found: search (smallest error) or nearest")
      ->check(cli::one_of({"search", "nearest"}))
      ->type_name("NAME");
  add("keep", common->keep, "Modules that stay as they are, a pattern with * and ?; may be repeated")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  add("precision", common->precision, "default, or fp32: rows, caches and codec in fp32, for comparison with a reference")
      ->check(cli::one_of({"default", "fp32"}))
      ->type_name("NAME");
  add("kv", common->kv, "Type of the caches: bf16, fp32, int8")->check(cli::one_of({"bf16", "fp32", "int8"}))->type_name("TYPE");
}

void add_sampling_options(CLI::App* app, SamplingFlags* flags) {
  constexpr double kAny = std::numeric_limits<double>::max();
  constexpr int64_t kMostCodes = int64_t{1} << 30;
  const auto temperature = [&](const char* name, auto& target, const char* help) {
    app->add_option(name, target, help)->check(cli::number(0, kAny))->type_name("T");
  };
  const auto top_k = [&](const char* name, auto& target, const char* help) {
    app->add_option(name, target, help)->check(cli::whole(0, kMostCodes))->type_name("K");
  };
  const auto top_p = [&](const char* name, auto& target, const char* help) {
    app->add_option(name, target, help)->check(cli::number(0, 1, true))->type_name("P");
  };
  temperature("--temperature", flags->temperature, "Of the talker; 0: greedy");
  top_k("--top-k", flags->top_k, "Only the K most probable codes; 0: all");
  top_p("--top-p", flags->top_p, "Only the most probable codes that make up P");
  app->add_option("--repetition-penalty", flags->repetition_penalty, "Above 1: what the talker has said becomes less likely")
      ->check(cli::number(0, kAny, true))
      ->type_name("R");
  temperature("--subtalker-temperature", flags->subtalker_temperature, "Of the code predictor; 0: greedy");
  top_k("--subtalker-top-k", flags->subtalker_top_k, "Likewise");
  top_p("--subtalker-top-p", flags->subtalker_top_p, "Likewise");
  app->add_flag("--greedy", flags->greedy, "The most probable code, always, of both");
  app->add_option("--seed", flags->seed, "Of both (random; --json and --stats tell it)")->check(cli::whole_u64())->type_name("N");
}

tts::SpeechSampling resolve_sampling(const SamplingFlags& flags, tts::SpeechSampling defaults) {
  tts::SpeechSampling sampling = std::move(defaults);
  // A temperature of nothing is greedy; any other makes a model sample that would not.
  const auto heat = [](const std::optional<double>& flag, double* temperature, bool* sample) {
    if (!flag) return;
    *sample = *flag > 0;
    if (*flag > 0) *temperature = *flag;
  };
  heat(flags.temperature, &sampling.temperature, &sampling.sample);
  heat(flags.subtalker_temperature, &sampling.predictor_temperature, &sampling.predictor_sample);
  sampling.top_k = flags.top_k.value_or(sampling.top_k);
  sampling.top_p = flags.top_p.value_or(sampling.top_p);
  sampling.repetition_penalty = flags.repetition_penalty.value_or(sampling.repetition_penalty);
  sampling.predictor_top_k = flags.subtalker_top_k.value_or(sampling.predictor_top_k);
  sampling.predictor_top_p = flags.subtalker_top_p.value_or(sampling.predictor_top_p);
  if (flags.greedy) sampling.sample = sampling.predictor_sample = false;
  std::random_device device;
  sampling.seed = flags.seed ? *flags.seed : device();
  return sampling;
}

bool overlaps(const std::string& pipeline) { return pipeline == "overlap" || (pipeline == "auto" && omni_num_threads() > 2); }

void add_config_option(CLI::App* app) {
  app->set_config("--config", "", "Reads options from FILE: lines like seed = 7; what the command line says comes first")
      ->type_name("FILE");
  app->allow_config_extras(CLI::config_extras_mode::error);
}

}  // namespace ref::speak
