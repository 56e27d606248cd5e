// SPDX-License-Identifier: Apache-2.0
// The other commands of omni-generate: perplexity, compare, logits, parity, bench, info; and that no bit depends on how it is run.
#include <cmath>

#include "reference/cli/program_for_test.h"
#include "tests/support/safetensors_writer.h"

namespace ref::cli::testing {
namespace {

const ModelDirectory& model() {
  static const ModelDirectory directory;
  static const bool written = [] {
    std::string lines;
    for (int i = 0; i < 40; ++i)
      lines.append("The king and the queen of number ").append(std::to_string(i)).append(" went home.\n");
    directory.write("text.txt", lines);
    return true;
  }();
  static_cast<void>(written);
  return directory;
}

std::string text() { return (model() / "text.txt").string(); }
std::string golden(const std::string& name) { return std::string(OMNI_TEST_DATA) + "/spark/" + name; }

Command command(const std::string& name, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {name, model().path()});
  return program(std::move(arguments));
}

TEST(Perplexity, CountsItsWindows) {
  const Json json = json_of(command("perplexity", {text(), "--window", "64", "--json", "--weights", "keep"}));
  const auto tokens = json["text_tokens"].get<int64_t>();
  const int64_t windows = tokens / 64, rest = tokens % 64;
  EXPECT_EQ(json["tokens"], windows * 63 + (rest > 1 ? rest - 1 : 0));
  EXPECT_NEAR(json["perplexity"].get<double>(), std::exp(json["nll"].get<double>()), 1e-6 * json["perplexity"].get<double>());
  EXPECT_NE(run(command("perplexity", {text(), "--window", "64"})).out.find("perplexity"), std::string::npos);
  EXPECT_EQ(json_of(command("perplexity", {text(), "--tokens", "65", "--window", "64", "--json"}))["tokens"], 63);
}

TEST(Perplexity, OfLogitsThatTheProgramWrites) {
  // ids 5 9 20 30: -ln p of the last three, by hand from the logits.
  const omni_files::TemporaryDirectory out;
  const std::string file = (out / "logits.safetensors").string();
  ASSERT_EQ(run(command("logits", {"The king", "--no-bos", "--all", "-o", file, "-q"})).exit_code, 0);
  const auto written = omni_files::SafetensorsFile::open(file);
  const auto ids = written.at("ids").as<int32_t>();
  const auto logits = written.at("logits").as<float>();
  ASSERT_EQ(written.at("logits").shape, (std::vector<int64_t>{static_cast<int64_t>(ids.size()), 512}));
  double sum = 0;
  for (size_t i = 0; i + 1 < ids.size(); ++i) {
    double all = 0;
    for (size_t j = 0; j < 512; ++j) all += std::exp(static_cast<double>(logits[i * 512 + j]));
    sum += std::log(all) - static_cast<double>(logits[i * 512 + static_cast<size_t>(ids[i + 1])]);
  }
  model().write("short.txt", "The king");
  const Json json = json_of(command("perplexity", {(model() / "short.txt").string(), "--json"}));
  EXPECT_EQ(json["tokens"], ids.size() - 1);
  EXPECT_NEAR(json["nll"].get<double>(), sum / static_cast<double>(ids.size() - 1), 1e-9);
}

TEST(Perplexity, RefusesWhatItCannotScore) {
  expect_failure(command("perplexity", {"/nonexistent"}), 4, {"/nonexistent"});
  model().write("one.txt", "a");
  expect_failure(command("perplexity", {(model() / "one.txt").string()}), 4, {"one.txt", "1 tokens"});
  expect_failure(command("perplexity", {text(), "--window", "1"}), 2, {"--window", "1"});
}

TEST(Compare, AModelWithItself) {
  const Json json = json_of(command("compare", {model().path(), text(), "--a-weights", "keep", "--b-weights", "keep", "--json",
                                                "--window", "64", "--greedy-tokens", "8"}));
  EXPECT_EQ(json["kl"], 0);
  EXPECT_EQ(json["top1"], 1);
  EXPECT_EQ(json["top5"], 1);
  EXPECT_EQ(json["a"], json["b"]);
  EXPECT_EQ(json["greedy"]["agreed"], json["greedy"]["tokens"]);
}

TEST(Compare, SidesHaveTheirOwnOptions) {
  const Json json =
      json_of(command("compare", {model().path(), text(), "--a-weights", "keep", "--a-precision", "fp32", "--b-weights", "w4a16",
                                  "--b-group", "32", "--json", "--window", "64", "--prompts", "2"}));
  EXPECT_GT(json["kl"].get<double>(), 1e-4);
  EXPECT_LT(json["top1"].get<double>(), 1);
  EXPECT_NE(json["a"], json["b"]);
  EXPECT_EQ(json["greedy"]["prompts"], 2);
  EXPECT_NE(json["model_b"]["weight_path"].get<std::string>().find("tg4 g32"), std::string::npos);
  EXPECT_NE(run(command("compare", {model().path(), text(), "--window", "64"})).out.find("nats"), std::string::npos);
}

TEST(Logits, ShowsTheMostProbable) {
  const Json json = json_of(command("logits", {"The king", "--top", "3", "--json"}));
  ASSERT_EQ(json["top"].size(), 3U);
  EXPECT_GE(json["top"][0]["logit"], json["top"][1]["logit"]);
  const Json greedy = json_of(program({model().path(), "The king", "-n", "1", "--temperature", "0", "--json"}));
  EXPECT_EQ(json["top"][0]["id"], greedy["ids"][0]);
  expect_failure(command("logits", {"x", "-q", "-o", "/nonexistent/file"}), 8, {"--output /nonexistent/file"});
  expect_failure(command("logits", {"x", "-q", "-o", model().path()}), 8, {"--output"});
  expect_failure(command("logits", {"--ids", "512"}), 4, {"512"});
  expect_failure(command("logits", {}), 2, {"TEXT"});
}

// Forms of weights and caches; each on any thread count, chunk and tier gives the same bits.
TEST(Determinism, NoBitDependsOnHowItIsRun) {
  const omni_files::TemporaryDirectory out;
  const std::string file = (out / "logits.safetensors").string();
  const std::vector<std::vector<std::string>> forms = {{"--weights", "w4a16"},
                                                       {"--weights", "w4a8", "--kv", "int8"},
                                                       {"--weights", "w8a8"},
                                                       {"--weights", "keep"},
                                                       {"--weights", "w4a16", "--sym", "--group", "32", "--precision", "fp32"}};
  std::string prompt;
  for (int i = 0; i < 70; ++i) prompt.append(i == 0 ? "" : ",").append(std::to_string((i * 37) % 512));
  for (const std::vector<std::string>& form : forms) {
    const auto bytes = [&](std::vector<std::string> more, const std::string& tier) {
      std::vector<std::string> arguments = {"logits", golden("a"), "--ids", prompt, "--all", "-o", file, "-q"};
      arguments.insert(arguments.end(), form.begin(), form.end());
      arguments.insert(arguments.end(), more.begin(), more.end());
      Command one = program(arguments);
      if (!tier.empty()) one.environment["OMNI_MAX_ISA"] = tier;
      const Outcome outcome = run(one);
      EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
      return read_file(file);
    };
    const std::string expected = bytes({}, "");
    ASSERT_GT(expected.size(), 70U * 512 * 4);
    for (const char* threads : {"1", "3", "8"}) EXPECT_TRUE(bytes({"--threads", threads}, "") == expected) << form[1] << threads;
    for (const char* chunk : {"1", "7", "64"}) EXPECT_TRUE(bytes({"--chunk", chunk}, "") == expected) << form[1] << chunk;
    // The portable tier keeps these bits only where the compiler has FMA to call.
    for (const char* tier : {"avx2", "avxvnni", "avx512f", "avx512vnni", "avx512bf16"}) {
      EXPECT_TRUE(bytes({}, tier) == expected) << form[1] << " " << tier;
    }
  }
}

TEST(Parity, NamesTheFirstTensorThatDeparts) {
  const std::string file = golden("a/golden_fp32.safetensors");
  const Outcome same = run(program({"parity", golden("a"), file}));
  EXPECT_EQ(same.exit_code, 0) << same.err;
  EXPECT_NE(same.out.find("24 of 24 tokens equal"), std::string::npos);
  EXPECT_EQ(same.err, "");

  const Outcome departs = run(program({"parity", golden("a"), file, "--weights", "w4a16"}));
  EXPECT_EQ(departs.exit_code, 6);
  EXPECT_NE(departs.err.find("tensor \"layer.0.qkv\" departs: relative "), std::string::npos) << departs.err;
  const Json json = Json::parse(run(program({"parity", golden("a"), file, "--weights", "w4a16", "--json"})).out);
  EXPECT_EQ(json["first_departure"], "layer.0.qkv");

  // A wrong value of a single tensor is found by its name.
  const auto right = omni_files::SafetensorsFile::open(file);
  omni_files::SafetensorsWriter writer;
  for (const auto& [name, tensor] : right.tensors()) writer.add(name, tensor);
  std::vector<float> wrong = right.at("layer.2.gate").as<float>();
  wrong[5] += 1;
  writer.add("layer.2.gate", "F32", right.at("layer.2.gate").shape, wrong);
  const omni_files::TemporaryDirectory out;
  writer.write(out / "wrong.safetensors");
  const Outcome found = run(program({"parity", golden("a"), (out / "wrong.safetensors").string()}));
  EXPECT_EQ(found.exit_code, 6);
  EXPECT_NE(found.err.find("\"layer.2.gate\""), std::string::npos) << found.err;

  expect_failure(program({"parity", golden("a"), "/nonexistent"}), 4, {"/nonexistent"});
  expect_failure(program({"parity", golden("a"), golden("a/model.safetensors")}), 4, {"prompt_ids"});
  writer.add("layer.2.gate", "F32", {1, 3}, std::vector<float>(3));
  writer.write(out / "wrong.safetensors");
  expect_failure(program({"parity", golden("a"), (out / "wrong.safetensors").string()}), 4, {"wrong.safetensors", "layer.2.gate"});
}

TEST(Bench, KeepsPrefillAndDecodeApart) {
  const Json json =
      json_of(command("bench", {"--prefill", "40", "--decode", "10", "--depth", "30", "--repeats", "2", "--json", "-q"}));
  EXPECT_EQ(json["prefill"]["tokens"], 40);
  EXPECT_EQ(json["decode"]["tokens"], 10);
  EXPECT_EQ(json["prefill"]["all_seconds"].size(), 2U);
  EXPECT_EQ(json["read"]["all_seconds"].size(), 4U);
  EXPECT_GT(json["decode"]["share_of_read"], 0);
  EXPECT_GT(json["decode"]["bytes_per_token"], 0);
  EXPECT_GT(json["peak_resident_bytes"], 1'000'000);
  const Outcome only = run(command("bench", {"--prefill", "0", "--decode", "3", "--repeats", "1", "-q"}));
  EXPECT_EQ(only.out.find("prefill"), std::string::npos);
  EXPECT_NE(only.out.find("tok/s"), std::string::npos);
  expect_failure(command("bench", {"--depth", "100", "--ctx", "128"}), 4, {"612", "128"});
}

TEST(Info, TellsWeightsKernelsAndMemory) {
  const Json json = json_of(command("info", {"--json"}));
  EXPECT_GT(json["kernels"].size(), 3U);
  // Three windows of 8 against a full layer: the flat cache grows four times as fast.
  const Json last = json["cache"].back();
  EXPECT_LT(last["hybrid_bytes"].get<double>() * 3.9, last["flat_bytes"].get<double>());
  EXPECT_NE(run(command("info", {})).out.find("| 8192 |"), std::string::npos);
}

// The choices of other machines, which this one may not be able to run.
TEST(Profile, EmulatesAnotherMachine) {
  const omni_files::TemporaryDirectory out;
  const auto profile = [&](const Json& isa) {
    const Json machine = {{"vendor", "GenuineIntel"}, {"name", "mock"},       {"isa", isa},        {"isa_hardware", isa},
                          {"traits", Json::array()},  {"cores_online", 2},    {"cores_usable", 2}, {"l1d_bytes", 32768},
                          {"l2_bytes", 1048576},      {"l3_bytes", 33554432}, {"amx_reason", ""}};
    out.write("profile.json", Json{{"omni_profile", 1}, {"machine", machine}}.dump());
    return (out / "profile.json").string();
  };
  const Json haswell = {"avx2", "fma", "f16c", "bmi2"};
  const std::string lesser = profile(haswell);
  const Json info = json_of(command("info", {"--profile", lesser, "--json"}));
  EXPECT_NE(info["weight_path"].get<std::string>().find("w4a16"), std::string::npos) << info["weight_path"];
  EXPECT_NE(info["weight_path"].get<std::string>().find("no VNNI"), std::string::npos);
  EXPECT_EQ(info["kernels"].dump().find("avx512"), std::string::npos);
  const Outcome text = run(program({model().path(), "x", "-n", "1", "--profile", lesser}));
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.err.find("kernel "), std::string::npos);

  Json amx = haswell;
  for (const char* bit :
       {"avx512f", "avx512bw", "avx512dq", "avx512vl", "avx512vbmi", "avx512vnni", "avx512bf16", "amx_tile", "amx_int8"})
    amx.push_back(bit);
  const std::string greater = profile(amx);
  const Json sapphire = json_of(command("info", {"--profile", greater, "--priority", "fidelity", "--json"}));
  EXPECT_NE(sapphire["weight_path"].get<std::string>().find("w4a8"), std::string::npos);
  if (!__builtin_cpu_supports("avx512f") ||
      json_of(command("info", {"--json"}))["kernels"].dump().find("amx") == std::string::npos) {
    const Outcome refused = run(program({model().path(), "The king", "-n", "1", "--profile", greater}));
    EXPECT_EQ(refused.exit_code, 7) << refused.err;
    EXPECT_EQ(refused.out, "");
  }
  out.write("profile.json", "{}");
  expect_failure(command("info", {"--profile", (out / "profile.json").string()}), 4, {"profile.json"});
  expect_failure(command("info", {"--profile", "/nonexistent"}), 4, {"--profile /nonexistent"});
}

}  // namespace
}  // namespace ref::cli::testing
