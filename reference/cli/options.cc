// SPDX-License-Identifier: Apache-2.0
#include "reference/cli/options.h"

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include <charconv>
#include <limits>
#include <string_view>

namespace ref::cli {
namespace {

template <typename Number>
std::optional<Number> parse(std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string refuse(const std::string& wanted, const std::string& value) {
  return fmt::format("expected {}, not \"{}\"", wanted, value);
}

constexpr int64_t kMostTokens = int64_t{1} << 40;

}  // namespace

CLI::Validator whole(int64_t min, int64_t max) {
  return {[=](std::string& text) {
            const std::optional<int64_t> value = parse<int64_t>(text);
            if (value && *value >= min && *value <= max) return std::string();
            return refuse(fmt::format("a whole number of {} to {}", min, max), text);
          },
          ""};
}

CLI::Validator whole_u64() {
  return {[](std::string& text) {
            if (parse<uint64_t>(text)) return std::string();
            return refuse("a whole number of 0 to 18446744073709551615", text);
          },
          ""};
}

CLI::Validator number(double min, double max, bool above) {
  return {[=](std::string& text) {
            const std::optional<double> value = parse<double>(text);
            if (value && *value <= max &&  // no NaN is, and no infinity
                (above ? *value > min : *value >= min))
              return std::string();
            const std::string low = fmt::format("a number {} {}", above ? "above" : "of at least", min);
            const bool bounded = max < std::numeric_limits<double>::max();
            return refuse(bounded ? fmt::format("{} and at most {}", low, max) : low, text);
          },
          ""};
}

CLI::Validator one_of(const std::vector<std::string>& words) {
  return {[words](std::string& text) {
            for (const std::string& word : words) {
              if (text == word) return std::string();
            }
            return refuse(fmt::format("one of {}", fmt::join(words, ", ")), text);
          },
          ""};
}

CLI::Validator id_list() {
  return {[](std::string& text) {
            for (size_t begin = 0; begin <= text.size();) {
              const size_t end = std::min(text.find(',', begin), text.size());
              const std::optional<int32_t> id = parse<int32_t>(std::string_view(text).substr(begin, end - begin));
              if (!id || *id < 0) return refuse("token ids like 0,5,7", text.size() > 40 ? text.substr(0, 40) + "..." : text);
              begin = end + 1;
            }
            return std::string();
          },
          ""};
}

std::vector<int32_t> parse_ids(const std::string& text) {
  std::vector<int32_t> ids;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    ids.push_back(parse<int32_t>(std::string_view(text).substr(begin, end - begin)).value_or(-1));
    begin = end + 1;
  }
  return ids;
}

void add_weight_options(CLI::App* app, const std::string& prefix, WeightOptions* options) {
  const auto add = [&](const char* name, auto& target, const char* help) { return app->add_option(prefix + name, target, help); };
  add("weights", options->weights, "Form of a source directory's weights: auto (by this machine), w4a16, w4a8, w8a8, bf16, keep")
      ->check(one_of({"auto", "w4a16", "w4a8", "w8a8", "bf16", "keep"}))
      ->type_name("FORM");
  add("group", options->group, "Inputs that share a scale: 32, 64, 128, 256 or 0 for the whole row (128)")
      ->check(one_of({"0", "32", "64", "128", "256"}))
      ->type_name("N");
  app->add_flag(prefix + "sym", options->symmetric, "Symmetric quantisation: no zero points");
  add("head", options->head, "Form of the head: auto (w8; as it is with keep), w8, w4, bf16, keep")
      ->check(one_of({"auto", "w8", "w4", "bf16", "keep"}))
      ->type_name("FORM");
  add("quantiser", options->quantiser, "How scales are found: search (smallest error) or nearest")
      ->check(one_of({"search", "nearest"}))
      ->type_name("NAME");
  add("keep", options->keep, "Modules that stay as they are, a pattern with * and ?; may be repeated")
      ->type_name("PATTERN")
      ->allow_extra_args(false);
  add("precision", options->precision, "default, or fp32: rows, scales and cache in fp32, for comparison with a reference")
      ->check(one_of({"default", "fp32"}))
      ->type_name("NAME");
  add("kv", options->kv, "Type of the cache: bf16, fp32, int8")->check(one_of({"bf16", "fp32", "int8"}))->type_name("TYPE");
  add("head-rows", options->head_rows, "Rows that go to an int8 head: int8 (exact integers) or bf16")
      ->check(one_of({"int8", "bf16"}))
      ->type_name("TYPE");
}

void add_priority_option(CLI::App* app, MachineOptions* options) {
  app->add_option("--priority", options->priority, "speed, or fidelity: 16-bit activations even where 8-bit ones are faster")
      ->check(one_of({"speed", "fidelity"}))
      ->type_name("NAME");
}

void add_machine_options(CLI::App* app, MachineOptions* options) {
  app->add_option("--threads", options->threads, "Threads (what affinity, quota and performance cores allow)")
      ->check(whole(1, 1024))
      ->type_name("N");
  app->add_option("--profile", options->profile, "Choose as the machine in FILE would, written by omni-probe --json")
      ->type_name("FILE");
  app->add_option("--weights-memory", options->weights_memory, "A packed model's weights: mapped (the file) or huge (2 MiB pages)")
      ->check(one_of({"auto", "mapped", "huge"}))
      ->type_name("KIND");
  app->add_option("--chunk", options->chunk, "Most rows that go through the layers at once; changes no bit")
      ->check(whole(1, 65536))
      ->type_name("N")
      ->capture_default_str();
  app->add_flag("-q,--quiet", options->quiet, "Nothing on stderr but errors");
  app->add_flag("-v,--verbose", options->verbose, "The kernels that serve, and why");
}

void add_sampling_options(CLI::App* app, SamplingFlags* flags) {
  constexpr double kAny = std::numeric_limits<double>::max();
  app->add_option("--temperature", flags->temperature, "0: greedy")->check(number(0, kAny))->type_name("T");
  app->add_option("--top-k", flags->top_k, "Only the K most probable tokens; 0: all")->check(whole(0, kMostTokens))->type_name("K");
  app->add_option("--top-p", flags->top_p, "Only the most probable tokens that make up P")
      ->check(number(0, 1, true))
      ->type_name("P");
  app->add_option("--min-p", flags->min_p, "Only tokens at least P times as probable as the most probable")
      ->check(number(0, 1))
      ->type_name("P");
  app->add_option("--repetition-penalty", flags->repetition_penalty, "Above 1: tokens of prompt and text become less likely")
      ->check(number(0, kAny, true))
      ->type_name("R");
  app->add_option("--min-new-tokens", flags->min_new_tokens, "New tokens before the text may end")
      ->check(whole(0, std::numeric_limits<int32_t>::max()))
      ->type_name("N");
  app->add_option("--seed", flags->seed, "Of the random stream, PyTorch's (random)")->check(whole_u64())->type_name("N");
}

SamplingOptions resolve_sampling(const SamplingFlags& flags, SamplingOptions defaults) {
  const bool draws = flags.top_k || flags.top_p || flags.min_p;
  if (draws && defaults.temperature == 0) defaults.temperature = 1;
  defaults.temperature = flags.temperature.value_or(defaults.temperature);
  defaults.top_k = flags.top_k.value_or(defaults.top_k);
  defaults.top_p = flags.top_p.value_or(defaults.top_p);
  defaults.min_p = flags.min_p.value_or(defaults.min_p);
  defaults.repetition_penalty = flags.repetition_penalty.value_or(defaults.repetition_penalty);
  defaults.min_new_tokens = flags.min_new_tokens;
  return defaults;
}

spark::Precision parse_precision(const std::string& name) {
  return name == "fp32" ? spark::Precision::kFp32 : spark::Precision::kDefault;
}

omni_dtype parse_kv(const std::string& name) {
  return name == "fp32" ? OMNI_DTYPE_F32 : name == "int8" ? OMNI_DTYPE_S8 : OMNI_DTYPE_BF16;
}

}  // namespace ref::cli
