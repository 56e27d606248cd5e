// SPDX-License-Identifier: Apache-2.0
// omni-generate bench: speed of reading a prompt and of decoding, apart, beside a plain read of the same weights.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <chrono>
#include <random>

#include "reference/cli/commands.h"
#include "reference/cli/console.h"
#include "reference/cli/read_arm.h"
#include "reference/cli/report.h"

namespace ref::cli {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::string model;
  int64_t prefill = 512, decode = 64, depth = 0, repeats = 5;
  std::optional<int64_t> context;
  bool json = false;
  WeightOptions weights;
  MachineOptions machine;
};

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

class Bench {
 public:
  Bench(const Options& options, const Model& model, spark::Decoder* decoder)
      : options_(options),
        decoder_(*decoder),
        pieces_(weight_pieces(*model.weights())),
        logits_(static_cast<size_t>(model.config().vocabulary)) {
    std::mt19937 random(1);
    std::uniform_int_distribution<int32_t> any(0, static_cast<int32_t>(model.config().vocabulary - 1));
    ids_.resize(static_cast<size_t>(options.depth + std::max(options.prefill, options.decode)));
    for (int32_t& id : ids_) id = any(random);
    for (const Bytes piece : pieces_) read_bytes_ += piece.size();
  }

  // From an empty sequence to the logits of one token.
  double first_token() {
    const Clock::time_point start = Clock::now();
    forward(0, 1, spark::Rows::kLast);
    return seconds_since(start);
  }

  void repeat() {
    reads_.push_back(read_once(pieces_));
    const int64_t at = options_.depth;
    if (options_.prefill > 0) {
      go_to(at);
      const Clock::time_point start = Clock::now();
      forward(at, options_.prefill, spark::Rows::kLast);
      prefills_.push_back(seconds_since(start));
    }
    if (options_.decode > 0) {
      go_to(at);
      const Clock::time_point start = Clock::now();
      for (int64_t i = 0; i < options_.decode; ++i) {
        forward(at + i, 1, spark::Rows::kLast);
        if (interrupted()) throw Interrupted();
      }
      decodes_.push_back(seconds_since(start));
    }
    reads_.push_back(read_once(pieces_));
  }

  // Bytes that one token reads half-way through the decoded ones.
  uint64_t token_bytes() const {
    return decoder_.weight_bytes_per_token() + decoder_.cache_bytes_at(options_.depth + options_.decode / 2);
  }
  double read_rate() const { return static_cast<double>(read_bytes_) / median(reads_); }
  double best_read_rate() const { return static_cast<double>(read_bytes_) / *std::ranges::min_element(reads_); }
  double prefill_rate() const { return static_cast<double>(options_.prefill) / median(prefills_); }
  double decode_rate() const { return static_cast<double>(options_.decode) / median(decodes_); }
  double share() const { return decode_rate() * static_cast<double>(token_bytes()) / read_rate(); }
  const std::vector<double>& prefills() const { return prefills_; }
  const std::vector<double>& decodes() const { return decodes_; }
  const std::vector<double>& reads() const { return reads_; }
  uint64_t read_bytes() const { return read_bytes_; }

 private:
  void forward(int64_t at, int64_t count, spark::Rows rows) {
    decoder_.forward(std::span<const int32_t>(ids_).subspan(static_cast<size_t>(at), static_cast<size_t>(count)), rows,
                     rows == spark::Rows::kNone ? std::span<float>() : std::span<float>(logits_));
  }

  // The sequence holds the first `position` ids: taken back where the windows still hold them, else read again.
  void go_to(int64_t position) {
    if (position > 0 && decoder_.position() >= position) {
      try {
        decoder_.rewind(position);
        return;
      } catch (const Error&) {
      }
    }
    decoder_.reset();
    for (int64_t at = 0; at < position; at += options_.machine.chunk) {
      if (interrupted()) throw Interrupted();
      forward(at, std::min(options_.machine.chunk, position - at), spark::Rows::kNone);
    }
  }

  const Options& options_;
  spark::Decoder& decoder_;
  std::vector<Bytes> pieces_;
  uint64_t read_bytes_ = 0;
  std::vector<int32_t> ids_;
  std::vector<float> logits_;
  std::vector<double> prefills_, decodes_, reads_;
};

