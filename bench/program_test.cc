// SPDX-License-Identifier: Apache-2.0
// The program itself: exit statuses, what it prints where, and the files it writes. Nothing here depends on how fast anything is.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <thread>

extern char** environ;

namespace {

using nlohmann::json;
namespace fs = std::filesystem;

struct Ran {
  int status = -1;
  std::string out, err;
};

class Program : public testing::Test {
 protected:
  void SetUp() override {
    directory_ = fs::temp_directory_path() / ("omni_bench_program_" + std::to_string(getpid()));
    fs::create_directory(directory_);
  }
  void TearDown() override { fs::remove_all(directory_); }

  [[nodiscard]] std::string path(const char* name) const { return (directory_ / name).string(); }

  Ran run(const std::string& arguments) {
    const std::string command = std::string(OMNI_BENCH_PROGRAM) + " " + arguments + " 2>" + path("stderr");
    FILE* pipe = popen(command.c_str(), "r");
    Ran ran;
    std::array<char, 4096> buffer{};
    for (size_t n = 0; (n = fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) ran.out.append(buffer.data(), n);
    const int status = pclose(pipe);
    ran.status = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    std::ifstream err(path("stderr"));
    ran.err.assign(std::istreambuf_iterator<char>(err), {});
    return ran;
  }

  json report(const char* name) {
    std::ifstream file(path(name));
    return json::parse(file);
  }

 private:
  fs::path directory_;
};

TEST_F(Program, BadInputIsOneLineAndStatusTwo) {
  for (const char* arguments : {"",
                                "--shape nothing",
                                "--shape 64x64 --m 9999",
                                "--shape 64x64 --isa best",
                                "--shape 64x64 --arms nobody",
                                "--frobnicate",
                                "--shape 64x64 --json /nonexistent/report.json",
                                "--shape 64x64 --html /",
                                "--shape 64x64 --json \"\"",
                                "--shape 64x64 --html \"\"",
                                "verify --json \"\" /",
                                "--shape 64x64 --m 1,1",
                                "--shape all,o",
                                "--shape 64x64 --op gemv,gemv",
                                "compare /nonexistent/a /nonexistent/b",
                                "--shape 64x64 --op pack --arms onednn",
                                "--suite --only nothing",
                                "--suite --arms omni",
                                "--op rms",
                                "compare onlyone"}) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.status, 2) << arguments;
    EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << arguments << ": " << ran.err;
    EXPECT_TRUE(ran.out.empty()) << arguments;
  }
}

TEST_F(Program, OutputThatCannotBeWrittenIsAnError) {
  for (const char* arguments : {"--list > /dev/full", "--help > /dev/full", "--list >&-"}) {
    const Ran ran = run(arguments);
    EXPECT_EQ(ran.status, 1) << arguments;
    EXPECT_EQ(ran.err, "omni-bench: stdout: cannot write\n") << arguments;
  }
}

TEST_F(Program, ComparingNamesTheDamagedReport) {
  std::ofstream(path("cut.json")) << R"({"schema": "omni-bench", "schema_version": 1})";
  const Ran ran = run("compare " + path("cut.json") + " " + path("cut.json"));
  EXPECT_EQ(ran.status, 2);
  EXPECT_NE(ran.err.find("cut.json: is no whole report"), std::string::npos) << ran.err;
}

TEST_F(Program, VerifyingRefusesAPipeInsteadOfWaitingForIt) {
  ASSERT_EQ(mkfifo(path("pipe.json").c_str(), 0600), 0);
  for (const std::string& target : {path("pipe.json"), path(""), std::string("/dev/zero")}) {
    const Ran ran = run("verify " + target);
    EXPECT_EQ(ran.status, 2) << target;
    EXPECT_NE(ran.err.find("is no regular file"), std::string::npos) << ran.err;
  }
}

TEST_F(Program, ListsAndHelps) {
  EXPECT_EQ(run("--list").status, 0);
  for (const char* word : {"gate_up", "w4a16", "peak-vnni", "suite (--suite)"}) {
    EXPECT_NE(run("--list").out.find(word), std::string::npos) << word;
  }
  EXPECT_EQ(run("--help").status, 0);
  EXPECT_EQ(run("compare --help").status, 0);
}

TEST_F(Program, MeasuresAndWritesBothReports) {
  const Ran ran =
      run("--shape 128x256 --threads 2 --cache hot --m 1,3 --passes 4 --json " + path("a.json") + " --html " + path("a.html"));
  ASSERT_EQ(ran.status, 0) << ran.err << ran.out;
  const json a = report("a.json");
  EXPECT_EQ(a["status"], "ok");
  EXPECT_EQ(a["machine"]["name"].is_string(), true);
  ASSERT_EQ(a["results"].size(), 2U);
  for (const json& result : a["results"]) {
    EXPECT_EQ(result["order"].size(), 4U);
    bool portable = false;
    for (const json& arm : result["arms"]) {
      if (arm["status"] == "refused") continue;
      EXPECT_EQ(arm["status"], "ok") << arm["name"] << arm["error"];
      EXPECT_EQ(arm["verified"], arm["role"] == "contender" ? json(true) : json(nullptr)) << arm["name"];
      EXPECT_EQ(arm["n"], 4);
      portable =
          portable || arm["name"] == "omni-portable" || arm["detail"].get<std::string>().find("portable") != std::string::npos;
    }
    EXPECT_TRUE(portable);
  }
  EXPECT_NE(ran.out.find("codes 16384"), std::string::npos);
  std::ifstream page(path("a.html"));
  std::string html((std::istreambuf_iterator<char>(page)), {});
  EXPECT_NE(html.find("</html>"), std::string::npos);
  EXPECT_EQ(run("compare " + path("a.json") + " " + path("a.json")).status, 0);
  EXPECT_EQ(run("compare --fail-on-slower " + path("a.json") + " " + path("a.json")).status, 0);
}

