// SPDX-License-Identifier: Apache-2.0
// AC-034: linear layers in processes that may not have some, or any, executable memory: the same bits, and the plan says how.
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "jit/memory/sandbox_for_test.h"
#include "tests/support/linear_case.h"
#include "tests/support/linear_run.h"

namespace okl::test {
namespace {

constexpr int kNoKernel = 78;

// 0 when every tier gives the contract's bits under the policy and its generated rows report `code`.
int run_all(std::optional<Policy> policy, const char* numerics_tier, omni_numerics numerics, const std::string& code) {
  if (policy && !enter_policy(*policy)) return kNoSandbox;
  LinearShape shape;
  shape.n = 144;
  shape.k = 320;
  shape.group = 128;
  shape.m = 3;
  shape.numerics = numerics;
  LinearCase problem(shape, 7);
  omni_linear_query query = problem.query();
  query.max_isa = numerics_tier;
  omni_plan* plan = nullptr;
  const omni_status status = omni_select(&query, &plan);
  if (status == OMNI_ERR_NO_KERNEL) return kNoKernel;
  if (status != OMNI_OK) return 1;
  omni_plan_info info = {};
  info.size = sizeof info;
  if (omni_plan_get_info(plan, &info) != OMNI_OK) return 2;
  if (info.code != code) return 3;
  size_t bytes = 0;
  if (omni_workspace_size(plan, shape.m, &bytes) != OMNI_OK) return 4;
  GuardedBuffer workspace(bytes, Flush::kFront, 64, 0);
  omni_linear_args args = problem.args();
  args.workspace = workspace.data();
  args.workspace_bytes = bytes;
  if (omni_run(plan, &args) != OMNI_OK) return 5;
  if (!first_difference(problem, problem.expected()).empty()) return 6;
  omni_plan_destroy(plan);
  return 0;
}

void expect_ok(std::optional<Policy> policy, const std::string& code) {
  int ran = 0;
  for (const char* tier : {"avx2", "avx512f", "avx512bf16"}) {
    for (const omni_numerics numerics : {OMNI_NUMERICS_GROUP, OMNI_NUMERICS_TORCH}) {
      const int status = status_of_child([&] { return run_all(policy, tier, numerics, code); });
      ASSERT_TRUE(WIFEXITED(status)) << tier << ": killed by signal " << WTERMSIG(status);
      if (WEXITSTATUS(status) == kNoSandbox) GTEST_SKIP() << "the policy cannot be entered";
      if (WEXITSTATUS(status) == kNoKernel) continue;
      EXPECT_EQ(WEXITSTATUS(status), 0) << tier << " class " << numerics;
      ++ran;
    }
  }
  EXPECT_GT(ran, 0);
}

class Sandbox : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!__builtin_cpu_supports("avx2") || !__builtin_cpu_supports("fma")) GTEST_SKIP() << "no tier with generated code";
  }
};

TEST_F(Sandbox, None) { expect_ok(std::nullopt, "jit"); }
TEST_F(Sandbox, KillOnWriteAndExec) { expect_ok(Policy::kKillWriteExec, "jit"); }
TEST_F(Sandbox, MprotectExecDenied) { expect_ok(Policy::kDenyMprotectExec, "jit (double mapping)"); }
TEST_F(Sandbox, AllExecDenied) { expect_ok(Policy::kDenyAnyExec, "compiled"); }

}  // namespace
}  // namespace okl::test