Json to_json(const Options& options, const Model& model, const spark::Decoder& decoder, const Bench& bench, double first) {
  Json json;
  json["depth"] = options.depth;
  json["chunk"] = options.machine.chunk;
  json["repeats"] = bench.reads().size() / 2;
  if (!bench.prefills().empty()) {
    json["prefill"] = rate_json(options.prefill, median(bench.prefills()));
    json["prefill"]["all_seconds"] = bench.prefills();
  }
  if (!bench.decodes().empty()) {
    json["decode"] = rate_json(options.decode, median(bench.decodes()));
    json["decode"]["all_seconds"] = bench.decodes();
    json["decode"]["bytes_per_token"] = bench.token_bytes();
    json["decode"]["gb_per_second"] = bench.decode_rate() * static_cast<double>(bench.token_bytes()) * 1e-9;
    json["decode"]["share_of_read"] = bench.share();
  }
  json["read"] = {{"bytes", bench.read_bytes()},
                  {"gb_per_second", bench.read_rate() * 1e-9},
                  {"best_gb_per_second", bench.best_read_rate() * 1e-9},
                  {"all_seconds", bench.reads()}};
  json["first_token_seconds"] = first;
  json["load_to_first_token_seconds"] = model.load_seconds() + first;
  json["peak_resident_bytes"] = peak_resident_bytes();
  json["model"] = model_json(model, decoder);
  json["precision"] = options.weights.precision;
  json["kv"] = options.weights.kv;
  json["units"] = "GB is 1e9 bytes; medians over the repeats";
  return json;
}

std::string to_text(const Options& options, const Model& model, const Bench& bench, double first) {
  std::string text;
  if (!bench.prefills().empty()) {
    text += fmt::format("prefill  {:8.1f} tok/s  {} tokens at depth {}\n", bench.prefill_rate(), options.prefill, options.depth);
  }
  if (!bench.decodes().empty()) {
    text += fmt::format("decode   {:8.2f} tok/s  {} tokens at depth {}, {} a token, {:.1f} GB/s\n", bench.decode_rate(),
                        options.decode, options.depth, gb_text(bench.token_bytes()),
                        bench.decode_rate() * static_cast<double>(bench.token_bytes()) * 1e-9);
    text += fmt::format("share    {:8.3f}        of a plain read of the weights, {:.1f} GB/s (best {:.1f})\n", bench.share(),
                        bench.read_rate() * 1e-9, bench.best_read_rate() * 1e-9);
  }
  text += fmt::format("first    {:8.3f} s      from load ({:.3f} s) to the first token\n", model.load_seconds() + first,
                      model.load_seconds());
  return text + fmt::format("memory   {:>8}       peak resident; GB is 1e9 bytes, rates are medians of {}\n",
                            gb_text(peak_resident_bytes()), bench.reads().size() / 2);
}

int run(const Options& options) {
  set_up_machine(options.machine);
  Model model(options.model);
  const int64_t needed = options.depth + std::max({options.prefill, options.decode, int64_t{1}});
  const int64_t context = options.context.value_or(std::max<int64_t>(needed, 2048));
  if (needed > context) throw Failure(Exit::kInput, fmt::format("depth and tokens need {}, more than --ctx {}", needed, context));
  model.load(options.weights, options.machine);
  spark::Decoder decoder = model.decoder(options.weights, options.machine, context);
  note_model(model, decoder, options.machine);
  Bench bench(options, model, &decoder);
  guarded(Exit::kMachine, [&] {
    const double first = bench.first_token();
    ProgressLine progress("bench");
    for (int64_t i = 0; i < options.repeats; ++i) {
      progress.show(static_cast<uint64_t>(i), static_cast<uint64_t>(options.repeats));
      bench.repeat();
    }
    write_out(options.json ? dump(to_json(options, model, decoder, bench, first)) : to_text(options, model, bench, first));
  });
  return 0;
}

}  // namespace

Run add_bench(CLI::App* app) {
  auto options = std::make_shared<Options>();
  constexpr int64_t kMost = int64_t{1} << 30;
  const auto count = [&](const char* name, int64_t& target, int64_t least, const char* help) {
    app->add_option(name, target, help)->check(whole(least, kMost))->type_name("N")->capture_default_str();
  };
  app->add_option("MODEL", options->model, "A packed directory, or a directory as published")->required();
  count("--prefill", options->prefill, 0, "Tokens of the prompt that is read; 0: not measured");
  count("--decode", options->decode, 0, "Tokens that are decoded; 0: not measured");
  count("--depth", options->depth, 0, "Tokens before both");
  count("--repeats", options->repeats, 1, "Repeats; figures are medians");
  app->add_option("--ctx", options->context, "Most tokens (2048, or what is measured)")->check(whole(1, kMost))->type_name("N");
  app->add_flag("--json", options->json, "A JSON object");
  add_weight_options(app, "--", &options->weights);
  add_priority_option(app, &options->machine);
  add_machine_options(app, &options->machine);
  return [options] { return run(*options); };
}

}  // namespace ref::cli
