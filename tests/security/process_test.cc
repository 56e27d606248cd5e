// SPDX-License-Identifier: Apache-2.0
// Linear layers with more threads than processors (AC-037), more than blocks (AC-038), and across fork() (AC-039).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/linear_case.h"
#include "tests/support/linear_run.h"

namespace okl::test {
namespace {

// One problem, its plan and what one run of it must give.
struct Problem {
  explicit Problem(const LinearShape& shape) : problem(shape, 11), plan(make_plan(problem, nullptr)), expected(problem.expected()) {
    if (plan != nullptr) workspace = make_workspace(*plan, shape.m, Flush::kFront);
  }
  // "" or the first difference.
  std::string run(const omni_parallel* parallel) {
    omni_linear_args args = problem.args();
    args.workspace = workspace.data();
    args.workspace_bytes = workspace.size();
    args.parallel = parallel;
    problem.clear_y();
    if (omni_run(plan.get(), &args) != OMNI_OK) return omni_last_error();
    return first_difference(problem, expected);
  }

  LinearCase problem;
  PlanPointer plan;
  std::vector<uint32_t> expected;
  GuardedBuffer workspace{0};
};

LinearShape shape_of(int64_t n) {
  LinearShape shape;
  shape.n = n;
  shape.k = 256;
  shape.group = 128;
  shape.m = 4;
  return shape;
}

TEST(Threads, MoreThanBlocks) {
  for (const int64_t n : {16, 64, 65}) {
    Problem problem(shape_of(n));
    ASSERT_NE(problem.plan, nullptr);
    for (uint32_t threads = 1; threads <= 130; ++threads) {
      ASSERT_EQ(omni_set_num_threads(threads), OMNI_OK);
      ASSERT_EQ(problem.run(nullptr), "") << n << " channels, " << threads << " threads";
    }
  }
  omni_set_num_threads(0);
}

TEST(Threads, MoreThanProcessors) {
  Problem problem(shape_of(1024));
  ASSERT_NE(problem.plan, nullptr);
  for (const uint32_t threads : {2U, 3U, 8U, 64U}) {
    ASSERT_EQ(omni_set_num_threads(threads), OMNI_OK);
    for (int i = 0; i < 50; ++i) ASSERT_EQ(problem.run(nullptr), "") << threads;
  }
  omni_set_num_threads(0);
}

TEST(Threads, AcrossFork) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "ThreadSanitizer ends children of fork() that start threads";
#endif
  ASSERT_EQ(omni_set_num_threads(4), OMNI_OK);
  Problem problem(shape_of(1024));
  ASSERT_NE(problem.plan, nullptr);
  ASSERT_EQ(problem.run(nullptr), "");
  const pid_t child = fork();
  if (child == 0) {
    alarm(5);
    _exit(problem.run(nullptr).empty() && Problem(shape_of(80)).run(nullptr).empty() ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(problem.run(nullptr), "");
  omni_set_num_threads(0);
}

}  // namespace
}  // namespace okl::test
