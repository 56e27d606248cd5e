// SPDX-License-Identifier: Apache-2.0
// The entries of dense convolution: what they refuse, and which row is chosen.
#include "kernels/conv/conv_case_for_test.h"
#include "kernels/dispatch/select_linear.h"
#include "tests/support/threads.h"

namespace okl::test {
namespace {

TEST(Conv1dArguments, BadQueriesAreRefused) {
  ConvShape shape;
  ConvCase problem(shape, 1);
  omni_plan* made = nullptr;
  const auto select = [&](const auto& change) {
    omni_conv1d_query query = problem.query(nullptr);
    change(query);
    const omni_status status = omni_conv1d_select(&query, &made);
    EXPECT_NE(std::string(omni_last_error()), "");
    return status;
  };
  const omni_conv1d_query good = problem.query(nullptr);
  EXPECT_EQ(omni_conv1d_select(nullptr, &made), OMNI_ERR_NULL);
  EXPECT_EQ(omni_conv1d_select(&good, nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(select([](auto& q) { q.size = 8; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(select([](auto& q) { q.x_type = OMNI_DTYPE_S8; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.y_type = OMNI_DTYPE_NONE; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.residual_type = OMNI_DTYPE_F32; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.epilogue = OMNI_EPILOGUE_RESIDUAL; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.epilogue = 64; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.reserved = 1; }), OMNI_ERR_TYPE);
  EXPECT_EQ(select([](auto& q) { q.inputs = 0; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.taps = 0; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.taps = 65, q.inputs = 3; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.inputs = 65; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.dilation = 0; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.stride = 0; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.max_m = 0; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.max_m = OMNI_LINEAR_MOST_ROWS + 1; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(select([](auto& q) { q.weights.version = 99; }), OMNI_ERR_LAYOUT);
  EXPECT_EQ(select([](auto& q) { q.kernel = "conv1d_dense"; }), OMNI_ERR_UNKNOWN_NAME);
  EXPECT_EQ(select([](auto& q) { q.kernel = "gemm_dense_f32_w32_4x64_portable"; }), OMNI_ERR_NO_KERNEL);
  EXPECT_EQ(select([](auto& q) { q.max_isa = "mmx"; }), OMNI_ERR_UNKNOWN_NAME);
  EXPECT_EQ(
      select([](auto& q) { EXPECT_EQ(omni_layout_init(&q.weights, OMNI_FORMAT_W8S, 80, 192, 192, OMNI_DTYPE_F32), OMNI_OK); }),
      OMNI_ERR_LAYOUT);
  const auto halves = [&](omni_conv1d_query& q) {
    q.x_type = OMNI_DTYPE_BF16;
    EXPECT_EQ(omni_layout_init(&q.weights, OMNI_FORMAT_W16, 80, 195, 195, OMNI_DTYPE_NONE), OMNI_OK);
    q.inputs = 65;
  };
  EXPECT_EQ(select([&](auto& q) { halves(q); }), OMNI_ERR_LAYOUT) << "not scrubbed";
  EXPECT_EQ(select([&](auto& q) { halves(q), q.weights.flags |= OMNI_LAYOUT_SCRUBBED; }), OMNI_ERR_SHAPE) << "odd inputs";
  EXPECT_EQ(select([&](auto& q) {
              EXPECT_EQ(omni_layout_init(&q.weights, OMNI_FORMAT_W32, 1, int64_t{2} << 30, 1U << 31, OMNI_DTYPE_NONE), OMNI_OK);
              q.taps = 2, q.inputs = 1U << 30, q.stride = q.dilation = ~0U, q.max_m = OMNI_LINEAR_MOST_ROWS;
            }),
            OMNI_ERR_OVERFLOW);
  EXPECT_EQ(made, nullptr);
}

TEST(Conv1dArguments, BadRunsWriteNothing) {
  ConvShape shape;
  shape.epilogue = OMNI_EPILOGUE_BIAS | OMNI_EPILOGUE_RESIDUAL;
  shape.residual_type = OMNI_DTYPE_F32;
  ConvCase problem(shape, 1);
  omni_conv1d_query query = problem.query(nullptr);
  query.max_threads = 2;
  const OwnedPlan plan = make_plan(query);
  GuardedBuffer workspace = make_conv_workspace(plan.get(), shape.m, Flush::kBack);
  const omni_parallel parallel = backwards(2);
  const auto run = [&](const auto& change) {
    omni_conv1d_args args = problem.args();
    args.workspace = workspace.data();
    args.workspace_bytes = workspace.size();
    args.parallel = &parallel;
    change(args);
    const omni_status status = omni_conv1d_run(plan.get(), &args);
    EXPECT_TRUE(status == OMNI_OK || omni_last_error()[0] != '\0');
    for (size_t i = 0; i < problem.y.size(); ++i) EXPECT_EQ(problem.y.data()[i], 0x5A);
    return status;
  };
  const auto odd = [](auto* pointer) { return reinterpret_cast<decltype(pointer)>(reinterpret_cast<uintptr_t>(pointer) + 2); };
  omni_conv1d_args whole = problem.args();
  EXPECT_EQ(omni_conv1d_run(nullptr, &whole), OMNI_ERR_NULL);
  EXPECT_EQ(omni_conv1d_run(plan.get(), nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(run([](auto& a) { a.size = 8; }), OMNI_ERR_STRUCT_SIZE);
  EXPECT_EQ(run([](auto& a) { a.m = 8; }), OMNI_ERR_SHAPE);
  EXPECT_EQ(run([](auto& a) { a.x = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run([](auto& a) { a.codes = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run([](auto& a) { a.bias = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run([](auto& a) { a.residual = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run([](auto& a) { a.y = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run([](auto& a) { a.workspace = nullptr; }), OMNI_ERR_NULL);
  EXPECT_EQ(run([&](auto& a) { a.x = odd(a.x); }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run([&](auto& a) { a.codes = odd(a.codes); }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run([&](auto& a) { a.bias = odd(a.bias); }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run([&](auto& a) { a.workspace = odd(a.workspace); }), OMNI_ERR_ALIGNMENT);
  EXPECT_EQ(run([](auto& a) { a.ldx = 63; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(run([](auto& a) { a.ldy = 79; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(run([](auto& a) { a.ld_residual = 79; }), OMNI_ERR_STRIDE);
  EXPECT_EQ(run([](auto& a) { a.ldx = INT64_MAX / 8; }), OMNI_ERR_OVERFLOW);
  // Seven output rows would fit, but they read nine rows of x.
  EXPECT_EQ(run([](auto& a) { a.ldx = INT64_MAX / 4 / 8; }), OMNI_ERR_OVERFLOW);
  EXPECT_EQ(run([](auto& a) { --a.codes_bytes; }), OMNI_ERR_BUFFER_SIZE);
  EXPECT_EQ(run([](auto& a) { --a.workspace_bytes; }), OMNI_ERR_BUFFER_SIZE);
  EXPECT_EQ(run([](auto& a) { a.m = 0, a.x = a.y = nullptr; }), OMNI_OK);
  size_t bytes = 0;
  EXPECT_EQ(omni_conv1d_workspace_size(plan.get(), 8, &bytes), OMNI_ERR_SHAPE);
  EXPECT_EQ(omni_conv1d_workspace_size(plan.get(), 1, nullptr), OMNI_ERR_NULL);
  EXPECT_EQ(omni_workspace_size(plan.get(), 1, &bytes), OMNI_ERR_TYPE);
}

TEST(Conv1dSelection, BestRowOfEachMachine) {
  const auto chosen = [](IsaMask isa, omni_dtype x, omni_format weights, uint32_t traits = 0, bool jit = true) {
    LinearRequest request;
    request.op = Op::kConv1d;
    request.numerics = Numerics::kDense;
    request.x_type = x;
    request.weights = weights;
    return std::string(select_linear(request, {isa, traits, jit, jit ? "" : "denied"}).row->name);
  };
  EXPECT_EQ(chosen(0, OMNI_DTYPE_F32, OMNI_FORMAT_W32), "conv1d_dense_f32_w32_4x64_portable");
  EXPECT_EQ(chosen(kIsaAvx2Tier, OMNI_DTYPE_F32, OMNI_FORMAT_W16), "conv1d_dense_f32_w16_6x16_avx2");
  EXPECT_EQ(chosen(kIsaAvx512Tier, OMNI_DTYPE_F32, OMNI_FORMAT_W32), "conv1d_dense_f32_w32_6x64_avx512f");
  EXPECT_EQ(chosen(kIsaAvx512Bf16Tier, OMNI_DTYPE_BF16, OMNI_FORMAT_W16), "conv1d_dense_bf16_w16_6x64_avx512bf16");
  EXPECT_EQ(chosen(kIsaAvx512Bf16Tier, OMNI_DTYPE_BF16, OMNI_FORMAT_W16, OMNI_TRAIT_SLOW_BF16_DOT),
            "conv1d_dense_bf16_w16_6x64_avx512f");
  EXPECT_EQ(chosen(kIsaAvx512Tier, OMNI_DTYPE_F32, OMNI_FORMAT_W32, 0, false), "conv1d_dense_f32_w32_4x64_twinavx512");
}

}  // namespace
}  // namespace okl::test
