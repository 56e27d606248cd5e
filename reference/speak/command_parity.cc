// SPDX-License-Identifier: Apache-2.0
// omni-speak parity: every tensor of a request, and its samples, beside a golden's; names the first that departs.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <limits>

#include "reference/cli/console.h"
#include "reference/qwen3_tts/model/parity.h"
#include "reference/speak/commands.h"
#include "reference/speak/model.h"

namespace ref::speak {
namespace {

struct Options {
  std::string model, golden;
  double tolerance = tts::ParityTolerance{}.rows, wave_tolerance = tts::ParityTolerance{}.wave;
  bool json = false;
  WeightOptions weights;
  cli::MachineOptions machine;
};

omni_files::SafetensorsFile open_golden(const std::string& path) {
  try {
    return omni_files::SafetensorsFile::open(path);
  } catch (const omni_files::FileError& error) {
    throw Failure(Exit::kInput, error.what());
  }
}

// Prompt rows and frames.
int64_t context_of(const omni_files::SafetensorsFile& golden) {
  const auto rows = [&](const char* name) {
    const omni_files::Tensor* tensor = golden.find(name);
    return tensor == nullptr || tensor->shape.empty() ? 0 : tensor->shape[0];
  };
  const int64_t prompt = rows("prompt_embeds");
  if (prompt == 0) {
    throw Failure(Exit::kInput, fmt::format("{}: has no tensor \"prompt_embeds\", so it is no golden of a request", golden.name()));
  }
  return prompt + rows("codes") + 1;
}

std::string to_text(const tts::SpeechParity& parity) {
  std::string text;
  for (const tts::SpeechTensor& tensor : parity.tensors) {
    text += fmt::format("{:22}  largest {:.3e}  relative {:.3e}  tolerance {:.1e}{}\n", tensor.name, tensor.largest,
                        tensor.relative, tensor.tolerance, tensor.departs() ? "  departs" : "");
  }
  if (!parity.note.empty()) text += "note: " + parity.note + "\n";
  return text;
}

Json to_json(const tts::SpeechParity& parity, const Model& model) {
  const tts::SpeechTensor* first = parity.first_departure();
  Json json;
  json["first_departure"] = first == nullptr ? Json(nullptr) : Json(first->name);
  json["frames"] = parity.frames;
  for (const tts::SpeechTensor& tensor : parity.tensors) {
    json["tensors"].push_back({{"name", tensor.name},
                               {"largest", tensor.largest},
                               {"relative", tensor.relative},
                               {"tolerance", tensor.tolerance},
                               {"row", tensor.row},
                               {"differences", tensor.differences},
                               {"departs", tensor.departs()}});
  }
  json["note"] = parity.note;
  json["model"] = model_json(model);
  return json;
}

int run(const Options& options) {
  cli::set_up_machine(options.machine);
  const omni_files::SafetensorsFile golden = open_golden(options.golden);
  const int64_t context = context_of(golden);
  Model model(options.model);
  model.load(options.weights, options.machine, false);
  tts::Talker talker = model.talker(options.weights, options.machine, context);
  tts::CodePredictor predictor = model.predictor(options.weights);
  tts::CodecDecoder codec = model.codec(options.weights);
  note_model(model, options.machine, talker.describe());
  tts::SpeechParityOptions parity_options;
  parity_options.tolerance = {options.tolerance, options.wave_tolerance};
  parity_options.decode = [&](std::span<const tts::Frame> frames) { return tts::decode_chunked(&codec, frames); };
  const tts::SpeechParity parity =
      guarded(Exit::kInput, [&] { return tts::compare_with_golden(&talker, &predictor, golden, parity_options); });
  cli::write_out(options.json ? cli::dump(to_json(parity, model)) : to_text(parity));
  if (const tts::SpeechTensor* first = parity.first_departure()) {
    throw Failure(Exit::kDeparts, fmt::format("{}: tensor \"{}\" departs: largest difference {:.3e} in row {}, tolerance {:.1e}",
                                              options.golden, first->name, first->largest, first->row, first->tolerance));
  }
  return 0;
}

}  // namespace

Run add_parity(CLI::App* app) {
  auto options = std::make_shared<Options>();
  options->weights.common.weights = "keep";
  options->weights.common.precision = "fp32";
  options->weights.common.kv = "fp32";
  options->machine.quiet = true;
  app->add_option("MODEL", options->model, "A directory as published, or a packed one")->required();
  app->add_option("GOLDEN", options->golden, "A safetensors file of one request: ids, rows, logits, codes, samples")->required();
  const auto tolerance = [&](const char* name, double& target, const char* help) {
    app->add_option(name, target, help)
        ->check(cli::number(0, std::numeric_limits<double>::max()))
        ->type_name("R")
        ->capture_default_str();
  };
  tolerance("--tolerance", options->tolerance, "Largest difference of rows, logits and scores; ids must be equal");
  tolerance("--wave-tolerance", options->wave_tolerance, "Largest difference of a sample");
  app->add_flag("--json", options->json, "A JSON object");
  add_weight_options(app, "--", &options->weights);
  cli::add_machine_options(app, &options->machine);
  app->footer(app->get_footer() + "\nHere --weights keep, --precision fp32 and --kv fp32 are the defaults.");
  return [options] { return run(*options); };
}

}  // namespace ref::speak
