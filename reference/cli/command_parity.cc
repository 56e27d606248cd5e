// SPDX-License-Identifier: Apache-2.0
// omni-generate parity: every tensor of a forward pass beside a golden's; names the first that departs.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "reference/cli/commands.h"
#include "reference/cli/console.h"
#include "reference/cli/report.h"
#include "reference/spark/parity.h"

namespace ref::cli {
namespace {

struct Options {
  std::string model, golden;
  // Relative: above what another order of sums gives in fp32 (1e-5), below the least fault of a port (tanh for erf: 2.4e-4).
  double tolerance = 1e-4;
  bool json = false;
  WeightOptions weights;
  MachineOptions machine;
};

omni_files::SafetensorsFile open_golden(const std::string& path) {
  try {
    return omni_files::SafetensorsFile::open(path);
  } catch (const omni_files::FileError& error) {
    throw Failure(Exit::kInput, error.what());
  }
}

int64_t context_of(const omni_files::SafetensorsFile& golden) {
  const auto length = [&](const char* name) {
    const omni_files::Tensor* tensor = golden.find(name);
    return tensor == nullptr ? 0 : tensor->elements();
  };
  const int64_t prompt = length("prompt_ids");
  if (prompt == 0) throw Failure(Exit::kInput, fmt::format("{}: has no tensor \"prompt_ids\", so it is no golden", golden.name()));
  return prompt + length("greedy_ids");
}

std::string to_text(const Options& options, const spark::ParityReport& report) {
  std::string text;
  for (const spark::TensorParity& tensor : report.tensors) {
    const bool departs = !(tensor.relative <= options.tolerance);
    text += fmt::format("{:32}  relative {:.3e}  largest {:.3e}{}\n", tensor.name, tensor.relative, tensor.largest,
                        departs ? "  departs" : "");
  }
  if (!report.greedy.empty()) {
    const std::optional<size_t> other = report.first_other_token();
    text += fmt::format("greedy                            {} of {} tokens equal", other.value_or(report.greedy.size()),
                        report.greedy.size());
    text += fmt::format(", logits relative {:.3e}\n", report.greedy_logits);
  }
  return text;
}

Json to_json(const Options& options, const spark::ParityReport& report, const Model& model, const spark::Decoder& decoder) {
  Json json;
  json["tolerance"] = options.tolerance;
  const spark::TensorParity* first = report.first_departure(options.tolerance);
  json["first_departure"] = first == nullptr ? Json(nullptr) : Json(first->name);
  for (const spark::TensorParity& tensor : report.tensors) {
    json["tensors"].push_back({{"name", tensor.name}, {"relative", tensor.relative}, {"largest", tensor.largest}});
  }
  const std::optional<size_t> other = report.first_other_token();
  json["greedy"] = {
      {"tokens", report.greedy.size()}, {"equal", other.value_or(report.greedy.size())}, {"logits_relative", report.greedy_logits}};
  json["model"] = model_json(model, decoder);
  return json;
}

// "" when all is within the tolerance.
std::string departure(const Options& options, const spark::ParityReport& report) {
  if (const spark::TensorParity* first = report.first_departure(options.tolerance)) {
    return fmt::format("{}: tensor \"{}\" departs: relative {:.3e}, tolerance {:.1e}", options.golden, first->name, first->relative,
                       options.tolerance);
  }
  if (!(report.greedy_logits <= options.tolerance)) {
    return fmt::format("{}: greedy_logits depart: relative {:.3e}, tolerance {:.1e}", options.golden, report.greedy_logits,
                       options.tolerance);
  }
  if (const std::optional<size_t> step = report.first_other_token()) {
    const spark::GreedyStep& other = report.greedy[*step];
    return fmt::format("{}: greedy token {} is {}, not {} (margin {:.4f})", options.golden, *step, other.found, other.expected,
                       other.margin);
  }
  return "";
}

int run(const Options& options) {
  set_up_machine(options.machine);
  const omni_files::SafetensorsFile golden = open_golden(options.golden);
  const int64_t context = context_of(golden);
  Model model(options.model);
  model.load(options.weights, options.machine);
  spark::Decoder decoder = model.decoder(options.weights, options.machine, context);
  note_model(model, decoder, options.machine);
  const spark::ParityReport report = guarded(Exit::kInput, [&] { return spark::compare_with_golden(decoder, golden); });
  write_out(options.json ? dump(to_json(options, report, model, decoder)) : to_text(options, report));
  const std::string departs = departure(options, report);
  if (!departs.empty()) throw Failure(Exit::kDeparts, departs);
  return 0;
}

}  // namespace

Run add_parity(CLI::App* app) {
  auto options = std::make_shared<Options>();
  options->weights.weights = "keep";
  options->weights.precision = "fp32";
  options->machine.priority = "fidelity";
  options->machine.quiet = true;
  app->add_option("MODEL", options->model, "A packed directory, or a directory as published")->required();
  app->add_option("GOLDEN", options->golden, "A safetensors file: prompt_ids, tensors by name, greedy_ids, greedy_logits")
      ->required();
  app->add_option("--tolerance", options->tolerance, "Relative root mean square from which on a tensor departs")
      ->check(number(0, std::numeric_limits<double>::max()))
      ->type_name("R")
      ->capture_default_str();
  app->add_flag("--json", options->json, "A JSON object");
  add_weight_options(app, "--", &options->weights);
  add_priority_option(app, &options->machine);
  add_machine_options(app, &options->machine);
  app->footer(app->get_footer() + "\nHere --weights keep, --precision fp32 and --priority fidelity are the defaults.");
  return [options] { return run(*options); };
}

}  // namespace ref::cli
