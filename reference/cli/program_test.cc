// SPDX-License-Identifier: Apache-2.0
// omni-generate from outside: text, limits, sampling, signals and pipes, on a golden checkpoint with a small tokenizer.
#include "reference/cli/program_for_test.h"

#include <fcntl.h>
#include <unistd.h>

#include <csignal>

#include "reference/cache/available.h"
#include "reference/io/checkpoint.h"
#include "reference/pack/packer.h"
#include "reference/text/utf8.h"

namespace ref::cli::testing {
namespace {

const ModelDirectory& model() {
  static const ModelDirectory directory;
  return directory;
}

std::vector<std::string> with_model(std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), model().path());
  return arguments;
}

Json generate(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  return json_of(program(with_model(std::move(arguments))));
}

std::vector<int32_t> golden_ids(const std::string& golden, const char* name) {
  const auto file = omni_files::SafetensorsFile::open(std::string(OMNI_TEST_DATA) + "/spark/" + golden);
  return file.at(name).as<int32_t>();
}

TEST(Generate, GreedyIdsOfTheGoldens) {
  const std::pair<const char*, const char*> cases[] = {{"a", "a/golden_fp32.safetensors"},
                                                       {"f", "f/golden_fp32.safetensors"},
                                                       {"a_int4/gptq", "a_int4/golden_fp32.safetensors"},
                                                       {"a_int4/compressed-tensors", "a_int4/golden_fp32.safetensors"}};
  for (const auto& [checkpoint, golden] : cases) {
    const std::string directory = std::string(OMNI_TEST_DATA) + "/spark/" + checkpoint;
    const Json json = json_of(program({directory, "--ids", joined(golden_ids(golden, "prompt_ids")), "-n", "24", "--json",
                                       "--weights", "keep", "--precision", "fp32", "--temperature", "0"}));
    EXPECT_EQ(json["ids"].get<std::vector<int32_t>>(), golden_ids(golden, "greedy_ids")) << checkpoint;
    EXPECT_EQ(json["stop_reason"], "max_tokens");
    EXPECT_TRUE(json["text"].is_null());
  }
}

TEST(Generate, IdsGoToStdoutWithoutATokenizer) {
  const std::string directory = std::string(OMNI_TEST_DATA) + "/spark/a";
  const Outcome outcome = run(program({directory, "--ids", "0,5,7", "-n", "4", "-q", "--temperature", "0"}));
  const Json json = json_of(program({directory, "--ids", "0,5,7", "-n", "4", "--json", "--temperature", "0"}));
  EXPECT_EQ(outcome.err, "");
  std::string expected;
  for (const int32_t id : json["ids"].get<std::vector<int32_t>>())
    expected.append(expected.empty() ? "" : " ").append(std::to_string(id));
  EXPECT_EQ(outcome.out, expected + "\n");
  expect_failure(program({directory, "text"}), 3, {"tokenizer.json"});
  expect_failure(program({directory, "--ids", "0", "--stop", "x"}), 3, {"--stop"});
}

