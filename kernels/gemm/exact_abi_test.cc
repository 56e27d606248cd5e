// SPDX-License-Identifier: Apache-2.0
// Calling convention of the kernels of class exact: callee-saved registers, MXCSR (also with FTZ and DAZ set by the caller), x87,
// flags.
#include <xmmintrin.h>

#include "kernels/cpu/machine.h"
#include "kernels/gemm/exact_plan.h"
#include "tests/support/abi_check.h"
#include "tests/support/exact_case.h"

namespace okl::test {
namespace {

TEST(ExactAbi, EveryRowKeepsTheCallersState) {
  for (const KernelRow& row : registry()) {
    if (row.numerics != Numerics::kExact || (row.required & ~hardware_isa()) != 0) continue;  // reported by exact_test
    for (const int64_t n : {64, 192, 23}) {
      for (const uint32_t m : {1U, 5U, 20U}) {
        if (row.op == Op::kGemv && m > 1) continue;
        ExactShape shape;
        shape.weights = row.weights;
        shape.n = n;
        shape.k = 160;
        shape.group = 64;
        shape.m = m;
        shape.y_type = OMNI_DTYPE_BF16;
        ExactCase problem(shape, 5);
        const ExactPlanPointer plan = make_exact_plan(problem, row.name.data());
        ASSERT_NE(plan, nullptr);
        size_t bytes = 0, scratch_bytes = 0;
        ASSERT_EQ(omni_workspace_size(plan.get(), m, &bytes), OMNI_OK);
        ASSERT_EQ(omni_scratch_size(plan.get(), m, &scratch_bytes), OMNI_OK);
        GuardedBuffer workspace(bytes, Flush::kBack, 64), scratch(scratch_bytes, Flush::kBack, 64);
        omni_linear_args args = problem.args();
        args.workspace = workspace.data();
        args.workspace_bytes = workspace.size();
        ASSERT_EQ(omni_prepare(plan.get(), &args), OMNI_OK) << omni_last_error();
        const auto& exact = static_cast<const ExactPlan&>(*plan);
        const bool tail = n < 64;
        const ExactCodeSet& code = exact.code_for(m);
        const ExactPath path = code.path_for(m);
        const ExactCodeSet::Entry& entry = code.entry(path, tail);
        const ExactWorkspace layout(exact.config());
        ExactTile tile{};
        tile.codes = problem.codes.data();
        tile.scales = problem.scales.data();
        tile.scale_stride = n * 2;
        tile.x = reinterpret_cast<const int8_t*>(workspace.data());
        tile.x_stride = static_cast<int64_t>(layout.row_bytes);
        tile.sums = reinterpret_cast<const int32_t*>(workspace.data() + layout.sums(m));
        tile.starts = reinterpret_cast<const int32_t*>(workspace.data() + layout.starts(m));
        tile.x_scales = reinterpret_cast<const float*>(workspace.data() + layout.scales(m));
        tile.y = problem.y.data();
        tile.ldy = n * 2;
        tile.channels = tail ? (uint64_t{1} << n) - 1 : ~uint64_t{0};
        tile.blocks = tail ? 1 : n / 64;
        tile.rows = std::min<int64_t>(m, entry.config.rows);
        tile.scratch = scratch.data();
        tile.config = &entry.config;
        for (const unsigned mode : {0x1F80U, 0x1F80U | 0x8040U}) {  // IEEE defaults; FTZ and DAZ
          const unsigned before = _mm_getcsr();
          _mm_setcsr(mode);
          const std::string broken = AbiTrampoline::call(entry.run, static_cast<const ExactTile*>(&tile));
          _mm_setcsr(before);
          EXPECT_EQ(broken, "") << row.name << " n=" << n << " m=" << m;
        }
      }
    }
  }
}

}  // namespace
}  // namespace okl::test
