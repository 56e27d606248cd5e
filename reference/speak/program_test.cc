// SPDX-License-Identifier: Apache-2.0
// omni-speak from outside: text in, sound out, limits, seeds, streams, signals and pipes.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <csignal>

#include "reference/speak/program_for_test.h"

namespace ref::speak::testing {
namespace {

const char* const kSentence = "hello world, this is a test of the speech system.";

TEST_F(Program, AWavFileOfWhatWasSaid) {
  const Json json = json_of({kSentence, "--max-frames", "12", "--seed", "3", "--language", "english"}, 9);
  const Wav wav(read_file(path("json.wav")));
  EXPECT_EQ(json["samples"], wav.samples.size());
  EXPECT_EQ(json["samples"], 1920 * json["frames"].get<int64_t>());
  EXPECT_EQ(field(wav.bytes, 4, 4), wav.bytes.size() - 8);
  EXPECT_EQ(field(wav.bytes, 40, 4), 2 * wav.samples.size());
  EXPECT_EQ(field(wav.bytes, 24, 4), 24000U);
  EXPECT_EQ(json["pieces"].size(), 1U);
  EXPECT_EQ(json["pieces"][0]["text"], kSentence);
  EXPECT_GT(*std::max_element(wav.samples.begin(), wav.samples.end()), 0.001F);
}

// AC-061: a run that its limit ended is told as such, on stderr, in JSON and by the code; the sound is there.
TEST_F(Program, ALimitIsNoSuccess) {
  const Json json = json_of({kSentence, "--max-frames", "5", "--greedy"}, 9);
  EXPECT_EQ(json["stop_reason"], "max_frames");
  EXPECT_EQ(json["complete"], false);
  EXPECT_EQ(json["frames"], 5);
  EXPECT_EQ(Wav(read_file(path("json.wav"))).samples.size(), 5U * 1920U);
  const Outcome outcome = run(speak({kSentence, "--max-frames", "5", "--greedy", "-q", "-o", path("x.wav")}));
  EXPECT_EQ(outcome.exit_code, 9);
  EXPECT_EQ(outcome.complaints().size(), 1U) << outcome.err;
  for (const char* word : {"max_frames", "5 frames", "0.40 s"}) EXPECT_NE(outcome.err.find(word), std::string::npos) << outcome.err;
  const Json seconds = json_of({kSentence, "--max-seconds", "0.4", "--greedy"}, 9);
  EXPECT_EQ(seconds["frames"], 5);
}

// AC-062, 064: texts of a syllable are bounded by their length, unless the caller says otherwise.
TEST_F(Program, ShortTextsHaveALimitOfTheirOwn) {
  for (const char* text : {"1次", "2次", "1", "1。", "嗯？"}) {
    for (const char* seed : {"1", "20"}) {
      const fs::path file = path("short.wav");
      const Outcome outcome = run(speak({text, "--seed", seed, "--json", "-q", "-o", file.string()}));
      EXPECT_TRUE(outcome.exit_code == 0 || outcome.exit_code == 9) << outcome.err;
      const Json json = Json::parse(outcome.out);
      EXPECT_LE(json["frames"], 58);
      EXPECT_EQ(json["pieces"][0]["stop_reason"] == "end_of_speech", outcome.exit_code == 0);
    }
  }
  EXPECT_EQ(json_of({"1", "--max-frames", "70", "--greedy"}, 9)["frames"], 70);  // beyond the 50 of its text
}

// A directory as published, packed at every start, and what omni-pack makes of it: the same defaults, the same samples.
TEST_F(Program, ASourceSpeaksAsItsPackedForm) {
  for (const Arguments& form :
       std::vector<Arguments>{{}, {"--weights", "w4a16", "--group", "32"}, {"--codec", "bf16", "--head", "w4"}}) {
    Arguments pack = {OMNI_PACK, base_model(), path("packed"), "--quiet", "--force"};
    pack.insert(pack.end(), form.begin(), form.end());
    const Outcome packed = run({pack, {}, nullptr});
    ASSERT_EQ(packed.exit_code, 0) << packed.err;
    const Arguments say = {kSentence, "--max-frames", "4", "--seed", "5", "--stream", "--stream-format", "raw", "-q"};
    Arguments source = {base_model()}, target = {path("packed")};
    source.insert(source.end(), form.begin(), form.end());
    source.insert(source.end(), say.begin(), say.end());
    target.insert(target.end(), say.begin(), say.end());
    const Outcome as_source = run(program(source)), as_packed = run(program(target));
    EXPECT_EQ(as_source.exit_code, 9) << as_source.err;
    EXPECT_EQ(as_packed.exit_code, 9) << as_packed.err;
    EXPECT_EQ(as_source.out.size(), 4U * 1920U * 2U);
    EXPECT_EQ(as_source.out, as_packed.out) << fmt::format("{}", fmt::join(form, " "));
  }
}

// AC-062: one seed, the same bytes, as a flag and from a file.
TEST_F(Program, ASeedGivesItsBytesAgain) {
  const Arguments base = {kSentence, "--max-frames", "8"};
  const auto with = [&](Arguments more) {
    more.insert(more.begin(), base.begin(), base.end());
    return wav_of(more, 9);
  };
  const std::string first = with({"--seed", "7"});
  EXPECT_EQ(with({"--seed", "7"}), first);
  EXPECT_NE(with({"--seed", "8"}), first);
  directory_.write("speak.toml", "seed = 7\nmax-frames = 8\n");
  EXPECT_EQ(wav_of({kSentence, "--config", path("speak.toml")}, 9), first);
  EXPECT_NE(wav_of({kSentence, "--config", path("speak.toml"), "--seed", "8"}, 9), first);
  directory_.write("bad.toml", "sead = 7\n");
  expect_failure(speak({kSentence, "-o", path("x.wav"), "--config", path("bad.toml")}), 2, {"sead"});
  directory_.write("nested.toml", "[sampling]\nseed = 7\n");
  expect_failure(speak({kSentence, "-o", path("x.wav"), "--config", path("nested.toml")}), 2, {"sampling"});
  expect_failure(speak({kSentence, "-o", path("x.wav"), "--config", path("absent.toml")}), 2, {"absent.toml"});
  // A random one is told, and gives the same.
  const Json json = json_of({kSentence, "--max-frames", "8"}, 9);
  const std::string told = read_file(path("json.wav"));
  EXPECT_EQ(with({"--seed", std::to_string(json["seed"].get<uint64_t>())}), told);
}

TEST_F(Program, NothingButTheSeedChangesBytes) {
  const Arguments base = {kSentence, "--max-frames", "11", "--seed", "5"};
  const auto with = [&](Arguments more) {
    more.insert(more.begin(), base.begin(), base.end());
    return wav_of(more, 9);
  };
  const std::string first = with({});
  for (const char* chunks : {"1", "7", "25", "3,1"}) EXPECT_EQ(with({"--chunk-frames", chunks}), first) << chunks;
  for (const char* threads : {"1", "2", "3"}) EXPECT_EQ(with({"--threads", threads}), first) << threads;
  EXPECT_EQ(with({"--pipeline", "alternate"}), first);
  for (const auto& [threads, name] : {std::pair{"2", "alternate"}, std::pair{"3", "overlap"}}) {
    EXPECT_EQ(json_of({"hello", "--max-frames", "2", "--greedy", "--threads", threads}, 9)["pipeline"], name);
  }
  EXPECT_EQ(with({"--pipeline", "overlap", "--queue-frames", "1"}), first);
  EXPECT_EQ(with({"--chunk", "3"}), first);
}

// AC-068, 070: what is streamed are the samples of the file.
TEST_F(Program, AStreamIsTheFile) {
  const Arguments base = {kSentence, "--max-frames", "9", "--seed", "5", "-q"};
  const Wav file(wav_of(base, 9));
  const auto stream = [&](Arguments more) {
    more.insert(more.begin(), base.begin(), base.end());
    const Outcome outcome = run(speak(more));
    EXPECT_EQ(outcome.exit_code, 9) << outcome.err;
    return outcome.out;
  };
  const std::string raw = stream({"--stream", "--stream-format", "raw"});
  EXPECT_EQ(raw, file.pcm());
  EXPECT_EQ(raw.size(), 9U * 1920U * 2U);
  const Wav piped(stream({"--stream"}));
  EXPECT_EQ(piped.pcm(), raw);
  EXPECT_EQ(field(piped.bytes, 24, 4), 24000U);
  EXPECT_EQ(stream({"-o", "-", "--stream-format", "raw", "--chunk-frames", "1"}), raw);
  EXPECT_EQ(stream({"--stream", "--stream-format", "raw", "--sample-format", "float"}).size(), 2 * raw.size());
}

TEST_F(Program, FormatsOfFiles) {
  for (const char* name : {"a.flac", "a.WAV"}) {
    for (const char* format : {"int16", "int24", "float"}) {
      const bool none = std::string(name) == "a.flac" && std::string(format) == "float";
      const Outcome outcome = run(speak({"hello", "--max-frames", "2", "-q", "-o", path(name), "--sample-format", format}));
      EXPECT_EQ(outcome.exit_code, none ? 2 : 9) << name << format << outcome.err;
    }
    EXPECT_GT(fs::file_size(path(name)), 1000U);
  }
  expect_failure(speak({"hello", "-o", path("a.mp3")}), 2, {"a.mp3", ".flac"});
  expect_failure(speak({"hello", "-o", path("none/a.wav")}), 8, {"none/a.wav"});
  expect_failure(speak({"hello"}), 2, {"-o FILE"});
  expect_failure(speak({"hello", "-o", path("a.wav"), "--stream"}), 2, {"--stream"});
}

TEST_F(Program, TextsComeFromArgumentFileAndStdin) {
  const Arguments more = {"--max-frames", "4", "--seed", "1"};
  const auto with = [&](Arguments text) {
    text.insert(text.end(), more.begin(), more.end());
    return wav_of(text, 9);
  };
  const std::string direct = with({kSentence});
  directory_.write("text.txt", std::string(kSentence) + "\n");
  EXPECT_EQ(with({"--file", path("text.txt")}), direct);
  static std::string file;
  file = path("text.txt");
  for (const bool dash : {false, true}) {
    Arguments arguments = {"-o", path("stdin.wav"), "-q"};
    if (dash) arguments.insert(arguments.begin(), "-");
    arguments.insert(arguments.end(), more.begin(), more.end());
    Command command = speak(arguments);
    command.setup = [] { return dup2(open(file.c_str(), O_RDONLY), STDIN_FILENO) == STDIN_FILENO; };
    EXPECT_EQ(run(command).exit_code, 9);
    EXPECT_EQ(read_file(path("stdin.wav")), direct);
  }
  expect_failure(speak({kSentence, "--file", path("text.txt"), "-o", path("x.wav")}), 2, {"TEXT", "--file"});
  expect_failure(speak({"--file", path("absent"), "-o", path("x.wav")}), 4, {"absent"});
}

// AC-063
TEST_F(Program, TextsWithNothingToSay) {
  for (const char* text : {"", " ", "\n", "。", "\xE2\x80\x8B", "\xF0\x9F\x98\x80"}) {
    expect_failure(speak({text, "-o", path("x.wav")}), 4, {"nothing to speak"});
    EXPECT_FALSE(fs::exists(path("x.wav")));
  }
  EXPECT_GT(json_of({"ok \xF0\x9F\x98\x80", "--max-frames", "6", "--greedy"}, 9)["samples"], 0);
}

// AC-065: each piece of a long text stays in its own limit, and all are there in their order.
TEST_F(Program, LongTextsAreSpokenInPieces) {
  std::string text;
  for (int i = 0; i < 6; ++i) text += "This is sentence number " + std::to_string(i) + " of the long text. ";
  const Json json = json_of({text, "--piece-letters", "60", "--max-frames", "4", "--seed", "2"}, 9);
  EXPECT_GE(json["pieces"].size(), 5U);
  int64_t frames = 0;
  for (const Json& piece : json["pieces"]) {
    EXPECT_LE(piece["frames"], 4);
    EXPECT_EQ(piece["max_frames"], 4);
    frames += piece["frames"].get<int64_t>();
  }
  EXPECT_EQ(json["frames"], frames);
  EXPECT_EQ(Wav(read_file(path("json.wav"))).samples.size(), static_cast<size_t>(frames) * 1920U);
  const Json some = json_of({text, "--piece-letters", "60", "--max-frames", "4", "--max-seconds", "0.8", "--seed", "2"}, 9);
  EXPECT_EQ(some["frames"], 10);
  EXPECT_TRUE(some["pieces"].back()["stop_reason"].is_null());
}

TEST_F(Program, LanguagesAndSpeakers) {
  const Outcome languages = run(program({base_model(), "--list-languages"}));
  EXPECT_EQ(languages.exit_code, 0);
  EXPECT_TRUE(languages.out.starts_with("auto\n"));
  EXPECT_NE(languages.out.find("english\n"), std::string::npos);
  EXPECT_EQ(run(program({base_model(), "--list-speakers"})).out, "");
  expect_failure(speak({"x", "-o", path("x.wav"), "--language", "klingon"}), 2, {"klingon", "english", "auto"});
  expect_failure(speak({"x", "-o", path("x.wav"), "--speaker", "vivian"}), 2, {"vivian", "no speakers"});
  EXPECT_EQ(json_of({"hello", "--max-frames", "2", "--language", "English"}, 9)["language"], "English");
}

TEST_F(Program, OptionsThatAModelIgnoresAreTold) {
  const Outcome outcome = run(speak({"hello", "--max-frames", "2", "--instruct", "calmly", "-o", path("x.wav")}));
  EXPECT_NE(outcome.err.find("--instruct is ignored"), std::string::npos) << outcome.err;
  EXPECT_NE(outcome.err.find("no --reference"), std::string::npos) << outcome.err;
}

TEST_F(Program, OptionsNameTheirValue) {
  const std::pair<const char*, const char*> bad[] = {{"--max-frames", "0"},
                                                     {"--max-frames", "1e3"},
                                                     {"--max-seconds", "0"},
                                                     {"--max-seconds", "inf"},
                                                     {"--piece-letters", "-1"},
                                                     {"--chunk-frames", "2,x"},
                                                     {"--queue-frames", "0"},
                                                     {"--pipeline", "x"},
                                                     {"--text-feed", "x"},
                                                     {"--stream-format", "mp3"},
                                                     {"--sample-format", "int8"},
                                                     {"--temperature", "-1"},
                                                     {"--top-k", "-1"},
                                                     {"--top-p", "0"},
                                                     {"--repetition-penalty", "0"},
                                                     {"--subtalker-temperature", "nan"},
                                                     {"--subtalker-top-k", "x"},
                                                     {"--subtalker-top-p", "1.5"},
                                                     {"--seed", "-1"},
                                                     {"--weights", "w3"},
                                                     {"--predictor", "w3"},
                                                     {"--predictor-head", "w3"},
                                                     {"--codec", "fp16"},
                                                     {"--kv", "fp16"},
                                                     {"--threads", "0"}};
  for (const auto& [flag, value] : bad) expect_failure(program({base_model(), "x", flag, value}), 2, {flag, value});
  expect_failure(program({base_model(), "x", "--nonsense"}), 2, {"--nonsense"});
  expect_failure(program({base_model(), "x", "y", "z"}), 2, {"z"});
  expect_failure(program({}), 2, {"MODEL"});
  expect_failure(program({"/nonexistent", "x", "-o", path("x.wav")}), 3, {"/nonexistent"});
  expect_failure(program({std::string(OMNI_TEST_DATA) + "/spark/a", "x", "-o", path("x.wav")}), 3, {"model_type", "spark2_5"});
}

TEST_F(Program, AModelWithoutASpeechTokenizer) {
  fs::copy(base_model(), path("model"), fs::copy_options::recursive);
  fs::remove_all(path("model/speech_tokenizer"));
  expect_failure(program({path("model"), "x", "-o", path("x.wav")}), 3, {"speech_tokenizer"});
  EXPECT_FALSE(fs::exists(path("x.wav")));
}

TEST_F(Program, FormsOfTheWeights) {
  const Outcome outcome =
      run(program({base_model(), "hello",       "-o",       path("x.wav"),      "--max-frames", "3",      "--json", "--weights",
                   "w8a8",       "--predictor", "w4a8",     "--predictor-head", "bf16",         "--head", "w8",     "--group",
                   "32",         "--codec",     "bf16",     "--quantiser",      "nearest",      "--kv",   "fp32",   "--sym",
                   "--seed",     "1",           "--verbose"}));
  EXPECT_EQ(outcome.exit_code, 9) << outcome.err;
  const std::string form = Json::parse(outcome.out)["model"]["weight_path"];
  for (const char* word : {"w8s", "w4s", "w16", "codec"}) EXPECT_NE(form.find(word), std::string::npos) << form;
  EXPECT_NE(outcome.err.find("kernel"), std::string::npos);
}

TEST_F(Program, StatisticsAreToldAndDrawn) {
  const Outcome outcome = run(speak({"hello", "--max-frames", "4", "-o", path("x.wav"), "--stats", "--stats-plot", path("x.svg")}));
  for (const char* word : {"| talker |", "sub-step 15", "real time", "first audio", "seed"}) {
    EXPECT_NE(outcome.err.find(word), std::string::npos) << word;
  }
  if (outcome.exit_code == 7) GTEST_SKIP() << "there is no gnuplot";
  EXPECT_EQ(outcome.exit_code, 9) << outcome.err;
  EXPECT_NE(read_file(path("x.svg")).find("sub-step 15"), std::string::npos);
  // Sound on stdout: the object goes to stderr.
  const Outcome stream = run(speak({"hello", "--max-frames", "2", "--stream", "--json", "-q", "--greedy"}));
  EXPECT_EQ(Json::parse(stream.err.substr(0, stream.err.rfind("omni-speak:")))["frames"], 2);
}

TEST_F(Program, InterruptDropsTheFile) {
  Command command = speak({kSentence, "--max-frames", "1000000", "-o", path("x.wav"), "--greedy", "-q"});
  command.setup = [] {
    if (fork() != 0) return true;
    close(STDOUT_FILENO);
    close(STDERR_FILENO);
    usleep(1'500'000);
    kill(getppid(), SIGINT);
    _exit(0);
  };
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.exit_code, 130) << outcome.err;
  EXPECT_NE(outcome.err.find("interrupted"), std::string::npos);
  EXPECT_TRUE(fs::is_empty(directory_.path()));
}

// A reader that never reads does not keep Ctrl-C from being heard.
TEST_F(Program, InterruptBesideAPipeThatIsFull) {
  Command command = speak({kSentence, "--max-frames", "1000000", "--stream", "--greedy", "-q"});
  command.setup = [] {
    int ends[2];
    if (pipe(ends) != 0 || dup2(ends[1], STDOUT_FILENO) != STDOUT_FILENO || close(ends[1]) != 0) return false;
    if (fork() != 0) return true;  // the parent keeps the reading end, too
    close(STDERR_FILENO);
    usleep(2'000'000);
    kill(getppid(), SIGTERM);
    _exit(0);
  };
  EXPECT_EQ(run(command).exit_code, 143);
}

TEST_F(Program, NobodyReadsOn) {
  Command command = speak({kSentence, "--max-frames", "1000000", "--stream", "-q", "--greedy"});
  command.setup = [] {
    int ends[2];
    return pipe(ends) == 0 && dup2(ends[1], STDOUT_FILENO) == STDOUT_FILENO && close(ends[0]) == 0 && close(ends[1]) == 0;
  };
  const Outcome outcome = run(command);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.signal;
  EXPECT_EQ(outcome.err, "");
}

TEST_F(Program, AFullDiskIsToldOnce) {
  Command command = speak({kSentence, "--max-frames", "1000", "--stream", "-q", "--greedy"});
  command.setup = [] { return dup2(open("/dev/full", O_WRONLY), STDOUT_FILENO) == STDOUT_FILENO; };
  expect_failure(command, 8, {"No space"});
}

TEST(Help, ListsCommandsAndCodes) {
  const Outcome outcome = run(program({"--help"}));
  EXPECT_EQ(outcome.exit_code, 0);
  for (const char* word : {"parity", "compare", "bench", "info", "130", "9 a limit", "--subtalker-top-k", "--save-voice"}) {
    EXPECT_NE(outcome.out.find(word), std::string::npos) << word;
  }
  for (const char* command : {"speak", "parity", "compare", "bench", "info"}) {
    EXPECT_EQ(run(program({command, "--help"})).exit_code, 0) << command;
    expect_failure(program({command}), 2, {"required"});
  }
}

}  // namespace
}  // namespace ref::speak::testing
