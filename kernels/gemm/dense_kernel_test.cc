// SPDX-License-Identifier: Apache-2.0
// Dense kernels as the plan sees them: which name is chosen on which machine, and that generated code keeps the caller's state.
#include <gtest/gtest.h>
#include <xmmintrin.h>

#include "kernels/gemm/dense_plan.h"
#include "tests/support/abi_check.h"
#include "tests/support/dense_case.h"

namespace okl::test {
namespace {

std::string chosen(IsaMask isa, bool many, omni_format weights, omni_dtype x, uint32_t traits = 0, bool jit = true) {
  LinearRequest request;
  request.numerics = weights == OMNI_FORMAT_W8S ? Numerics::kGroup : Numerics::kDense;
  request.x_type = x;
  request.weights = weights;
  request.many_rows = many;
  const Selection selection = select_linear(request, {isa, traits, jit, jit ? "" : "denied"});
  return selection.row == nullptr ? "" : std::string(selection.row->name);
}

TEST(DenseSelection, BestRowOfEachMachine) {
  constexpr omni_dtype kBf16 = OMNI_DTYPE_BF16, kF32 = OMNI_DTYPE_F32;
  EXPECT_EQ(chosen(0, false, OMNI_FORMAT_W16, kBf16), "gemm_dense_bf16_w16_4x64_portable");
  EXPECT_EQ(chosen(kIsaAvx2Tier, false, OMNI_FORMAT_W16, kBf16), "gemv_dense_bf16_w16_1x64_avx2");
  EXPECT_EQ(chosen(kIsaAvx2Tier, true, OMNI_FORMAT_W8S, kBf16), "gemm_group_bf16_w8s_6x16_avx2");
  EXPECT_EQ(chosen(kIsaAvx512Tier, true, OMNI_FORMAT_W16, kBf16), "gemm_dense_bf16_w16_6x64_avx512f");
  EXPECT_EQ(chosen(kIsaAvx512Bf16Tier, true, OMNI_FORMAT_W16, kBf16), "gemm_dense_bf16_w16_6x64_avx512bf16");
  EXPECT_EQ(chosen(kIsaAvx512Bf16Tier, true, OMNI_FORMAT_W8S, kBf16), "gemm_group_bf16_w8s_6x64_avx512bf16");
  EXPECT_EQ(chosen(kIsaAvx512Bf16Tier, false, OMNI_FORMAT_W8S, kBf16), "gemv_group_bf16_w8s_1x64_avx512f");
  EXPECT_EQ(chosen(kIsaAvx512Bf16Tier, true, OMNI_FORMAT_W16, kF32), "gemm_dense_f32_w16_6x64_avx512f");
  EXPECT_EQ(chosen(kIsaAvx512Bf16Tier, false, OMNI_FORMAT_W32, kBf16), "gemv_dense_bf16_w32_1x64_avx512f");
}

TEST(DenseSelection, SlowBf16DotLosesToFma) {
  constexpr uint32_t kSlow = OMNI_TRAIT_SLOW_BF16_DOT;
  EXPECT_EQ(chosen(kIsaAvx512Bf16Tier, false, OMNI_FORMAT_W16, OMNI_DTYPE_BF16, kSlow), "gemv_dense_bf16_w16_1x64_avx512f");
  EXPECT_EQ(chosen(kIsaAvx512Bf16Tier, true, OMNI_FORMAT_W16, OMNI_DTYPE_BF16, kSlow), "gemm_dense_bf16_w16_6x64_avx512f");
  EXPECT_EQ(chosen(kIsaAvx512Bf16Tier, true, OMNI_FORMAT_W8S, OMNI_DTYPE_BF16, kSlow), "gemm_group_bf16_w8s_6x64_avx512f");
}

TEST(DenseSelection, CompiledTwinsServeWithoutExecutableMemory) {
  EXPECT_EQ(chosen(kIsaAvx512Tier, true, OMNI_FORMAT_W32, OMNI_DTYPE_F32, 0, false), "gemm_dense_f32_w32_4x64_twinavx512");
  EXPECT_EQ(chosen(kIsaAvx2Tier, true, OMNI_FORMAT_W8S, OMNI_DTYPE_BF16, 0, false), "gemm_group_bf16_w8s_4x64_twinavx2");
}

TEST(DenseTiles, AreBalancedWithTheLargerOnesFirst) {
  for (uint32_t m = 1; m < 200; ++m) {
    const DenseTiles tiles(m, 6);
    uint32_t next = 0;
    for (uint32_t tile = 0; tile < tiles.tiles; ++tile) {
      EXPECT_EQ(tiles.first(tile), next);
      EXPECT_LE(tiles.rows(tile), tile == 0 ? 6 : tiles.rows(tile - 1));
      EXPECT_GE(tiles.rows(tile) + 1, tiles.rows(0));
      next += tiles.rows(tile);
    }
    EXPECT_EQ(next, m);
    EXPECT_EQ(tiles.first(tiles.tiles), m);
  }
}

// One tile of a plan, called with canaries in the registers.
void expect_state_kept(const KernelRow& row, int64_t n, uint32_t m, DenseRole role, uint32_t group) {
  DenseShape shape;
  shape.n = n;
  shape.k = 160;
  shape.m = m;
  shape.weights = row.weights;
  shape.x_type = row.activation;
  shape.group = group;
  shape.y_type = OMNI_DTYPE_BF16;
  DenseCase problem(shape, 5);
  const PlanPointer plan = make_plan(problem, row.name.data());
  ASSERT_NE(plan, nullptr);
  GuardedBuffer workspace = make_workspace(*plan, m, Flush::kBack);
  omni_linear_args args = problem.args();
  args.workspace = workspace.data();
  args.workspace_bytes = workspace.size();
  ASSERT_EQ(omni_prepare(plan.get(), &args), OMNI_OK);
  const auto& dense = static_cast<const DensePlan&>(*plan);
  const bool tail = n < 64;
  const DenseCodeSet::Entry& entry = dense.code_for(m).entry(role, tail, dense.tiles_of(m).rows(0));
  ASSERT_NE(entry.run, nullptr) << row.name;
  GuardedBuffer panel(size_t{256} * 64 * 4, Flush::kBack, 64, 0), sums(6 * 64 * 4, Flush::kBack, 64, 0);
  const DenseRows rows = dense.rows_of(m);
  DenseTile tile{};
  tile.weights = tile.ahead = tile.ahead_end = problem.codes.data();
  tile.panel = panel.data();
  tile.x = workspace.data();
  tile.x_row = rows.row_bytes();
  tile.inputs = std::min(rows.chunk, shape.k);
  tile.tiles = 1;
  tile.sums = sums.as<float>();
  tile.scales = problem.scales.data();
  tile.scale_stride = n * 4;
  tile.y = problem.y.data();
  tile.ldy = n * 2;
  tile.channels = tail ? (uint64_t{1} << n) - 1 : ~uint64_t{0};
  tile.config = &entry.config;
  for (const unsigned mode : {0x1F80U, 0x1F80U | 0x8040U}) {  // IEEE defaults; FTZ and DAZ
    for (const uint32_t last : {0U, 1U}) {
      tile.first = 1 - last;
      tile.last = last;
      const unsigned before = _mm_getcsr();
      _mm_setcsr(mode);
      const std::string broken = AbiTrampoline::call(entry.run, static_cast<const DenseTile*>(&tile));
      _mm_setcsr(before);
      EXPECT_EQ(broken, "") << row.name << " n=" << n << " m=" << m;
    }
  }
}

TEST(DenseAbi, EveryRowKeepsTheCallersState) {
  for (const KernelRow& row : registry()) {
    if (row.op != Op::kGemv && row.op != Op::kGemm) continue;
    if (row.numerics != Numerics::kDense && !(row.numerics == Numerics::kGroup && row.weights == OMNI_FORMAT_W8S)) continue;
    if (!row_runs_here(row)) continue;  // reported by dense_test
    for (const int64_t n : {64, 48}) {
      for (const uint32_t group : {0U, 32U}) {
        if (group != 0 && row.weights != OMNI_FORMAT_W8S) continue;
        expect_state_kept(row, n, 1, DenseRole::kAlone, group);
        if (row.op == Op::kGemv) continue;
        expect_state_kept(row, n, 4, DenseRole::kAlone, group);
        expect_state_kept(row, n, 12, DenseRole::kFirst, group);
        expect_state_kept(row, n, 12, DenseRole::kOther, group);
      }
    }
  }
}

}  // namespace
}  // namespace okl::test