// One channel of 16, 32 inputs: less than a clock tick. Calibration enlarges the inner loop; no NaN or infinity appears.
TEST_F(Program, TinyShapesAreTimedOrMarked) {
  const Ran ran = run("--shape 1x16x32 --group 32 --threads 1 --cache hot --passes 2 --json " + path("tiny.json"));
  ASSERT_EQ(ran.status, 0) << ran.err;
  std::ifstream file(path("tiny.json"));
  const std::string text((std::istreambuf_iterator<char>(file)), {});
  EXPECT_EQ(text.find("nan"), std::string::npos);
  EXPECT_EQ(text.find("inf,"), std::string::npos);
  const json parsed = json::parse(text);  // named: a range-for keeps only the last temporary of its range alive
  for (const json& arm : parsed["results"][0]["arms"]) {
    if (arm["status"] != "ok") continue;
    EXPECT_GT(arm["median_ns"].get<double>(), 0);
    EXPECT_GT(arm["calls_per_sample"].get<int64_t>(), 1) << arm["name"];
  }
}

// Another build of the program is an arm of this one; the same build is never ranked against itself on bits, only on time.
TEST_F(Program, ServesAsAWorker) {
  for (const char* numerics : {"group", "torch"}) {
    const Ran ran = run(std::string("--shape 80x128 --threads 1 --cache hot --passes 2 --class ") + numerics +
                        " --arms \"omni,again=omni,old=cmd:" + OMNI_BENCH_PROGRAM + " worker\" --json " + path("w.json"));
    ASSERT_EQ(ran.status, 0) << ran.err << ran.out;
    const json arms = report("w.json")["results"][0]["arms"];
    ASSERT_EQ(arms.size(), 3U);
    EXPECT_EQ(arms[2]["name"], "old");
    EXPECT_EQ(arms[2]["verified"], true);
    EXPECT_GT(arms[2]["bytes"].get<double>(), 0);
  }
}

// The time of a call is the worker's total by the calls, and the spread is over the passes.
TEST_F(Program, SevenPassesAreSevenObservations) {
  std::ofstream(path("worker.sh")) << R"(pass=0
while read -r word calls; do
  case $word in
    case) echo '{"ok": true}' ;;
    run) pass=$((pass + 1)); echo "{\"ns\": $((calls * (2000 + pass)))}" ;;
  esac
done
)";
  const Ran ran = run("--shape 64x64 --threads 1 --cache hot --passes 7 --arms \"omni,w=cmd:sh " + path("worker.sh") +
                      "\" --json " + path("seven.json"));
  ASSERT_EQ(ran.status, 0) << ran.err;
  const json arms = report("seven.json")["results"][0]["arms"];
  ASSERT_EQ(arms.size(), 2U);
  for (const json& arm : arms) {
    EXPECT_EQ(arm["n"], 7) << arm["name"];
    EXPECT_EQ(arm["samples"].size(), 7U) << arm["name"];
  }
  const json& samples = arms[1]["samples"];
  const double first = samples[0]["ns"].get<double>();
  EXPECT_GT(first, 2000);  // the passes before it are calibration
  for (int i = 0; i < 7; ++i) {
    EXPECT_GT(samples[i]["calls"].get<int64_t>(), 1);
    EXPECT_NEAR(samples[i]["ns"].get<double>(), first + i, 1e-6) << i;
  }
  EXPECT_NEAR(arms[1]["median_ns"].get<double>(), first + 3, 1e-6);
  EXPECT_NEAR(arms[1]["best_ns"].get<double>(), first, 1e-6);
}

TEST_F(Program, AFailedArmGivesStatusOneAndAReport) {
  const Ran ran = run("--shape 64x64 --threads 1 --cache hot --passes 2 --arms \"omni,dead=cmd:false,wrong=run:exit 5\" --json " +
                      path("f.json"));
  EXPECT_EQ(ran.status, 1);
  const json f = report("f.json");
  EXPECT_EQ(f["status"], "failed");
  EXPECT_EQ(f["results"][0]["arms"][0]["status"], "ok");
  EXPECT_EQ(f["results"][0]["arms"][1]["status"], "failed");
  EXPECT_NE(f["results"][0]["arms"][2]["error"].get<std::string>().find("status 5"), std::string::npos);
}

