// SPDX-License-Identifier: Apache-2.0
#include "bench/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <charconv>

namespace omnibench {
namespace {

[[noreturn]] void bad(const std::string& flag, const std::string& value, const std::string& expected) {
  throw UsageError(fmt::format("{} {}: expected {}", flag, value.empty() ? "\"\"" : value, expected));
}

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> out(1);
  char quote = 0;
  for (const char c : text) {
    if (quote != 0 ? c == quote : (c == '\'' || c == '"')) quote = quote != 0 ? 0 : c;
    if (c == ',' && quote == 0) {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

template <class Number>
Number parse_number(const std::string& flag, const std::string& text, Number low, Number high, const std::string& expected) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= low && value <= high)) bad(flag, text, expected);
  return value;
}

/// A case asked for twice would be two results with one name in a report.
template <class Value>
void refuse_twice(const std::string& flag, const std::string& text, std::vector<Value> values) {
  std::sort(values.begin(), values.end());
  if (std::adjacent_find(values.begin(), values.end()) != values.end()) bad(flag, text, "each value once");
}

std::vector<Shape> parse_shapes(const std::string& text) {
  std::vector<Shape> out;
  for (const std::string& item : split(text)) {
    if (item == "all") {
      out.insert(out.end(), known_shapes().begin(), known_shapes().end());
      continue;
    }
    const std::optional<Shape> shape = parse_shape(item);
    if (!shape) bad("--shape", item, "gate_up, down, q_k_v, o, head, all, NxK or MxNxK");
    out.push_back(*shape);
  }
  return out;
}

ArmRequest parse_arm(const std::string& item) {
  ArmRequest request;
  const size_t equals = item.find('=');
  if (equals == std::string::npos) {
    request.name = request.arm = item;
  } else {
    request.name = item.substr(0, equals);
    const std::string what = item.substr(equals + 1);
    if (what.starts_with("cmd:") || what.starts_with("run:")) {
      request.worker = what[0] == 'c';
      request.command = what.substr(4);
    } else {
      request.arm = what;
    }
  }
  if (request.name.empty() || (request.arm.empty() && request.command.empty())) {
    bad("--arms", item, "a name of --list, name=ARM, name=cmd:COMMAND or name=run:COMMAND");
  }
  return request;
}

void parse_arms(const std::string& text, RunOptions& run) {
  run.add_arms = text.starts_with('+');
  for (const std::string& item : split(run.add_arms ? text.substr(1) : text)) run.arms.push_back(parse_arm(item));
  for (size_t i = 0; i < run.arms.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      if (run.arms[i].name == run.arms[j].name) bad("--arms", run.arms[i].name, "every name once");
    }
  }
}

/// The texts as CLI11 collects them; meaning is given afterwards so that every error has the same form.
struct Texts {
  std::string shape, op = "gemv", m = "1", group = "128", isa, threads, cache = "cold", cls = "group", passes = "30",
                     min_effect = "8", arms;
};

void declare(CLI::App& app, Texts& texts, RunOptions& run, bool& list) {
  app.add_option("--shape", texts.shape, "gate_up, down, q_k_v, o, head, all, NxK or MxNxK; a list with commas");
  app.add_option("--op", texts.op, "gemv, pack, dequant; a list with commas")->capture_default_str();
  app.add_option("--m", texts.m, "rows of x, 1..16; a list with commas")->capture_default_str();
  app.add_option("--group", texts.group, "32, 64, 128, 256 or K")->capture_default_str();
  app.add_option("--isa", texts.isa, "highest tier of our arms; all of this machine when left out");
  app.add_option("--threads", texts.threads, "threads of every arm; all usable cores when left out");
  app.add_option("--cache", texts.cache, "cold (operands rotate through more than the last-level cache), hot or both")
      ->capture_default_str();
  app.add_option("--class", texts.cls, "numerics class: group or torch")->capture_default_str();
  app.add_option("--passes", texts.passes, "samples of each arm")->capture_default_str();
  app.add_option("--min-effect", texts.min_effect, "percent under which two arms are not ranked")->capture_default_str();
  app.add_option("--arms", texts.arms,
                 "arms to run, with commas: names of --list, kernel names, name=ARM (the same again), name=cmd:COMMAND (a worker), "
                 "name=run:COMMAND (a command's whole time); a leading + adds them to the default ones");
  app.add_option("--json", run.json_path, "write the report here");
  app.add_option("--html", run.html_path, "write a page with plots here");
  app.add_flag("--list", list, "list shapes, operations, arms and kernels, and stop");
}

