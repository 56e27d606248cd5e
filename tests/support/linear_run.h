// SPDX-License-Identifier: Apache-2.0
// Runs a LinearCase on a named kernel and says where the bits differ from the contract.
#pragma once

#include <gtest/gtest.h>

#include <string>

#include "kernels/cpu/machine.h"
#include "kernels/dispatch/kernel.h"
#include "tests/support/linear_case.h"

namespace okl::test {

inline bool row_computes(const KernelRow& row, const LinearShape& shape) {
  const bool op_fits = row.op == Op::kGemm || (row.op == Op::kGemv && shape.m <= 1);
  return op_fits && row.numerics == static_cast<Numerics>(shape.numerics) && row.activation == shape.x_type;
}

inline bool row_runs_here(const KernelRow& row) { return (row.required & ~hardware_isa()) == 0; }

struct PlanDeleter {
  void operator()(omni_plan* plan) const { omni_plan_destroy(plan); }
};
using PlanPointer = std::unique_ptr<omni_plan, PlanDeleter>;

inline PlanPointer make_plan(const LinearCase& problem, const char* kernel) {
  omni_linear_query query = problem.query();
  query.kernel = kernel;
  omni_plan* plan = nullptr;
  EXPECT_EQ(omni_select(&query, &plan), OMNI_OK) << kernel << ": " << omni_last_error();
  return PlanPointer(plan);
}

// Workspace between guards, poisoned with NaN.
inline GuardedBuffer make_workspace(const omni_plan& plan, uint32_t m, Flush flush) {
  size_t bytes = 0;
  EXPECT_EQ(omni_workspace_size(&plan, m, &bytes), OMNI_OK);
  return GuardedBuffer(bytes, flush, 64, 0xFF);
}

// Scratch of one portion between guards, poisoned with NaN.
inline GuardedBuffer make_scratch(const omni_plan& plan, uint32_t m, Flush flush) {
  size_t bytes = 0;
  EXPECT_EQ(omni_scratch_size(&plan, m, &bytes), OMNI_OK);
  return GuardedBuffer(bytes, flush, 64, 0xFF);
}

// The first element that differs, or "".
inline std::string first_difference(const LinearCase& problem, const std::vector<uint32_t>& expected) {
  const std::vector<uint32_t> actual = problem.actual();
  for (size_t i = 0; i < expected.size(); ++i) {
    if (actual[i] == expected[i]) continue;
    char text[160];
    std::snprintf(text, sizeof text, "row %zu channel %zu: 0x%08x, expected 0x%08x", i / problem.shape.n, i % problem.shape.n,
                  actual[i], expected[i]);
    return text;
  }
  return problem.padding_intact() ? "" : "padding of y was written";
}

inline std::string describe(const LinearShape& s) {
  char text[200];
  std::snprintf(text, sizeof text, "n=%ld k=%ld g=%u m=%u x=%d s=%d y=%d epilogue=%u residual=%d flush=%d", static_cast<long>(s.n),
                static_cast<long>(s.k), s.group, s.m, s.x_type, s.scale_type, s.y_type, s.epilogue, s.residual_type,
                static_cast<int>(s.flush));
  return text;
}

inline void expect_contract(LinearCase& problem, const std::vector<uint32_t>& expected, const char* kernel,
                            const omni_parallel& parallel = serial_parallel()) {
  const PlanPointer plan = make_plan(problem, kernel);
  if (plan == nullptr) return;
  GuardedBuffer workspace = make_workspace(*plan, problem.shape.m, problem.shape.flush);
  problem.clear_y();
  omni_linear_args args = problem.args();
  args.workspace = workspace.data();
  args.workspace_bytes = workspace.size();
  args.parallel = &parallel;
  ASSERT_EQ(omni_run(plan.get(), &args), OMNI_OK) << omni_last_error();
  EXPECT_EQ(first_difference(problem, expected), "") << kernel << " " << describe(problem.shape);
}

}  // namespace okl::test
