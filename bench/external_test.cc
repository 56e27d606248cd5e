// SPDX-License-Identifier: Apache-2.0
// Processes: workers, commands, the wait for resting threads.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "bench/arms/arms.h"
#include "bench/ops/op.h"
#include "bench/parking.h"
#include "bench/subprocess.h"

namespace omnibench {
namespace {

/// A worker in shell: `reply_case` answers "case", runs take 1 us a call.
std::string shell_worker(const std::string& reply_case, const std::string& reply_run = R"({\"ns\":${rest}000})") {
  return "sh -c 'while read -r word rest; do case $word in case) echo \"" + reply_case + "\";; run) echo \"" + reply_run +
         "\";; *) echo \"{}\";; esac; done'";
}

struct WorkerTest : testing::Test {
  Pool pool{1};
  Case c = [] {
    Case made;
    made.op = "w4a16";
    made.shape = {"x", {64, 64}, 0, 1};
    made.group = 64;
    made.variant = "group";
    made.hot = true;
    return made;
  }();
  std::unique_ptr<Workload> workload = op_of(c).make(c, pool);
  SteadyClock clock;
};

TEST_F(WorkerTest, AnswersPerPass) {
  const auto arm = make_worker_arm("w", *workload, shell_worker(R"({\"ok\":true,\"detail\":\"fake\",\"bytes\":123})"));
  arm->prepare();
  EXPECT_EQ(arm->info().detail, "fake");
  EXPECT_EQ(arm->info().bytes, 123);
  EXPECT_FALSE(arm->verify().checked);
  EXPECT_EQ(arm->sample(clock, 7), 7000);
  EXPECT_EQ(arm->sample(clock, 1), 1000);
  EXPECT_EQ(arm->processes().size(), 1U);
}

// A worker may do different work for shapes of the same sizes.
TEST_F(WorkerTest, TheQuestionHasTheNameOfTheShape) {
  const auto arm = make_worker_arm("w", *workload, R"(python3 -c 'import json
question = json.loads(input()[5:])
print(json.dumps({"detail": question["shape"] + str(question["n"]) + str(question["m"])}))')");
  arm->prepare();
  EXPECT_EQ(arm->info().detail, "x641");
}

TEST_F(WorkerTest, ErrorsAreThrownWithTheirText) {
  const auto failing = make_worker_arm("w", *workload, shell_worker(R"({\"error\":\"no such operator\"})"));
  EXPECT_THROW(
      {
        try {
          failing->prepare();
        } catch (const std::runtime_error& error) {
          EXPECT_STREQ(error.what(), "no such operator");
          throw;
        }
      },
      std::runtime_error);
  EXPECT_THROW(make_worker_arm("w", *workload, shell_worker(R"({\"refused\":\"not here\"})"))->prepare(), Refused);
  EXPECT_THROW(make_worker_arm("w", *workload, shell_worker("nonsense"))->prepare(), std::runtime_error);
  EXPECT_THROW(make_worker_arm("w", *workload, "exit 3")->prepare(), std::runtime_error);
  EXPECT_THROW(make_worker_arm("w", *workload, "/nonexistent/program")->prepare(), std::runtime_error);
  const auto silent = make_worker_arm("w", *workload, shell_worker(R"({\"ok\":true})", "{}"));
  silent->prepare();
  EXPECT_THROW(silent->sample(clock, 1), std::runtime_error);
}

TEST_F(WorkerTest, AWorkerThatDiesIsAFailedPassNotTheEnd) {
  const auto arm = make_worker_arm("w", *workload, "sh -c 'read x; echo {}; read x'");
  arm->prepare();
  try {
    arm->sample(clock, 1);
    FAIL() << "no error";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("ended with status 0"), std::string::npos) << error.what();
  }
  EXPECT_THROW(arm->sample(clock, 1), std::runtime_error);
}

TEST_F(WorkerTest, AnEndlessLineIsRefusedAndTheWorkerGivenUp) {
  const auto arm = make_worker_arm("w", *workload, "head -c 2000000000 /dev/zero");
  const auto error_of = [](const auto& call) -> std::string {
    try {
      call();
    } catch (const std::runtime_error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(error_of([&] { arm->prepare(); }), "the worker's answer is longer than 1048576 bytes");
  EXPECT_EQ(error_of([&] { arm->sample(clock, 1); }), "the worker was given up: the worker's answer is longer than 1048576 bytes");
  EXPECT_TRUE(arm->processes().empty());
}

TEST_F(WorkerTest, AnUnknownComparisonIsAnError) {
  const auto arm = make_worker_arm("w", *workload, shell_worker(R"({\"ok\":true,\"compare\":\"vibes\"})"));
  arm->prepare();
  EXPECT_THROW(arm->verify(), std::runtime_error);
}

TEST(Command, WholeTimeAndStatus) {
  SteadyClock clock;
  EXPECT_GE(make_command_arm("c", "sleep 0.02")->sample(clock, 1), 2e7);
  EXPECT_THROW(make_command_arm("c", "exit 4")->sample(clock, 1), std::runtime_error);
  EXPECT_FALSE(make_command_arm("c", "true")->repeats());
}

TEST(Subprocess, TimesOut) {
  Subprocess process("exec cat");
  EXPECT_THROW(process.read_line(0.05), std::runtime_error);
  process.write_line("hello");
  EXPECT_EQ(process.read_line(5), "hello");
}

TEST(Subprocess, ReadsLinesUpToTheirBound) {
  for (const size_t excess : {0, 1}) {
    Subprocess process(fmt::format("head -c {} /dev/zero | tr '\\0' a; echo; echo next", kLongestLine + excess));
    if (excess > 0) {
      EXPECT_THROW(process.read_line(60), std::runtime_error);
    } else {
      EXPECT_EQ(process.read_line(60), std::string(kLongestLine, 'a'));
      EXPECT_EQ(process.read_line(60), "next");
    }
  }
}

TEST(Parking, SeesAThreadThatSpins) {
  std::atomic<bool> stop{false};
  std::thread spinner([&] {
    while (!stop.load(std::memory_order_relaxed)) {
    }
  });
  EXPECT_FALSE(wait_until_parked({}, 30));
  stop = true;
  spinner.join();
  EXPECT_TRUE(wait_until_parked({}, 5000));
}

TEST(Parking, SeesAnotherProcessThatSpins) {
  Subprocess busy("read x; exec sleep 60");
  const auto wait_for_start = std::chrono::milliseconds(50);
  std::this_thread::sleep_for(wait_for_start);
  EXPECT_TRUE(wait_until_parked({busy.pid()}, 5000));
  Subprocess spinning("while :; do :; done");
  std::this_thread::sleep_for(wait_for_start);
  EXPECT_FALSE(wait_until_parked({spinning.pid()}, 30));
  kill(-spinning.pid(), SIGKILL);
  kill(-busy.pid(), SIGKILL);
}

}  // namespace
}  // namespace omnibench