RunOptions interpret(const Texts& texts, RunOptions run) {
  run.shapes = parse_shapes(texts.shape);
  std::vector<std::string> names;
  for (const Shape& shape : run.shapes) names.push_back(fmt::format("{}x{}", shape.m, shape.name));
  refuse_twice("--shape", texts.shape, names);
  run.ops = split(texts.op);
  for (const std::string& op : run.ops) {
    if (op != "gemv" && op != "pack" && op != "dequant") bad("--op", op, "gemv, pack or dequant");
  }
  run.ms.clear();
  for (const std::string& m : split(texts.m)) run.ms.push_back(parse_number<int>("--m", m, 1, 16, "1..16"));
  refuse_twice("--m", texts.m, run.ms);
  refuse_twice("--op", texts.op, run.ops);
  for (const Shape& shape : run.shapes) {
    if (shape.m > 16) bad("--shape", fmt::format("{}x{}", shape.m, shape.name), "M of 1..16");
  }
  if (texts.group != "K" && texts.group != "k") {
    const auto group = parse_number<uint32_t>("--group", texts.group, 1, 1u << 31, "32, 64, 128, 256 or K");
    const bool usual = group == 32 || group == 64 || group == 128 || group == 256;
    for (const Shape& shape : run.shapes) {
      if (!usual && group != shape.k) bad("--group", texts.group, "32, 64, 128, 256 or K");
    }
  }
  run.group = texts.group == "k" ? "K" : texts.group;
  if (!texts.isa.empty()) {
    if (std::find(tier_names().begin(), tier_names().end(), texts.isa) == tier_names().end()) {
      bad("--isa", texts.isa, fmt::format("one of {}", fmt::join(tier_names(), ", ")));
    }
    run.isa = texts.isa;
  }
  run.threads = texts.threads.empty() ? omni_num_threads() : parse_number<uint32_t>("--threads", texts.threads, 1, 256, "1..256");
  if (texts.cache != "cold" && texts.cache != "hot" && texts.cache != "both") bad("--cache", texts.cache, "cold, hot or both");
  run.cache = texts.cache == "cold" ? Cache::kCold : (texts.cache == "hot" ? Cache::kHot : Cache::kBoth);
  if (texts.cls != "group" && texts.cls != "torch") bad("--class", texts.cls, "group or torch");
  run.numerics = texts.cls == "torch" ? OMNI_NUMERICS_TORCH : OMNI_NUMERICS_GROUP;
  run.passes = parse_number<int>("--passes", texts.passes, 1, 100000, "1..100000");
  run.min_effect_percent = parse_number<double>("--min-effect", texts.min_effect, 0, 1000, "a percentage, 0..1000");
  if (!texts.arms.empty()) parse_arms(texts.arms, run);
  return run;
}

bool fits(const Case& c, uint64_t l3_bytes) { return l3_bytes > 0 && bytes_model(c).total() <= static_cast<double>(l3_bytes); }

}  // namespace

const std::vector<std::string>& tier_names() {
  static const std::vector<std::string> names = {"portable",   "avx2",       "avxvnni", "avx512f",
                                                 "avx512vnni", "avx512bf16", "amxint8", "amxbf16"};
  return names;
}

