// SPDX-License-Identifier: Apache-2.0
#include "tools/pack/options.h"

#include <CLI/CLI.hpp>
#include <map>

#include "reference/core/error.h"
#include "reference/core/weight_path.h"
#include "reference/pack/synthetic_models.h"

namespace pack {
namespace {

using ref::HeadType;
using ref::Quantiser;

void check_text_only(const Options& options) {
  const std::pair<const char*, bool> given[] = {{"--predictor", !options.predictor.empty()},
                                                {"--predictor-head", !options.predictor_head.empty()},
                                                {"--codec", !options.codec.empty()},
                                                {"--no-encoders", options.no_encoders}};
  for (const auto& [name, is_given] : given) {
    if (is_given) throw ref::Error(std::string(name) + " is for speech models, and this is none");
  }
}

std::optional<HeadType> asked_head(const std::string& name) { return name.empty() ? std::nullopt : ref::parse_head_type(name); }

ref::SpeechWishes speech_wishes(const Options& options) {
  ref::SpeechWishes wishes;
  if (!options.predictor.empty()) wishes.predictor = ref::parse_weight_type(options.predictor);
  wishes.head = asked_head(options.head);
  wishes.predictor_head = asked_head(options.predictor_head);
  wishes.group = options.group;
  wishes.codec = options.codec == "bf16" ? ref::CodecType::kBf16 : ref::CodecType::kFp32;
  wishes.encoders = !options.no_encoders;
  return wishes;
}

}  // namespace

void add_options(CLI::App& app, Options& options) {
  const std::vector<std::string> models = ref::synthetic_names();
  app.add_option("PATHS", options.paths, "SRC, a model directory in Hugging Face layout, and DST, the packed directory to make")
      ->type_name("SRC DST")
      ->expected(0, 2);
  app.add_option("--weights", options.weights,
                 "Form of the linear layers (of a speech model, of its talker): w4a16, w4a8, w8a8, bf16, or keep (the source's own "
                 "precision); by default what is fastest on this machine, of a speech model w8a8")
      ->check(CLI::IsMember({"w4a16", "w4a8", "w8a8", "bf16", "keep"}));
  app.add_option(
         "--group", options.group,
         "Inputs that share a scale: 32, 64, 128, 256, or 0 for the whole row; by default 128, and 0 for w8a8. Int4 sources "
         "keep their own")
      ->check(CLI::IsMember({0, 32, 64, 128, 256}));
  app.add_flag("--sym", options.symmetric, "No zero points");
  app.add_option(
         "--keep", options.keep,
         "Leave modules that match the glob PATTERN as they are, e.g. '*.down_proj'; may be repeated. Head gates, norms and "
         "biases always stay")
      ->type_name("PATTERN")
      ->expected(1)
      ->allow_extra_args(false)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  app.add_option("--head", options.head,
                 "Form of the output head: bf16, w8, w4 or keep; by default w8, with bf16 and keep as those")
      ->check(CLI::IsMember({"bf16", "w8", "w4", "keep"}));
  const char* speech = "Speech models";
  app.add_option("--predictor", options.predictor,
                 "Form of the code predictor's layers; by default as --weights, but 8 bits at least")
      ->group(speech)
      ->check(CLI::IsMember({"w4a16", "w4a8", "w8a8", "bf16", "keep"}));
  app.add_option("--predictor-head", options.predictor_head, "Form of its output heads; by default as --head, else by its layers")
      ->group(speech)
      ->check(CLI::IsMember({"bf16", "w8", "w4", "keep"}));
  app.add_option("--codec", options.codec, "Form of the codec's decoder: fp32 (the default), or bf16")
      ->group(speech)
      ->check(CLI::IsMember({"fp32", "bf16"}));
  app.add_flag("--no-encoders", options.no_encoders, "Leave out what reads a reference recording: 0.2 GB less, and no cloning")
      ->group(speech);
  app.add_option("--quantiser", options.quantiser, "nearest, search (the default) or gptq (needs --calibrate)")
      ->check(CLI::IsMember({"nearest", "search", "gptq"}));
  app.add_option("--calibrate", options.calibrate, "Weight errors by what the layers see when the model reads the text FILE")
      ->type_name("FILE");
  app.add_option("--calibrate-windows", options.calibrate_windows,
                 "Windows of 512 tokens that are read of it, spread evenly; 64 by default")
      ->check(CLI::Range(1, 4096));
  app.add_option("--scales", options.scales,
                 "Scale arrays of w4a16: auto (bf16 where that is exact, else fp32), bf16 (zeros of nearest are rounded), fp32")
      ->check(CLI::IsMember({"auto", "bf16", "fp32"}));
  app.add_flag("--report{-}", options.report,
               "A table of layout, size, error and time of each tensor; --report=FILE writes it as JSON");
  app.add_option("--verify", options.verify, "Read the packed directory DIR again and compare its digests")->type_name("DIR");
  app.add_option("--synthetic", options.synthetic, "Instead of SRC: random weights in the shapes of a released model")
      ->check(CLI::IsMember(models));
  app.add_option("--synthetic-source", options.synthetic_source,
                 "Instead of SRC: the same as a bf16 checkpoint in Hugging Face layout, which is not packed")
      ->check(CLI::IsMember(models));
  app.add_option("--threads", options.threads, "Threads; 0 for as many as this machine should use")->check(CLI::Range(0, 1024));
  app.add_flag("--strict", options.strict, "A tensor that is no part of the model is an error");
  app.add_flag("--force", options.force, "Replace DST when it is a packed model");
  app.add_flag("--quiet", options.quiet, "Write errors only");
  app.set_version_flag("--version", omni_version());
  app.footer(
      "Exit codes: 0, 2 usage, 3 the source cannot be packed or a model does not verify, 4 the destination cannot be written,\n"
      "5 memory or the library, 130 and 143 after SIGINT and SIGTERM. DST appears only when it is complete.");
}

std::string check_paths(const Options& options) {
  const int modes =
      (options.verify.empty() ? 0 : 1) + (options.synthetic.empty() ? 0 : 1) + (options.synthetic_source.empty() ? 0 : 1);
  if (modes > 1) return "--verify, --synthetic and --synthetic-source exclude each other";
  if (modes > 0 && !options.calibrate.empty()) return "--calibrate needs a source to read the text with";
  if (!options.calibrate.empty() && options.quantiser == "nearest") return "--calibrate means nothing to --quantiser nearest";
  const bool wide = options.weights == "w8a8" || options.weights == "bf16" || options.weights == "keep";
  if (!options.calibrate.empty() && wide && options.head != "w4")
    return "--calibrate is for 4 bits, not for --weights " + options.weights;
  if (!options.verify.empty() && !options.paths.empty())
    return "--verify takes no other path than its own: " + options.paths.front();
  const size_t wanted = !options.verify.empty() ? 0 : modes == 1 ? 1 : 2;
  if (options.paths.size() == wanted) return "";
  return wanted == 1 ? "a synthetic model takes one path, DST" : "two paths are needed, SRC and DST (or see --help)";
}

ref::PackOptions pack_options(const Options& options, bool speech, std::string* weights_reason) {
  if (!speech) check_text_only(options);
  if (speech && (options.quantiser == "gptq" || !options.calibrate.empty())) {
    throw ref::Error("--calibrate and --quantiser gptq read a text, which is not what the layers of a speech model see");
  }
  ref::PackOptions pack;
  if (options.weights.empty()) {
    auto machine = omni_machine{};
    machine.size = sizeof machine;
    if (omni_get_machine(&machine) != OMNI_OK) throw ref::Error(omni_last_error());
    const ref::WeightPath path = speech ? ref::choose_speech_path() : ref::choose_weight_path(machine, ref::Priority::kSpeed);
    pack.weights = path.type;
    *weights_reason = path.reason;
  } else {
    pack.weights = *ref::parse_weight_type(options.weights);
  }
  pack.group = options.group.value_or(ref::default_group(pack.weights));
  pack.symmetric = options.symmetric;
  pack.head = asked_head(options.head).value_or(ref::default_head(pack.weights));
  const std::map<std::string, Quantiser> quantisers = {
      {"nearest", Quantiser::kNearest}, {"search", Quantiser::kSearch}, {"gptq", Quantiser::kGptq}};
  pack.quantiser = quantisers.at(options.quantiser);
  pack.bf16_zeros = options.scales == "bf16";
  pack.fp32_scales = options.scales == "fp32";
  pack.keep = options.keep;
  pack.strict = options.strict;
  if (speech) pack.speech = ref::speech_options(speech_wishes(options), pack.weights);
  return pack;
}

}  // namespace pack