TEST(Generate, StdoutIsTheText) {
  const Json json = generate({"The king", "-n", "60", "--temperature", "0"});
  const std::string text = json["text"];
  EXPECT_EQ(json["new_tokens"], 60);
  EXPECT_GE(text.size(), 30U);
  const Outcome outcome = run(program(with_model({"The king", "-n", "60", "--temperature", "0"})));
  EXPECT_EQ(outcome.out, text + (text.ends_with('\n') ? "" : "\n"));
  EXPECT_EQ(utf8_lossy(outcome.out), outcome.out);
  for (const char* word : {"w4a", "prefill", "decode", "tok/s", "max_tokens", "1e9"}) {
    EXPECT_NE(outcome.err.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(run(program(with_model({"The king", "-n", "5", "-q"}))).err, "");
}

TEST(Generate, PromptsComeFromArgumentFileAndStdin) {
  const Json direct = generate({"The king", "-n", "5", "--temperature", "0"});
  EXPECT_EQ(generate({"--prompt-file",
                      [] {
                        model().write("prompt.txt", "The king");
                        return (model() / "prompt.txt").string();
                      }(),
                      "-n", "5", "--temperature", "0"})["ids"],
            direct["ids"]);
  Command piped = program(with_model({"-", "-n", "5", "--temperature", "0", "--json"}));
  static const std::string file = (model() / "prompt.txt").string();
  piped.setup = [] { return dup2(open(file.c_str(), O_RDONLY), STDIN_FILENO) == STDIN_FILENO; };
  EXPECT_EQ(json_of(piped)["ids"], direct["ids"]);
  // One token is put before it, unless it is not wanted.
  EXPECT_EQ(generate({"The king", "-n", "1", "--no-bos"})["prompt_tokens"].get<int>() + 1, direct["prompt_tokens"].get<int>());
  EXPECT_EQ(generate({"", "-n", "1"})["prompt_tokens"], 1);
  expect_failure(program(with_model({"", "--no-bos"})), 4, {"empty", "--no-bos"});
  expect_failure(program(with_model({})), 2, {"no prompt"});
  expect_failure(program(with_model({"x", "--ids", "1"})), 2, {"more than one"});
  expect_failure(program(with_model({"--prompt-file", "/nonexistent"})), 4, {"--prompt-file /nonexistent"});
  expect_failure(program(with_model({"--prompt-file", model().path()})), 4, {"--prompt-file"});
}

// A context of 32: 31 tokens and 32 run, 33 are refused with both figures.
TEST(Generate, TheContextIsALimit) {
  const auto ids = [](size_t count) { return joined(std::vector<int32_t>(count, 20)); };
  const auto run_with = [&](size_t count) { return generate({"--ids", ids(count), "--ctx", "32", "--temperature", "0"}); };
  const Json below = run_with(31), full = run_with(32);
  EXPECT_EQ(below["new_tokens"], 2);
  EXPECT_EQ(full["new_tokens"], 1);
  EXPECT_EQ(full["stop_reason"], "context");
  expect_failure(program(with_model({"--ids", ids(33), "--ctx", "32"})), 4, {"33", "32"});
}

TEST(Generate, CachesThatMemoryDoesNotAllowAreRefused) {
  const ModelDirectory own;
  own.change_config("layer_types", std::vector<std::string>(4, "full_attention"));
  // 16 Mi positions of four layers, 520 bytes each, and a quarter of headroom.
  if (available_memory() > uint64_t{40} << 30) GTEST_SKIP() << "this machine has the memory";
  expect_failure(program({own.path(), "x", "--ctx", "16777216", "--kv", "fp32"}), 5,
                 {"16777216", "32.50 GiB", "40.62 GiB", "available"});
  expect_failure(program(with_model({"x", "--ctx", "99999999999999"})), 2, {"--ctx", "99999999999999"});
}

// Byte sequences that are no text become U+FFFD; nothing aborts.
TEST(Generate, PromptsOfInvalidUtf8) {
  for (const std::string bytes : {"\xE6\xAD", "\xFF", "\xC0\x80", "\xED\xA0\x80", ""}) {
    model().write("bytes", bytes);
    const Json json = generate({"--prompt-file", (model() / "bytes").string(), "-n", "3", "--temperature", "0"});
    EXPECT_GE(json["prompt_tokens"], bytes.empty() ? 1 : 2);
    EXPECT_EQ(generate({bytes, "-n", "3", "--temperature", "0"})["ids"], json["ids"]);
  }
  model().write("many", std::string(1000, '\x80'));
  EXPECT_GT(generate({"--prompt-file", (model() / "many").string(), "-n", "1"})["prompt_tokens"], 1000);
  model().write("most", std::string(1 << 20, '\x80'));
  expect_failure(program(with_model({"--prompt-file", (model() / "most").string(), "--ctx", "2048"})), 4, {"--ctx 2048", "tokens"});
}

TEST(Generate, AStopTextEndsIt) {
  const std::string text = generate({"The king", "-n", "60", "--temperature", "0"})["text"];
  // A stop text from the middle of what is said, over several tokens.
  size_t at = text.size() / 2;
  while ((static_cast<unsigned char>(text[at]) & 0xC0) == 0x80) ++at;
  size_t end = at + 4;
  while (end < text.size() && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) ++end;
  const std::string stop = text.substr(at, end - at), expected = text.substr(0, text.find(stop));
  const Json json = generate({"The king", "-n", "60", "--temperature", "0", "--stop", stop, "--stop", "never said"});
  EXPECT_EQ(json["stop_reason"], "stop");
  EXPECT_EQ(json["text"], expected);
  expect_failure(program(with_model({"x", "--stop", ""})), 2, {"stop"});
  expect_failure(program(with_model({"x", "--stop", "\xff"})), 2, {"stop", "UTF-8"});
}

TEST(Generate, EndTokensOfTheConfigs) {
  const ModelDirectory own;
  const std::string prompt = "The king and the queen of number 5";  // more tokens than the minimum below
  const Json first = json_of(program({own.path(), prompt, "-n", "8", "--temperature", "0", "--json"}));
  const auto ids = first["ids"].get<std::vector<int32_t>>();
  ASSERT_EQ(ids.size(), 8U);
  const auto ends_at = [&](int32_t end) { return static_cast<size_t>(std::find(ids.begin(), ids.end(), end) - ids.begin()); };
  own.write("generation_config.json", Json{{"eos_token_id", {510, ids[4]}}}.dump());
  const Json listed = json_of(program({own.path(), prompt, "-n", "8", "--json"}));
  EXPECT_EQ(listed["stop_reason"], "eos");
  EXPECT_EQ(listed["end_token"], ids[4]);
  EXPECT_EQ(listed["ids"].size(), ends_at(ids[4]));
  // So many tokens before it may end.
  const Json later = json_of(program({own.path(), prompt, "-n", "8", "--min-new-tokens", "6", "--json"}));
  EXPECT_GE(later["prompt_tokens"], 6);
  EXPECT_GE(later["ids"].size(), 6U);
  own.write("generation_config.json", R"({"eos_token_id": 512})");
  expect_failure(program({own.path(), "x"}), 3, {"512"});
}

TEST(Generate, TheModelsSamplingIsTheDefault) {
  const ModelDirectory own;
  EXPECT_TRUE(json_of(program({own.path(), "x", "-n", "1", "--json"}))["seed"].is_null());  // greedy
  own.write("generation_config.json", R"({"do_sample": true, "temperature": 0.7, "top_p": 0.9, "top_k": -1, "eos_token_id": 1})");
  const Json json = json_of(program({own.path(), "x", "-n", "1", "--json"}));
  EXPECT_EQ(json["sampling"]["temperature"], 0.7);
  EXPECT_EQ(json["sampling"]["top_p"], 0.9);
  EXPECT_TRUE(json["seed"].is_number());
  EXPECT_EQ(json_of(program({own.path(), "x", "-n", "1", "--json", "--top-p", "0.5"}))["sampling"]["top_p"], 0.5);
  EXPECT_TRUE(json_of(program({own.path(), "x", "-n", "1", "--json", "--temperature", "0"}))["seed"].is_null());
}

TEST(Generate, ASeedGivesItsTextAgain) {
  const auto ids = [](const char* seed, std::vector<std::string> more) {
    more.insert(more.begin(), {"The king", "-n", "40", "--temperature", "1.5", "--seed", seed});
    return generate(std::move(more))["ids"];
  };
  const Json one = ids("7", {});
  EXPECT_NE(ids("8", {}), one);
  EXPECT_EQ(ids("4294967303", {}), one);  // the low 32 bits
  for (const char* threads : {"1", "2", "3", "8"}) EXPECT_EQ(ids("7", {"--threads", threads}), one) << threads;
  for (const char* chunk : {"1", "3", "64"}) EXPECT_EQ(ids("7", {"--chunk", chunk}), one) << chunk;
  const Json again = generate({"The king", "-n", "40", "--temperature", "1.5"});
  EXPECT_EQ(ids(std::to_string(again["seed"].get<uint64_t>()).c_str(), {}), again["ids"]);
}

TEST(Generate, TemperaturesOfNothing) {
  const Json zero = generate({"The king", "-n", "10", "--temperature", "0"});
  EXPECT_EQ(generate({"The king", "-n", "10", "--temperature", "1e-30"})["ids"], zero["ids"]);
  EXPECT_EQ(generate({"The king", "-n", "10", "--temperature", "5", "--top-k", "1"})["ids"], zero["ids"]);
  for (const char* bad : {"-1", "nan", "inf", "1e999", "x", ""}) {
    expect_failure(program(with_model({"x", "--temperature", bad})), 2, {"--temperature", bad});
  }
}

TEST(Generate, OptionsNameTheirValue) {
  const std::pair<const char*, const char*> bad[] = {{"--top-k", "-1"},
                                                     {"--top-p", "0"},
                                                     {"--top-p", "1.5"},
                                                     {"--min-p", "2"},
                                                     {"--repetition-penalty", "0"},
                                                     {"--min-new-tokens", "-1"},
                                                     {"--seed", "-1"},
                                                     {"--seed", "18446744073709551616"},
                                                     {"--max-tokens", "1e3"},
                                                     {"--ctx", "0"},
                                                     {"--threads", "0"},
                                                     {"--threads", "4096"},
                                                     {"--kv", "fp16"},
                                                     {"--precision", "bf16"},
                                                     {"--weights", "w3"},
                                                     {"--group", "48"},
                                                     {"--head", "w3"},
                                                     {"--chunk", "0"},
                                                     {"--priority", "low"},
                                                     {"--weights-memory", "x"},
                                                     {"--quantiser", "x"},
                                                     {"--head-rows", "x"}};
  for (const auto& [flag, value] : bad) expect_failure(program(with_model({"x", flag, value})), 2, {flag, value});
  expect_failure(program(with_model({"--ids", "1,x"})), 2, {"--ids", "1,x"});
  expect_failure(program(with_model({"--ids", "1,512"})), 4, {"512"});
  expect_failure(program(with_model({"x", "--nonsense"})), 2, {"--nonsense"});
  expect_failure(program(with_model({"x", "y"})), 2, {"y"});
  expect_failure(program({}), 2, {"MODEL"});
}

// What omni-pack writes is what the program packs in memory.
TEST(Packed, GivesTheSameText) {
  const omni_files::TemporaryDirectory out;
  PackOptions options;
  options.weights = WeightType::kW4A16;
  const std::string packed = (out / "packed").string();
  pack_to_directory(Checkpoint::open(model().path()), packed, options, false, {}, nullptr);
  const Json expected = generate({"The king", "-n", "30", "--temperature", "0", "--weights", "w4a16"});
  for (const char* memory : {"mapped", "huge", "auto"}) {
    const Json json =
        json_of(program({packed, "The king", "-n", "30", "--temperature", "0", "--json", "--weights-memory", memory}));
    EXPECT_EQ(json["text"], expected["text"]) << memory;
    EXPECT_EQ(json["ids"], expected["ids"]) << memory;
    EXPECT_NE(json["model"]["weight_path"].get<std::string>().find("as packed"), std::string::npos);
  }
  expect_failure(program({packed, "x", "--weights", "w4a8"}), 2, {packed, "--weights"});
  fs::resize_file(out / "packed/weights.safetensors", 1000);
  expect_failure(program({packed, "x"}), 3, {"weights.safetensors"});
}

// Ctrl-C in the middle: the line is finished, the figures are told, the code says so.
TEST(Signals, InterruptStopsCleanly) {
  Command command = program(with_model({"--ids", "0,20", "-n", "1000000", "--ctx", "1000000", "--temperature", "0"}));
  command.setup = [] {
    if (fork() != 0) return true;
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    usleep(400'000);
    kill(getppid(), SIGINT);
    _exit(0);
  };
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_TRUE(outcome.out.ends_with('\n'));
  EXPECT_EQ(utf8_lossy(outcome.out), outcome.out);
  EXPECT_NE(outcome.err.find("interrupted"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("decode"), std::string::npos) << outcome.err;
}

TEST(Signals, NobodyReadsOn) {
  Command command = program(with_model({"The king", "-n", "1000", "-q", "--temperature", "0"}));
  command.setup = [] {
    int ends[2];
    return pipe(ends) == 0 && dup2(ends[1], STDOUT_FILENO) == STDOUT_FILENO && close(ends[0]) == 0 && close(ends[1]) == 0;
  };
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.signal;
  EXPECT_EQ(outcome.err, "");
}

TEST(Signals, AFullDiskIsToldOnce) {
  Command command = program(with_model({"The king", "-n", "1000", "-q"}));
  command.setup = [] { return dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO) == STDOUT_FILENO; };
  expect_failure(command, 8, {"stdout", "No space"});
}

TEST(Help, ListsCommandsAndCodes) {
  const Outcome outcome = run(program({"--help"}));
  EXPECT_EQ(outcome.exit_code, 0);
  for (const char* word : {"perplexity", "compare", "logits", "parity", "bench", "info", "130", "--repetition-penalty"}) {
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word;
  }
  for (const char* command : {"generate", "perplexity", "compare", "logits", "parity", "bench", "info"}) {
    EXPECT_EQ(run(program({command, "--help"})).exit_code, 0) << command;
    expect_failure(program({command}), 2, {"required"});
  }
}

}  // namespace
}  // namespace ref::cli::testing
