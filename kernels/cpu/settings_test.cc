// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/settings.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <map>
#include <thread>
#include <vector>

#include "kernels/cpu/machine.h"
#include "kernels/cpu/trace.h"
#include "kernels/dispatch/kernel.h"
#include "omni/omni.h"

namespace okl {
namespace {

std::map<std::string, std::string> environment;

const char* get(const char* name) {
  const auto found = environment.find(name);
  return found == environment.end() ? nullptr : found->second.c_str();
}

omni_status read(std::map<std::string, std::string> variables, Settings* out, std::string* error) {
  environment = std::move(variables);
  return read_environment(get, out, error);
}

TEST(Environment, Values) {
  Settings settings;
  std::string error;
  ASSERT_EQ(read({}, &settings, &error), OMNI_OK);
  EXPECT_EQ(settings.max_isa, ~IsaMask{0});
  EXPECT_EQ(settings.num_threads, 0u);
  EXPECT_FALSE(settings.verbose);
  ASSERT_EQ(read({{"OMNI_MAX_ISA", ""}, {"OMNI_KERNEL", ""}, {"OMNI_NUM_THREADS", ""}, {"OMNI_VERBOSE", ""}}, &settings, &error),
            OMNI_OK);
  EXPECT_EQ(settings.max_isa, ~IsaMask{0});
  ASSERT_FALSE(registry().empty());
  const std::string name(registry()[0].name);
  ASSERT_EQ(
      read({{"OMNI_MAX_ISA", "avx2"}, {"OMNI_KERNEL", name}, {"OMNI_NUM_THREADS", "7"}, {"OMNI_VERBOSE", "1"}}, &settings, &error),
      OMNI_OK)
      << error;
  EXPECT_EQ(settings.max_isa, *tier_mask("avx2"));
  EXPECT_EQ(settings.kernel, name);
  EXPECT_EQ(settings.num_threads, 7u);
  EXPECT_TRUE(settings.verbose);
}

TEST(Environment, UnknownValuesNameVariableAndValue) {
  const std::pair<const char*, const char*> bad[] = {
      {"OMNI_MAX_ISA", "AVX2"},   {"OMNI_MAX_ISA", "avx1024"},  {"OMNI_KERNEL", "gemv_nonsense"},
      {"OMNI_NUM_THREADS", "0"},  {"OMNI_NUM_THREADS", "-1"},   {"OMNI_NUM_THREADS", "two"},
      {"OMNI_NUM_THREADS", "2 "}, {"OMNI_NUM_THREADS", "1025"}, {"OMNI_NUM_THREADS", "99999999999999999999"},
      {"OMNI_VERBOSE", "2"},      {"OMNI_VERBOSE", "yes"}};
  for (const auto& [name, value] : bad) {
    Settings settings;
    settings.num_threads = 99;
    std::string error;
    EXPECT_EQ(read({{name, value}}, &settings, &error), OMNI_ERR_ENVIRONMENT) << name << value;
    EXPECT_NE(error.find(name), std::string::npos) << error;
    EXPECT_NE(error.find(value), std::string::npos) << error;
    EXPECT_EQ(settings.num_threads, 99u);
  }
}

// Runs `body` in a child whose library has not been initialised yet; the child's exit code is the test's verdict.
void in_child(const std::function<bool()>& body, std::string* output = nullptr) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]);
    _exit(body() ? 0 : 1);
  }
  close(ends[1]);
  std::string text;
  char buffer[256];
  for (ssize_t count; (count = ::read(ends[0], buffer, sizeof buffer)) > 0;) text.append(buffer, static_cast<size_t>(count));
  close(ends[0]);
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << text;
  if (output != nullptr) *output = text;
}

// These run before anything in this process initialises the library: every GoogleTest program runs each test on its own under
// ctest, and the children of a whole run are forked by tests that stand before the API tests.
TEST(InitializeInChild, UnknownValueFailsEveryEntry) {
  in_child([] {
    setenv("OMNI_MAX_ISA", "avx9", 1);
    if (omni_initialize() != OMNI_ERR_ENVIRONMENT) return false;
    const std::string text = omni_last_error();
    omni_machine machine{};
    machine.size = sizeof machine;
    unsetenv("OMNI_MAX_ISA");  // the environment is not read again
    size_t needed = 0;
    return text.find("OMNI_MAX_ISA=\"avx9\"") != std::string::npos && omni_get_machine(&machine) == OMNI_ERR_ENVIRONMENT &&
           omni_last_error() == text && machine.cores_online == 0 && omni_set_max_isa("avx2") == OMNI_ERR_ENVIRONMENT &&
           omni_set_kernel(nullptr) == OMNI_ERR_ENVIRONMENT && omni_set_profile_json(nullptr) == OMNI_ERR_ENVIRONMENT &&
           omni_get_profile_json(nullptr, 0, &needed) == OMNI_ERR_ENVIRONMENT &&
           omni_set_trace(nullptr, nullptr) == OMNI_ERR_ENVIRONMENT;
  });
}

