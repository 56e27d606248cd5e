// SPDX-License-Identifier: Apache-2.0
// Linear runs in processes that are not as usual: executable memory refused in part or whole (AC-034), and after a fork (AC-039).
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

#include "jit/memory/sandbox_for_test.h"
#include "kernels/cpu/machine.h"
#include "tests/support/linear_run.h"

namespace okl::test {
namespace {

LinearShape shape_for(omni_numerics numerics) {
  LinearShape shape;
  shape.n = 208;
  shape.k = 160;
  shape.group = 64;
  shape.m = 5;
  shape.numerics = numerics;
  shape.y_type = OMNI_DTYPE_BF16;
  return shape;
}

// Selects and runs both classes on `parallel`; 0 when the bits are those of the contract and the plan says `code` (nullptr: any).
int run_both_classes(const omni_parallel& parallel, const char* code) {
  for (const omni_numerics numerics : {OMNI_NUMERICS_GROUP, OMNI_NUMERICS_TORCH}) {
    LinearCase problem(shape_for(numerics), 6);
    const omni_linear_query query = problem.query();
    omni_plan* plan = nullptr;
    if (omni_select(&query, &plan) != OMNI_OK) return 1;
    omni_plan_info info{};
    info.size = sizeof info;
    if (omni_plan_get_info(plan, &info) != OMNI_OK) return 2;
    if (code != nullptr && std::strcmp(info.code, code) != 0) return 3;
    size_t bytes = 0;
    if (omni_workspace_size(plan, problem.shape.m, &bytes) != OMNI_OK) return 4;
    GuardedBuffer workspace(bytes, Flush::kFront, 64, 0xFF);
    omni_linear_args args = problem.args();
    args.workspace = workspace.data();
    args.workspace_bytes = bytes;
    args.parallel = &parallel;
    if (omni_run(plan, &args) != OMNI_OK) return 5;
    if (!first_difference(problem, problem.expected()).empty()) return 6;
    omni_plan_destroy(plan);
  }
  return 0;
}

void expect_under(Policy policy, const char* code) {
  const int status = status_of_child([&] { return enter_policy(policy) ? run_both_classes(serial_parallel(), code) : kNoSandbox; });
  ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  if (WEXITSTATUS(status) == kNoSandbox) GTEST_SKIP() << "not run: no seccomp filter can be entered here";
  EXPECT_EQ(WEXITSTATUS(status), 0);
}

// Without AVX2 the portable row is compiled anyway.
const char* expected_code(const char* jit) { return (hardware_isa() & kIsaAvx2Tier) == kIsaAvx2Tier ? jit : "compiled"; }

TEST(LinearPolicy, WriteAndExecuteKills) { expect_under(Policy::kKillWriteExec, expected_code("jit")); }
TEST(LinearPolicy, MprotectExecDenied) { expect_under(Policy::kDenyMprotectExec, expected_code("jit (double mapping)")); }
TEST(LinearPolicy, EveryExecDenied) { expect_under(Policy::kDenyAnyExec, "compiled"); }

TEST(LinearFork, ChildAndParentRunOn) {
  omni_parallel pool{};
  pool.size = sizeof pool;
  ASSERT_EQ(omni_set_num_threads(4), OMNI_OK) << omni_last_error();
  ASSERT_EQ(omni_default_parallel(&pool), OMNI_OK) << omni_last_error();
  ASSERT_EQ(run_both_classes(pool, nullptr), 0);
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(5);
    omni_parallel parallel{};
    parallel.size = sizeof parallel;
    if (omni_default_parallel(&parallel) != OMNI_OK) _exit(90);
    _exit(run_both_classes(parallel, nullptr));
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "child ended by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_EQ(run_both_classes(pool, nullptr), 0);
  EXPECT_EQ(omni_set_num_threads(0), OMNI_OK);
}

}  // namespace
}  // namespace okl::test