/// A process that nobody has reaped yet (no init in a container) has ended, too.
bool runs(pid_t pid) {
  if (kill(pid, 0) != 0) return false;
  std::ifstream stat("/proc/" + std::to_string(pid) + "/stat");
  std::string number, name, state;
  return stat >> number >> name >> state && state != "Z";
}

template <class Condition>
bool within_seconds(int seconds, const Condition& condition) {
  for (int i = 0; i < 100 * seconds && !condition(); ++i) std::this_thread::sleep_for(std::chrono::milliseconds(10));
  return condition();
}

TEST_F(Program, AnInterruptedRunLeavesNothingBehind) {
  for (const int signal_number : {SIGTERM, SIGINT, SIGHUP}) {
    fs::create_directory(path("tmp"));
    // The worker starts a process of its own, notes it, and never answers.
    std::ofstream(path("worker.sh")) << "sleep 1000 &\necho $! > " << path("new") << "\nmv " << path("new") << " " << path("pid")
                                     << "\nwait\n";
    std::string shell = "TMPDIR=" + path("tmp") + " exec " + OMNI_BENCH_PROGRAM +
                        " --shape 64x64 --group 32 --threads 2 --cache hot --passes 2 --arms \"omni,w=cmd:sh " + path("worker.sh") +
                        "\" >/dev/null 2>&1";
    std::array<std::string, 2> words = {"sh", "-c"};
    std::array<char*, 4> arguments = {words[0].data(), words[1].data(), shell.data(), nullptr};
    posix_spawnattr_t attributes;
    posix_spawnattr_init(&attributes);
    sigset_t usual;
    sigemptyset(&usual);
    for (const int number : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&usual, number);
    posix_spawnattr_setsigdefault(&attributes, &usual);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGDEF);
    pid_t pid = -1;
    ASSERT_EQ(posix_spawn(&pid, "/bin/sh", nullptr, &attributes, arguments.data(), environ), 0);
    posix_spawnattr_destroy(&attributes);

    const bool began = within_seconds(60, [&] { return fs::exists(path("pid")); });
    EXPECT_TRUE(began);
    EXPECT_FALSE(fs::is_empty(path("tmp")));
    kill(pid, signal_number);
    int status = 0;
    ASSERT_EQ(waitpid(pid, &status, 0), pid);
    EXPECT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == signal_number) << status;
    EXPECT_TRUE(fs::is_empty(path("tmp")));
    pid_t sleeper = 0;
    ASSERT_TRUE(std::ifstream(path("pid")) >> sleeper);
    EXPECT_TRUE(within_seconds(10, [&] { return !runs(sleeper); })) << sleeper;
    fs::remove(path("pid"));
  }
}

TEST_F(Program, ACaseThatDoesNotFitMemoryIsReported) {
  const Ran ran = run("--shape 2147483648x65536 --threads 1 --passes 2 --json " + path("big.json"));
  EXPECT_EQ(ran.status, 2);
  EXPECT_EQ(std::count(ran.err.begin(), ran.err.end(), '\n'), 1) << ran.err;
  EXPECT_NE(ran.err.find("--shape 2147483648x65536: "), std::string::npos) << ran.err;
  EXPECT_EQ(run("--shape 1000000000x1000000000,64x64 --threads 1 --passes 2 --arms omni").status, 1);
  EXPECT_NE(report("big.json")["results"][0]["arms"][0]["error"].get<std::string>().find("available memory"), std::string::npos);
}

// One row of the suite, with no time at all: the fewest passes, a page, a table, and peers that are absent but no failure.
TEST_F(Program, SuiteWritesItsFigures) {
  const Ran ran = run("--suite --only w4a16-m1-o --budget 0 --threads 2 --json " + path("s.json") + " --html " + path("s.html") +
                      " --summary " + path("s.md"));
  ASSERT_EQ(ran.status, 0) << ran.err << ran.out;
  const json s = report("s.json");
  ASSERT_EQ(s["results"].size(), 1U);
  EXPECT_EQ(s["results"][0]["order"].size(), 12U);
  ASSERT_GE(s["suite"]["figures"].size(), 2U);
  EXPECT_TRUE(s["suite"]["figures"][0]["value"].is_number());
  EXPECT_EQ(s["suite"]["figures"][1]["outcome"], "not measured: torch-int4 did not take part");
  for (const char* name : {"s.html", "s.md"}) {
    std::ifstream file(path(name));
    const std::string text((std::istreambuf_iterator<char>(file)), {});
    EXPECT_NE(text.find("share of the read arm"), std::string::npos) << name;
  }
}

TEST_F(Program, PackAndDequantise) {
  const Ran ran = run("--shape 80x96 --group 32 --op pack,dequant --threads 2 --cache hot --passes 2 --json " + path("p.json"));
  ASSERT_EQ(ran.status, 0) << ran.err << ran.out;
  const json parsed = report("p.json");
  for (const json& result : parsed["results"]) {
    EXPECT_EQ(result["arms"][0]["verified"], true);
    EXPECT_TRUE(result["arms"][0]["gflops"].is_null());
  }
}

}  // namespace