Options parse_options(int argc, const char* const* argv) {
  CLI::App app{"omni-bench: measures int4 kernels against their limits and their peers, interleaved, and ranks only what differs"};
  app.name("omni-bench");
  Options options;
  Texts texts;
  bool list = false;
  std::string compare_effect = "8";
  declare(app, texts, options.run, list);
  CLI::App* compare = app.add_subcommand("compare", "compare two reports by the same rules");
  compare->add_option("reports", options.files, "two JSON reports")->required()->expected(2);
  compare->add_option("--min-effect", compare_effect, "percent under which two arms are not ranked")->capture_default_str();
  compare->add_flag("--fail-on-slower", options.fail_on_slower, "exit with 1 when the second report is ranked slower somewhere");
  CLI::App* worker = app.add_subcommand("worker", "serve as an arm of another omni-bench (docs/workers.md)");
  worker->add_option("--isa", texts.isa, "highest tier");
  CLI::App* verify = app.add_subcommand("verify", "compare every kernel with golden files, bit for bit (docs/verify.md)");
  std::string verify_threads = "1,2,8";
  verify->add_option("paths", options.verify.paths, "golden files, or folders of them")->required();
  verify->add_option("--threads", verify_threads, "thread counts, each 1..256; a list with commas")->capture_default_str();
  verify->add_flag("--exhaustive", options.verify.exhaustive, "digest files: the portable tier and M = 1..16 on every shape, too");
  verify->add_option("--json", options.verify.json_path, "write every check here");
  app.require_subcommand(0, 1);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success&) {
    options.action = Action::kHelp;
    options.help = app.get_subcommands().empty() ? app.help() : app.get_subcommands()[0]->help();
    return options;
  } catch (const CLI::ParseError& error) {
    std::string text = error.what();
    std::replace(text.begin(), text.end(), '\n', ' ');
    throw UsageError(text);
  }
  for (CLI::App* command : {&app, verify}) {
    for (const char* flag : {"--json", "--html"}) {
      const CLI::Option* option = command->get_option_no_throw(flag);
      if (option != nullptr && option->count() > 0 && option->as<std::string>().empty()) bad(flag, "", "a file to write");
    }
  }
  for (int i = 1; i < argc; ++i) options.run.command_line += fmt::format("{}{}", i > 1 ? " " : "", argv[i]);
  if (compare->parsed()) {
    options.action = Action::kCompare;
    options.compare_min_effect_percent = parse_number<double>("--min-effect", compare_effect, 0, 1000, "a percentage, 0..1000");
    return options;
  }
  if (verify->parsed()) {
    options.action = Action::kVerify;
    options.verify.threads.clear();
    for (const std::string& threads : split(verify_threads)) {
      options.verify.threads.push_back(parse_number<uint32_t>("--threads", threads, 1, 256, "1..256"));
    }
    return options;
  }
  if (worker->parsed()) {
    options.action = Action::kWorker;
    if (!texts.isa.empty()) {
      texts.shape = "o";
      options.run = interpret(texts, options.run);
    }
    return options;
  }
  if (list) {
    options.action = Action::kList;
    return options;
  }
  if (texts.shape.empty()) throw UsageError("--shape is needed: gate_up, down, q_k_v, o, head, all, NxK or MxNxK");
  options.run = interpret(texts, options.run);
  return options;
}

std::vector<Case> cases_of(const RunOptions& options, uint64_t l3_bytes, std::vector<std::string>* notes) {
  std::vector<Case> out;
  for (const Shape& shape : options.shapes) {
    for (const std::string& op : options.ops) {
      std::vector<int> ms = shape.m > 0 ? std::vector<int>{static_cast<int>(shape.m)} : options.ms;
      if (op != "gemv") ms = {0};
      for (const int m : ms) {
        Case c;
        c.op = op;
        c.shape = shape;
        c.m = m;
        c.group = static_cast<uint32_t>(options.group == "K" ? shape.k : std::stol(options.group));
        c.numerics = options.numerics;
        c.threads = options.threads;
        if (options.cache != Cache::kHot) out.push_back(c);
        if (options.cache == Cache::kCold) continue;
        c.hot = true;
        if (fits(c, l3_bytes)) {
          out.push_back(c);
          continue;
        }
        const std::string why = fmt::format("{} moves {:.1f} MB, the last-level cache holds {:.1f} MB", c.id(),
                                            bytes_model(c).total() / 1e6, static_cast<double>(l3_bytes) / 1e6);
        if (options.cache == Cache::kHot) throw UsageError("--cache hot: " + why);
        notes->push_back("hot refused: " + why);
      }
    }
  }
  return out;
}

}  // namespace omnibench
