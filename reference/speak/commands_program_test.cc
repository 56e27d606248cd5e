// SPDX-License-Identifier: Apache-2.0
// omni-speak's other commands from outside, and the golden requests end to end where they are.
#include "reference/speak/program_for_test.h"
#include "tools/common/safetensors.h"

namespace ref::speak::testing {
namespace {

const char* const kGolden = "golden/bf16w_fp32compute_xvec_stream.safetensors";

Json command(Arguments arguments, int exit_code = 0) {
  const Outcome outcome = run(program(std::move(arguments)));
  EXPECT_EQ(outcome.exit_code, exit_code) << outcome.err;
  Json json = Json::parse(outcome.out, nullptr, false);
  EXPECT_FALSE(json.is_discarded()) << outcome.out;
  return json;
}

TEST(Parity, TheGoldenOfTheSmallModel) {
  const Json json = command({"parity", base_model(), golden(kGolden), "--json"});
  EXPECT_TRUE(json["first_departure"].is_null());
  EXPECT_EQ(json["tensors"].size(), 15U);
  EXPECT_EQ(json["tensors"].back()["name"], "wav");
  const Outcome text = run(program({"parity", base_model(), golden(kGolden)}));
  EXPECT_NE(text.out.find("prompt_embeds"), std::string::npos);
}

TEST(Parity, NamesTheFirstThatDeparts) {
  const Outcome outcome = run(program({"parity", base_model(), golden(kGolden), "--tolerance", "1e-9"}));
  EXPECT_EQ(outcome.exit_code, 6);
  EXPECT_NE(outcome.err.find("prompt_embeds"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("departs"), std::string::npos);
  const Json json = command({"parity", base_model(), golden(kGolden), "--json", "--wave-tolerance", "1e-12"}, 6);
  EXPECT_EQ(json["first_departure"], "wav");
  expect_failure(program({"parity", base_model(), golden("golden/sampling.safetensors")}), 4, {"sampling", "prompt_embeds"});
  expect_failure(program({"parity", base_model(), "/nonexistent"}), 4, {"/nonexistent"});
}

TEST(Compare, AModelAgreesWithItself) {
  const Json json = command(
      {"compare", base_model(), base_model(), "--frames", "6", "--json", "--a-weights", "keep", "--b-weights", "keep", "-q"});
  ASSERT_EQ(json["codebooks"].size(), 16U);
  for (const Json& codebook : json["codebooks"]) {
    EXPECT_EQ(codebook["top1"], 1.0);
    EXPECT_EQ(codebook["kl"], 0.0);
  }
}

TEST(Compare, FourBitsAreFartherThanEight) {
  const auto kl = [](const char* form) {
    const Json json = command({"compare", base_model(), base_model(), "--frames", "12", "--json", "--a-weights", "keep",
                               "--b-weights", form, "--b-group", "32", "-q"});
    return json["others"]["kl"].get<double>();
  };
  EXPECT_GT(kl("w4a16"), kl("w8a8"));
  const Outcome text =
      run(program({"compare", base_model(), base_model(), "--frames", "2", "--a-weights", "keep", "--b-weights", "bf16", "-q"}));
  EXPECT_EQ(text.exit_code, 0) << text.err;
  EXPECT_NE(text.out.find("| 1..15 |"), std::string::npos);
}

TEST(Bench, TellsEveryFigure) {
  const Json json = command(
      {"bench", base_model(), "--weights", "keep", "--frames", "6", "--repeats", "2", "--codec-frames", "4", "--json", "-q"});
  EXPECT_GT(json["real_time_factor"], 0);
  EXPECT_GT(json["first_audio_after_prompt_seconds"], 0);
  EXPECT_EQ(json["all_real_time_factors"].size(), 2U);
  for (const char* chunk : {"1", "2", "4"}) EXPECT_GT(json["codec_alone_ms_per_frame"][chunk], 0);
  for (const char* stage : {"talker", "predictor", "sampling", "decoder"}) {
    EXPECT_GT(json["median_run"]["stages"][stage]["ms_per_frame"], 0) << stage;
  }
  EXPECT_GT(json["peak_resident_bytes"], 1000000);
  const Outcome text = run(program({"bench", base_model(), "--weights", "keep", "--frames", "2", "--repeats", "1", "--pipeline",
                                    "alternate", "--chunk-frames", "1", "-q"}));
  EXPECT_NE(text.out.find("real-time factor"), std::string::npos) << text.err;
}

TEST(Info, TellsWhatTheModelIs) {
  const Outcome outcome = run(program({"info", base_model(), "--weights", "keep"}));
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  for (const char* word : {"0.6B Base", "talker", "languages  auto", "none by name", "kernel"}) {
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(command({"info", base_model(), "--weights", "keep", "--json"})["takes_instruct"], false);
}

// The golden requests through the whole program, free and greedy: its samples beside those of the reference implementation.
struct Request {
  const char *model, *name;
};
class Goldens : public ::testing::TestWithParam<Request> {};
INSTANTIATE_TEST_SUITE_P(All, Goldens,
                         ::testing::Values(Request{"base-tiny", "base_xvec_stream"}, Request{"base-tiny", "base_xvec_nonstream"},
                                           Request{"base-tiny", "base_xvec_auto"}, Request{"base-tiny", "base_xvec_short"},
                                           Request{"base-tiny", "base_icl_stream"}, Request{"base-tiny", "base_icl_nonstream"},
                                           Request{"base-tiny", "base_icl_short"},
                                           Request{"base-tiny-bf16", "bf16w_fp32compute_xvec_stream"},
                                           Request{"custom-tiny", "custom_nonstream"}, Request{"custom-tiny", "custom_stream"},
                                           Request{"custom-tiny", "custom_instruct"}, Request{"custom-tiny", "custom_dialect_auto"},
                                           Request{"custom-tiny", "custom_auto"}, Request{"design-tiny", "design_instruct"},
                                           Request{"design-tiny", "design_noinstruct_auto"}),
                         [](const auto& info) { return info.param.name; });

Json case_of(const std::string& name) {
  std::ifstream stream(golden("golden/cases.json"));
  for (const Json& record : Json::parse(stream)) {
    if (record["case"] == name) return record;
  }
  return {};
}

Arguments arguments_of(const Json& record) {
  Arguments arguments = {record["text"], "--piece-letters", "0",    "--greedy", "--weights", "keep", "--precision", "fp32", "--kv",
                         "fp32",         "--sample-format", "float"};
  const auto add = [&](const char* flag, const char* key) {
    if (record.contains(key) && record[key].is_string() && !record[key].get<std::string>().empty()) {
      arguments.insert(arguments.end(), {flag, record[key]});
    }
  };
  add("--language", "language");
  add("--speaker", "speaker");
  add("--instruct", "instruct");
  const bool base = record["kind"] == "base";
  if (base)
    arguments.insert(arguments.end(),
                     {"--reference", golden("golden/ref_24k.wav").empty() ? golden("ref_24k.wav") : golden("golden/ref_24k.wav")});
  if (base && !record.value("x_vector_only_mode", false)) add("--reference-text", "ref_text");
  const bool whole = record.value("non_streaming_mode", false);
  arguments.insert(arguments.end(), {"--text-feed", whole ? "whole" : "stream"});
  arguments.insert(arguments.end(), {"--max-frames", std::to_string(record["max_new_tokens"].get<int64_t>() - 1)});
  return arguments;
}

TEST_P(Goldens, SamplesOfTheReference) {
  const std::string model = golden(GetParam().model), file = golden(std::string("golden/") + GetParam().name + ".safetensors");
  if (model.empty() || file.empty()) GTEST_SKIP() << "the golden is not here; OMNI_GOLDENS names the full set";
  const Json record = case_of(GetParam().name);
  Arguments arguments = arguments_of(record);
  if (record["kind"] == "base" && golden("golden/ref_24k.wav").empty() && golden("ref_24k.wav").empty()) {
    GTEST_SKIP() << "the reference recording is not here; OMNI_GOLDENS names the full set";
  }
  arguments.insert(arguments.begin(), model);
  arguments.insert(arguments.end(), {"--stream", "--stream-format", "raw", "-q"});
  const Outcome outcome = run(program(arguments));
  const bool ended = record["frames"].get<int64_t>() + 1 < record["max_new_tokens"].get<int64_t>();
  ASSERT_EQ(outcome.exit_code, ended ? 0 : 9) << outcome.err;
  const std::string& bytes = outcome.out;
  std::vector<float> samples(bytes.size() / sizeof(float));
  std::memcpy(samples.data(), bytes.data(), samples.size() * sizeof(float));
  ASSERT_EQ(samples.size(), record["frames"].get<size_t>() * 1920U);
  // The reference cuts a clone's front by a share in double and may keep a sample more of it.
  const std::vector<float> expected = omni_files::SafetensorsFile::open(file).at("wav").as<float>();
  ASSERT_GE(expected.size(), samples.size());
  ASSERT_LE(expected.size(), samples.size() + 1);
  const size_t shift = expected.size() - samples.size();
  double largest = 0;
  for (size_t i = 0; i < samples.size(); ++i)
    largest = std::max(largest, std::abs(static_cast<double>(samples[i] - expected[i + shift])));
  EXPECT_LE(largest, 1e-3);
}

TEST(Lists, SpeakersOfACustomVoice) {
  const std::string model = golden("custom-tiny");
  if (model.empty()) GTEST_SKIP() << "the golden is not here; OMNI_GOLDENS names the full set";
  const Outcome outcome = run(program({model, "--list-speakers"}));
  EXPECT_NE(outcome.out.find("dylan (beijing_dialect)\n"), std::string::npos) << outcome.out;
  EXPECT_NE(outcome.out.find("vivian\n"), std::string::npos);
  expect_failure(program({model, "hello", "-o", "/nonexistent/x.wav"}), 2, {"--speaker", "vivian"});
  expect_failure(program({model, "hello", "-o", "/nonexistent/x.wav", "--speaker", "nobody"}), 2, {"nobody", "vivian"});
  expect_failure(program({model, "hello", "-o", "/nonexistent/x.wav", "--speaker", "vivian", "--reference", "x.wav"}), 2,
                 {"x.wav", "CustomVoice"});
}

}  // namespace
}  // namespace ref::speak::testing
