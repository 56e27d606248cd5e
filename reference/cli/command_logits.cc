// SPDX-License-Identifier: Apache-2.0
// omni-generate logits: what a model makes of a text, token by token.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <cstring>

#include "reference/cli/commands.h"
#include "reference/cli/console.h"
#include "reference/cli/report.h"
#include "reference/generate/evaluate.h"

namespace ref::cli {
namespace {

struct Options {
  std::string model, text, ids, output;
  bool no_bos = false, all = false, json = false;
  int64_t top = 10;
  WeightOptions weights;
  MachineOptions machine;
};

// A safetensors file of ids [T] and logits [rows][V], the last rows of the text.
std::string safetensors(const std::vector<int32_t>& ids, const std::vector<float>& logits, int64_t rows, int64_t vocabulary) {
  const size_t id_bytes = ids.size() * sizeof(int32_t), logit_bytes = logits.size() * sizeof(float);
  const Json header = {
      {"ids", {{"dtype", "I32"}, {"shape", {ids.size()}}, {"data_offsets", {0, id_bytes}}}},
      {"logits", {{"dtype", "F32"}, {"shape", {rows, vocabulary}}, {"data_offsets", {id_bytes, id_bytes + logit_bytes}}}}};
  std::string text = header.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  std::string file(8, '\0');
  const uint64_t length = text.size();
  std::memcpy(file.data(), &length, sizeof length);
  file += text;
  file.append(reinterpret_cast<const char*>(ids.data()), id_bytes);
  file.append(reinterpret_cast<const char*>(logits.data()), logit_bytes);
  return file;
}

std::string token_text(const Model& model, int32_t id) {
  return model.tokenizer() == nullptr ? std::string() : utf8_lossy(model.tokenizer()->bytes_of(id, false));
}

Json top_json(const Model& model, std::span<const float> logits, size_t count) {
  const double all = log_sum_exp(logits);
  Json rows = Json::array();
  for (const int32_t id : top_ids(logits, count)) {
    const float logit = logits[static_cast<size_t>(id)];
    rows.push_back({{"id", id},
                    {"logit", logit},
                    {"probability", std::exp(static_cast<double>(logit) - all)},
                    {"text", token_text(model, id)}});
  }
  return rows;
}

std::string top_text(const Json& rows) {
  std::string text = "    id       logit  probability  text\n";
  for (const Json& row : rows) {
    text += fmt::format("{:6}  {:10.5f}  {:11.6f}  {}\n", row["id"].get<int32_t>(), row["logit"].get<float>(),
                        row["probability"].get<double>(), Json(row["text"]).dump(-1, ' ', false, Json::error_handler_t::replace));
  }
  return text;
}

int run(const CLI::App& app, const Options& options) {
  set_up_machine(options.machine);
  if (app.count("TEXT") + app.count("--ids") != 1) throw Failure(Exit::kUsage, "give either a TEXT or --ids LIST");
  Model model(options.model);
  std::vector<int32_t> ids;
  if (app.count("--ids") != 0) {
    ids = parse_ids(options.ids);
  } else {
    ids = model.encode(options.text == "-" ? read_input("TEXT", "-") : options.text, !options.no_bos);
  }
  if (ids.empty()) throw Failure(Exit::kInput, "the text is empty and --no-bos leaves out the token before it");
  model.check_ids(ids);
  model.load(options.weights, options.machine);
  const auto length = static_cast<int64_t>(ids.size());
  spark::Decoder decoder = model.decoder(options.weights, options.machine, length);
  note_model(model, decoder, options.machine);
  const int64_t vocabulary = model.config().vocabulary, rows = options.all ? length : 1;
  std::vector<float> logits(static_cast<size_t>(rows * vocabulary));
  guarded(Exit::kInput, [&] { decoder.forward(ids, options.all ? spark::Rows::kAll : spark::Rows::kLast, logits); });
  if (interrupted()) throw Interrupted();
  if (!options.output.empty()) write_file("--output", options.output, safetensors(ids, logits, rows, vocabulary));
  const std::span<const float> last = std::span<const float>(logits).last(static_cast<size_t>(vocabulary));
  const Json top = guarded(Exit::kModel, [&] { return top_json(model, last, static_cast<size_t>(options.top)); });
  if (options.json) {
    write_out(dump({{"ids", ids}, {"top", top}, {"model", model_json(model, decoder)}}));
  } else {
    write_out(top_text(top));
  }
  return 0;
}

}  // namespace

Run add_logits(CLI::App* app) {
  auto options = std::make_shared<Options>();
  app->add_option("MODEL", options->model, "A packed directory, or a directory as published")->required();
  app->add_option("TEXT", options->text, "The text, after one token that begins a sequence; - reads stdin");
  app->add_option("--ids", options->ids, "Token ids instead of a text, nothing is added: 0,5,7")
      ->check(id_list())
      ->type_name("LIST");
  app->add_flag("--no-bos", options->no_bos, "No token before the text");
  app->add_option("-o,--output", options->output, "Writes ids and logits as safetensors")->type_name("FILE");
  app->add_flag("--all", options->all, "Logits after every token in the file, not after the last one only");
  app->add_option("--top", options->top, "So many of the most probable next tokens")
      ->check(whole(1, 1 << 20))
      ->type_name("N")
      ->capture_default_str();
  app->add_flag("--json", options->json, "A JSON object");
  add_weight_options(app, "--", &options->weights);
  add_priority_option(app, &options->machine);
  add_machine_options(app, &options->machine);
  return [app, options] { return run(*app, *options); };
}

}  // namespace ref::cli