TEST(InitializeInChild, CapIsReadOnce) {
  in_child([] {
    setenv("OMNI_MAX_ISA", "portable", 1);
    omni_machine machine{};
    machine.size = sizeof machine;
    if (omni_get_machine(&machine) != OMNI_OK || machine.isa != 0) return false;
    setenv("OMNI_MAX_ISA", "amxint8", 1);
    if (omni_initialize() != OMNI_OK || omni_get_machine(&machine) != OMNI_OK || machine.isa != 0) return false;
    return omni_set_max_isa(nullptr) == OMNI_OK && omni_get_machine(&machine) == OMNI_OK && machine.isa == machine.isa_hardware;
  });
}

TEST(InitializeInChild, VerboseGoesToStderrAndSilenceIsTheDefault) {
  std::string output;
  in_child(
      [] {
        setenv("OMNI_VERBOSE", "1", 1);
        omni_initialize();
        trace("hello %d", 42);
        return true;
      },
      &output);
  EXPECT_EQ(output, "omni: hello 42\n");
  in_child(
      [] {
        unsetenv("OMNI_VERBOSE");
        omni_machine machine{};
        machine.size = sizeof machine;
        omni_get_machine(&machine);
        trace("hello %d", 42);
        return true;
      },
      &output);
  EXPECT_EQ(output, "");
}

TEST(SetKernel, KnowsTheRegistry) {
  EXPECT_EQ(omni_set_kernel("gemv_nonsense"), OMNI_ERR_UNKNOWN_NAME);
  EXPECT_NE(std::strstr(omni_last_error(), "gemv_nonsense"), nullptr);
  ASSERT_FALSE(registry().empty());
  const std::string name(registry()[0].name);
  EXPECT_EQ(omni_set_kernel(name.c_str()), OMNI_OK);
  EXPECT_EQ(settings().kernel, name);
  EXPECT_EQ(omni_set_kernel(nullptr), OMNI_OK);
  EXPECT_EQ(settings().kernel, "");
}

struct Lines {
  std::vector<std::string> lines;
  omni_status nested = OMNI_OK;
  static void add(void* context, const char* line) {
    Lines& self = *static_cast<Lines*>(context);
    self.lines.emplace_back(line);
    trace("from inside");  // dropped, not a deadlock
    self.nested = omni_set_trace(nullptr, nullptr);
  }
};

TEST(Trace, Callback) {
  Lines sink;
  trace("nobody listens");
  ASSERT_EQ(omni_set_trace(Lines::add, &sink), OMNI_OK);
  EXPECT_TRUE(trace_enabled());
  trace("one %s", "line");
  trace("%s", std::string(1000, 'x').c_str());
  ASSERT_EQ(omni_set_trace(nullptr, nullptr), OMNI_OK);
  EXPECT_FALSE(trace_enabled());
  trace("nobody listens");
  ASSERT_EQ(sink.lines.size(), 2u);
  EXPECT_EQ(sink.lines[0], "one line");
  EXPECT_EQ(sink.lines[1].size(), 511u);
  EXPECT_EQ(sink.nested, OMNI_ERR_STATE);
}

TEST(Concurrency, GettersAndSetters) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([t] {
      for (int i = 0; i < 200; ++i) {
        omni_machine machine{};
        machine.size = sizeof machine;
        EXPECT_EQ(omni_get_machine(&machine), OMNI_OK);
        EXPECT_TRUE(machine.isa == 0 || machine.isa == machine.isa_hardware);
        EXPECT_EQ(omni_set_max_isa(t % 2 == 0 ? "portable" : nullptr), OMNI_OK);
        trace("thread %d", t);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  omni_set_max_isa(nullptr);
}

}  // namespace
}  // namespace okl
