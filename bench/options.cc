// SPDX-License-Identifier: Apache-2.0
#include "bench/options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <charconv>
#include <string_view>

#include "bench/ops/op.h"

namespace omnibench {
namespace {

/// Options that only say where results go.
constexpr std::array<const char*, 3> kDestinations = {"--json", "--html", "--summary"};

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

std::vector<const Op*> parse_ops(const std::string& text) {
  std::vector<const Op*> out;
  for (const std::string& item : split(text)) {
    const Op* op = find_op(item);
    if (op == nullptr) bad("--op", item, "an operation of --list");
    out.push_back(op);
  }
  refuse_twice("--op", text, out);
  return out;
}

/// One entry of --shape as the operation understands it; "" is its usual shape.
std::vector<Shape> shapes_of(const Op& op, const std::string& item) {
  if (item == "all") return op.shapes;
  if (item.empty()) return {op.shapes.front()};
  const std::optional<Shape> shape = parse_shape(op, item);
  if (!shape) bad("--shape", item, fmt::format("{} ({})", shapes_text(op), op.name));
  return {*shape};
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
  std::string shape, op, m = "1", group, isa, threads, cache, variant, passes = "30", min_effect = "8", arms, budget = "10";
};

void declare(CLI::App& app, Texts& texts, Options& options, bool& list, bool& suite) {
  RunOptions& run = options.run;
  app.add_option("--op", texts.op, "operations of --list, with commas; w4a16 when left out");
  app.add_option("--shape", texts.shape,
                 "shapes of --list or sizes (NxK, MxNxK for linear operations), with commas; all: every named shape; the first "
                 "named one when left out");
  app.add_option("--m", texts.m, "rows, where the operation has them; a list with commas")->capture_default_str();
  app.add_option("--group", texts.group, "32, 64, 128, 256 or K, where weights have scales; 128 (8-bit weights: K) when left out");
  app.add_option("--class", texts.variant, "class or variant of the operation (see --list); its first one when left out");
  app.add_option("--isa", texts.isa, "highest tier of our arms; all of this machine when left out");
  app.add_option("--threads", texts.threads, "threads of every arm; all usable cores when left out");
  app.add_option(
      "--cache", texts.cache,
      "cold (what rotates is more than the last-level cache), hot or both; what is usual for the operation when left out");
  app.add_option("--passes", texts.passes, "samples of each arm; with --suite the most of them")->capture_default_str();
  app.add_option("--min-effect", texts.min_effect, "percent under which two arms are not ranked")->capture_default_str();
  app.add_option("--arms", texts.arms,
                 "arms to run, with commas: names of --list, kernel names, name=ARM (the same again), name=cmd:COMMAND (a worker), "
                 "name=run:COMMAND (a command's whole time); a leading + adds them to the default ones");
  app.add_option("--peers", run.peers,
                 "how to run the workers of the operations' other peers, e.g. \"build/peers/bin/python bench/peers/peer.py\"; "
                 "without it they are left out");
  app.add_option("--json", run.json_path, "write the report here");
  app.add_option("--html", run.html_path, "write a page with plots here");
  app.add_flag("--suite", suite, "run every row of the suite (see --list) instead, with the arms that its comparisons need");
  app.add_option("--budget", texts.budget, "with --suite: minutes to stay within; fewer passes, never under 12")
      ->capture_default_str();
  app.add_option("--only", options.suite.only, "with --suite: only rows whose name contains this");
  app.add_option("--summary", options.suite.summary_path, "with --suite: write its table here, as Markdown");
  app.add_flag("--list", list, "list operations, shapes, arms, kernels and the suite, and stop");
}

/// The case of an operation, a shape and M, without threads and cache.
Case case_of(const Op& op, const Shape& shape, int64_t m, const Texts& texts) {
  Case c;
  c.op = op.name;
  c.shape = shape;
  c.m = op.most_rows == 0 ? 0 : (shape.m > 0 ? shape.m : m);
  if (op.most_rows > 0 && c.m > op.most_rows) {
    if (shape.m > 0) bad("--shape", fmt::format("{}x{}", shape.m, shape.name), fmt::format("M of 1..{}", op.most_rows));
    bad("--m", std::to_string(m), fmt::format("1..{} for {}", op.most_rows, op.name));
  }
  if (!op.variants.empty()) {
    c.variant = texts.variant.empty() ? op.variants.front() : texts.variant;
    if (std::find(op.variants.begin(), op.variants.end(), c.variant) == op.variants.end()) {
      bad("--class", c.variant, fmt::format("{} ({})", fmt::join(op.variants, ", "), op.name));
    }
  }
  if (op.group.empty()) return c;
  const std::string group = texts.group.empty() ? op.group : texts.group;
  const auto k = static_cast<uint32_t>(c.k());
  c.group = group == "K" || group == "k" ? k : parse_number<uint32_t>("--group", group, 1, 1U << 31, "32, 64, 128, 256 or K");
  const bool usual = c.group == 32 || c.group == 64 || c.group == 128 || c.group == 256;
  if (!usual && c.group != k) bad("--group", group, "32, 64, 128, 256 or K");
  return c;
}

std::vector<Case> parse_cases(const Texts& texts) {
  const std::vector<const Op*> ops = parse_ops(texts.op.empty() ? "w4a16" : texts.op);
  std::vector<int64_t> ms;
  for (const std::string& m : split(texts.m)) ms.push_back(parse_number<int64_t>("--m", m, 1, int64_t{1} << 20, "1 or more"));
  refuse_twice("--m", texts.m, ms);
  std::vector<Case> out;
  for (const std::string& item : texts.shape.empty() ? std::vector<std::string>{""} : split(texts.shape)) {
    if (item.empty() && !texts.shape.empty()) bad("--shape", item, "a shape between two commas");
    for (const Op* op : ops) {
      for (const Shape& shape : shapes_of(*op, item)) {
        const bool many = op->most_rows > 0 && shape.m == 0;
        for (const int64_t m : many ? ms : std::vector<int64_t>{1}) out.push_back(case_of(*op, shape, m, texts));
      }
    }
  }
  std::vector<std::string> names;
  for (const Case& c : out) names.push_back(c.id());
  refuse_twice("--shape", texts.shape, names);
  return out;
}

/// What is common to a run and to the suite.
void interpret_common(const Texts& texts, RunOptions& run) {
  if (!texts.isa.empty()) {
    if (std::find(tier_names().begin(), tier_names().end(), texts.isa) == tier_names().end()) {
      bad("--isa", texts.isa, fmt::format("one of {}", fmt::join(tier_names(), ", ")));
    }
    run.isa = texts.isa;
  }
  run.threads = texts.threads.empty() ? omni_num_threads() : parse_number<uint32_t>("--threads", texts.threads, 1, 256, "1..256");
  run.passes = parse_number<int>("--passes", texts.passes, 1, 100000, "1..100000");
  run.min_effect_percent = parse_number<double>("--min-effect", texts.min_effect, 0, 1000, "a percentage, 0..1000");
}

void interpret(const Texts& texts, RunOptions& run) {
  interpret_common(texts, run);
  run.cases = parse_cases(texts);
  for (Case& c : run.cases) c.threads = run.threads;
  if (!texts.cache.empty()) {
    if (texts.cache != "cold" && texts.cache != "hot" && texts.cache != "both") bad("--cache", texts.cache, "cold, hot or both");
    run.cache = texts.cache == "cold" ? Cache::kCold : (texts.cache == "hot" ? Cache::kHot : Cache::kBoth);
  }
  if (!texts.arms.empty()) parse_arms(texts.arms, run);
}

void interpret_suite(const Texts& texts, Options& options) {
  for (const auto& [flag, text] : {std::pair{"--op", texts.op},
                                   {"--shape", texts.shape},
                                   {"--group", texts.group},
                                   {"--class", texts.variant},
                                   {"--cache", texts.cache},
                                   {"--arms", texts.arms}}) {
    if (!text.empty()) bad(flag, text, "no such flag beside --suite, whose rows say it themselves");
  }
  interpret_common(texts, options.run);
  options.suite.minutes = parse_number<double>("--budget", texts.budget, 0, 1e4, "minutes");
}

/// One word as a shell takes it again.
std::string quoted(std::string_view word) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=+,./:@%";
  if (!word.empty() && word.find_first_not_of(kPlain) == std::string_view::npos) return std::string(word);
  std::string out = "'";
  for (const char c : word) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

/// What a report says of how it came about. Where files went says nothing of the numbers, only of somebody's folders.
std::string recorded_command(int argc, const char* const* argv) {
  std::string out;
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    const std::string_view option = word.substr(0, word.find('='));
    if (std::find(kDestinations.begin(), kDestinations.end(), option) != kDestinations.end()) {
      if (option == word) ++i;  // its value is the next word
      continue;
    }
    if (!out.empty()) out += ' ';
    out += quoted(word);
  }
  return out;
}

bool fits(const Case& c, uint64_t l3_bytes) { return l3_bytes > 0 && moved_bytes(c) <= static_cast<double>(l3_bytes); }

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
  bool suite = false;
  std::string compare_effect = "8";
  declare(app, texts, options, list, suite);
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
    for (const char* flag : kDestinations) {
      const CLI::Option* option = command->get_option_no_throw(flag);
      if (option != nullptr && option->count() > 0 && option->as<std::string>().empty()) bad(flag, "", "a file to write");
    }
  }
  options.run.command_line = recorded_command(argc, argv);
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
    interpret_common(texts, options.run);
    return options;
  }
  if (list) {
    options.action = Action::kList;
    return options;
  }
  for (const auto& [flag, text] : {std::pair{"--only", options.suite.only}, {"--summary", options.suite.summary_path}}) {
    if (!suite && !text.empty()) bad(flag, text, "--suite beside it");
  }
  if (suite) {
    options.action = Action::kSuite;
    interpret_suite(texts, options);
    return options;
  }
  if (texts.shape.empty() && texts.op.empty()) throw UsageError("--op, --shape or --suite is needed (see --list and --help)");
  interpret(texts, options.run);
  return options;
}

std::vector<Case> cases_of(const RunOptions& options, uint64_t l3_bytes, std::vector<std::string>* notes) {
  std::vector<Case> out;
  for (Case c : options.cases) {
    const Cache usual = op_of(c).cold ? Cache::kCold : Cache::kHot;
    const Cache cache = options.cache == Cache::kUsual ? usual : options.cache;
    if (cache != Cache::kHot) out.push_back(c);
    if (cache == Cache::kCold) continue;
    c.hot = true;
    if (fits(c, l3_bytes) || options.cache == Cache::kUsual) {
      out.push_back(c);
      continue;
    }
    const std::string why = fmt::format("{} moves {:.1f} MB, the last-level cache holds {:.1f} MB", c.id(), moved_bytes(c) / 1e6,
                                        static_cast<double>(l3_bytes) / 1e6);
    if (options.cache == Cache::kHot) throw UsageError("--cache hot: " + why);
    notes->push_back("hot refused: " + why);
  }
  return out;
}

}  // namespace omnibench
