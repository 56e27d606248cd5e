// SPDX-License-Identifier: Apache-2.0
// Calling convention of every linear kernel: callee-saved registers, MXCSR (also with FTZ and DAZ set by the caller), x87, flags.
#include <gtest/gtest.h>
#include <xmmintrin.h>

#include "kernels/gemv/tg4_plan.h"
#include "tests/support/abi_check.h"
#include "tests/support/linear_run.h"

namespace okl::test {
namespace {

TEST(AbiCheck, NoticesABrokenRule) {
  struct Breaker : Xbyak::CodeGenerator {
    Breaker() {
      mov(r13, 1);
      std_();
      ret();
    }
    void std_() { db(0xFD); }
  } breaker;
  const auto entry =
      reinterpret_cast<void (*)(const int*)>(const_cast<void*>(jit::publish(breaker.getCode(), breaker.getSize(), "breaker")));
  ASSERT_NE(entry, nullptr);
  const int argument = 0;
  EXPECT_EQ(AbiTrampoline::call(entry, &argument), "r13 direction");
}

TEST(LinearAbi, EveryRowKeepsTheCallersState) {
  for (const KernelRow& row : registry()) {
    if ((row.op != Op::kGemv && row.op != Op::kGemm) || row.weights != OMNI_FORMAT_TG4) continue;
    if (!row_runs_here(row)) continue;  // reported by linear_test
    for (const int64_t n : {64, 192, 48}) {
      LinearShape shape;
      shape.n = n;
      shape.k = 160;
      shape.group = 64;
      shape.numerics = static_cast<omni_numerics>(row.numerics);
      shape.x_type = row.activation;
      shape.scale_type = row.activation;
      shape.y_type = OMNI_DTYPE_BF16;
      LinearCase problem(shape, 5);
      const PlanPointer plan = make_plan(problem, row.name.data());
      ASSERT_NE(plan, nullptr);
      GuardedBuffer workspace = make_workspace(*plan, 1, Flush::kBack);
      omni_linear_args args = problem.args();
      args.workspace = workspace.data();
      args.workspace_bytes = workspace.size();
      ASSERT_EQ(omni_prepare(plan.get(), &args), OMNI_OK);
      const bool tail = n < 64;
      const auto& tg4 = static_cast<const Tg4Plan&>(*plan);
      const LinearCodeSet::Entry& entry = tg4.code_for(1).entry(1, tail);
      const WorkspaceLayout layout = tg4.code_for(1).workspace(1, tg4.config());
      LinearTile tile{};
      tile.codes = problem.codes.data();
      tile.scales = problem.scales.data();
      tile.scale_stride = n * 2 * (shape.scale_type == OMNI_DTYPE_F32 ? 4 : 2);
      tile.x = workspace.data();
      tile.sums = reinterpret_cast<const float*>(workspace.data() + layout.sums(1, 0));
      tile.y = problem.y.data();
      tile.ldy = n * 2;
      tile.channels = tail ? (uint64_t{1} << n) - 1 : ~uint64_t{0};
      tile.blocks = tail ? 1 : n / 64;
      tile.config = &entry.config;
      for (const unsigned mode : {0x1F80U, 0x1F80U | 0x8040U}) {  // IEEE defaults; FTZ and DAZ
        const unsigned before = _mm_getcsr();
        _mm_setcsr(mode);
        const std::string broken = AbiTrampoline::call(entry.run, static_cast<const LinearTile*>(&tile));
        _mm_setcsr(before);
        EXPECT_EQ(broken, "") << row.name << " n=" << n;
      }
    }
  }
}

TEST(LinearAbi, EveryPanelKernelKeepsTheCallersState) {
  for (const KernelRow& row : registry()) {
    if (row.op != Op::kGemm || row.weights != OMNI_FORMAT_TG4 || row.numerics == Numerics::kFast || !row_runs_here(row)) continue;
    const PanelKernel* const panel = row.as<Op::kGemm>().panel;
    if (panel == nullptr) continue;
    for (const int64_t n : {64, 48}) {
      LinearShape shape;
      shape.n = n;
      shape.k = kPanelInputs;
      shape.group = 64;
      shape.m = panel->from_rows;
      shape.numerics = static_cast<omni_numerics>(row.numerics);
      shape.x_type = row.activation;
      shape.scale_type = row.activation;
      shape.y_type = OMNI_DTYPE_BF16;
      LinearCase problem(shape, 5);
      const PlanPointer plan = make_plan(problem, row.name.data());
      ASSERT_NE(plan, nullptr);
      GuardedBuffer workspace = make_workspace(*plan, shape.m, Flush::kBack), scratch = make_scratch(*plan, shape.m, Flush::kBack);
      omni_linear_args args = problem.args();
      args.workspace = workspace.data();
      args.workspace_bytes = workspace.size();
      ASSERT_EQ(omni_prepare(plan.get(), &args), OMNI_OK);
      const LinearCodeSet& code = static_cast<const Tg4Plan&>(*plan).code_for(shape.m);
      const RowTiles tiles = code.tiles(shape.m);
      const WorkspaceLayout layout = code.workspace(shape.m, static_cast<const Tg4Plan&>(*plan).config());
      PanelCall call{};
      call.tile.codes = problem.codes.data();
      call.tile.scales = problem.scales.data();
      call.tile.scale_stride = n * 2 * (shape.scale_type == OMNI_DTYPE_F32 ? 4 : 2);
      call.tile.x = workspace.data();
      call.tile.sums = reinterpret_cast<const float*>(workspace.data() + layout.sums(shape.m, 0));
      call.tile.y = problem.y.data();
      call.tile.ldy = n * 2;
      call.tile.channels = n < 64 ? (uint64_t{1} << n) - 1 : ~uint64_t{0};
      call.large_tiles = tiles.large;
      call.small_tiles = tiles.tiles - tiles.large;
      call.small_sums = reinterpret_cast<const float*>(workspace.data() + layout.sums(shape.m, tiles.large * tiles.largest()));
      call.sums_row_bytes = 2 * 4;
      call.segments = 2;
      call.segment_inputs = call.last_segment_inputs = 64;
      call.inputs = kPanelInputs;
      call.finish_rows = shape.m;
      call.panel = scratch.as<float>();
      call.group_scales = call.panel + kPanelInputs * kBlockChannels;
      call.c = call.group_scales + kPanelSegments * 2 * kBlockChannels;
      call.first = call.begins_group = call.ends_group = 1;
      for (const unsigned mode : {0x1F80U, 0x1F80U | 0x8040U}) {
        const unsigned before = _mm_getcsr();
        _mm_setcsr(mode);
        const std::string broken = AbiTrampoline::call(code.panel(tiles.largest(), n < 64), static_cast<const PanelCall*>(&call));
        _mm_setcsr(before);
        EXPECT_EQ(broken, "") << row.name << " n=" << n;
      }
      code.panel(tiles.largest(), n < 64)(&call);
      EXPECT_EQ(first_difference(problem, problem.expected()), "") << row.name << " n=" << n;
    }
  }
}

}  // namespace
}  // namespace okl::test
