// SPDX-License-Identifier: Apache-2.0
// Every row of dense convolution against the contract, bit for bit.
#include <algorithm>
#include <functional>

#include "kernels/conv/conv_case_for_test.h"
#include "tests/support/threads.h"

namespace okl::test {
namespace {

class Conv1dRow : public KernelTest {
 protected:
  ConvShape base() const {
    ConvShape shape;
    shape.weights = row().weights;
    shape.x_type = static_cast<uint16_t>(row().activation);
    return shape;
  }
  void check(const ConvShape& shape, uint64_t seed) {
    if (!shape.is_served()) return;
    ConvCase problem(shape, seed);
    run_conv(problem, kernel(), backwards(2));
    ASSERT_EQ(problem.difference(problem.expected()), "") << kernel() << " " << shape.text();
  }
};

INSTANTIATE_TEST_SUITE_P(Registry, Conv1dRow, testing::ValuesIn(kernels_of(Op::kConv1d)), kernel_test_name);

TEST_P(Conv1dRow, EveryOutputTail) {
  for (const int64_t n : {1, 2, 16, 17, 48, 64, 65, 96, 100, 112, 130}) {
    for (const Flush flush : {Flush::kFront, Flush::kBack}) {
      for (const uint32_t m : {1U, 5U, 13U}) {
        ConvShape shape = base();
        shape.n = n;
        shape.inputs = 34;
        shape.m = m;
        shape.flush = flush;
        shape.x_padding = n % 4;
        shape.y_padding = n % 3;
        check(shape, static_cast<uint64_t>(n));
      }
    }
  }
}

TEST_P(Conv1dRow, EveryNumberOfInputs) {
  for (const uint32_t inputs : {1U, 2U, 3U, 7U, 16U, 31U, 32U, 33U, 64U, 96U, 127U, 128U, 130U, 192U, 258U, 261U}) {
    for (const uint32_t taps : {1U, 2U, 7U}) {
      for (const uint32_t m : {1U, 3U, 9U}) {
        ConvShape shape = base();
        shape.n = 48;
        shape.inputs = inputs;
        shape.taps = taps;
        shape.m = m;
        shape.flush = inputs % 3 == 0 ? Flush::kFront : Flush::kBack;
        shape.x_padding = inputs % 5;
        check(shape, inputs);
      }
    }
  }
}

TEST_P(Conv1dRow, EveryDilationAndStride) {
  for (const uint32_t inputs : {1U, 4U, 40U}) {
    for (const uint32_t dilation : {1U, 3U, 9U}) {
      for (const uint32_t stride : {1U, 2U, 5U, 8U}) {
        ConvShape shape = base();
        shape.inputs = inputs;
        shape.taps = 1 + 2 * stride;
        shape.dilation = dilation;
        shape.stride = stride;
        shape.m = 8;
        shape.flush = stride % 2 == 0 ? Flush::kFront : Flush::kBack;
        check(shape, dilation * 10 + stride);
      }
    }
  }
}

// Tiles of every size, parts of rows, several chunks.
TEST_P(Conv1dRow, EveryRowCount) {
  for (const uint32_t m : {1U, 2U, 3U, 4U, 5U, 6U, 7U, 8U, 11U, 12U, 13U, 24U, 25U, 31U, 37U, 60U, 193U, 400U}) {
    ConvShape shape = base();
    shape.n = m < 60 ? 144 : 20;
    shape.inputs = m < 60 ? 140 : 36;
    shape.m = m;
    check(shape, m);
  }
}

// Parts of as many tiles as there may be. One task leaves the workspace no room behind it.
TEST_P(Conv1dRow, FullParts) {
  ConvShape shape = base();
  shape.n = 70;
  shape.inputs = 140;
  shape.taps = 2;
  shape.m = 2 * 32 * row().mr;
  shape.epilogue = OMNI_EPILOGUE_RESIDUAL;
  shape.residual_type = OMNI_DTYPE_F32;
  ConvCase problem(shape, 17);
  run_conv(problem, kernel(), backwards(1));
  ASSERT_EQ(problem.difference(problem.expected()), "") << kernel();
}

// Tasks may run at once: each writes sums in scratch of its own, of which the workspace has eight for two threads.
TEST_P(Conv1dRow, EveryTaskHasItsScratch) {
  ConvShape shape = base();
  shape.n = 128;
  shape.inputs = 140;
  shape.m = 32 * row().mr;
  ConvCase problem(shape, 18);
  const auto workspace_for = [&](uint32_t threads, OwnedPlan* plan) {
    omni_conv1d_query query = problem.query(kernel());
    query.max_threads = threads;
    *plan = make_plan(query);
    return make_conv_workspace(plan->get(), shape.m, Flush::kBack);
  };
  OwnedPlan plan;
  const size_t one = workspace_for(1, &plan).size();
  GuardedBuffer workspace = workspace_for(2, &plan);
  const size_t scratch = (workspace.size() - one) / 7, prepared = one - scratch;
  const omni_parallel parallel = backwards(2);
  omni_conv1d_args args = problem.args();
  args.workspace = workspace.data();
  args.workspace_bytes = workspace.size();
  args.parallel = &parallel;
  ASSERT_EQ(omni_conv1d_run(plan.get(), &args), OMNI_OK) << omni_last_error();
  for (size_t task = 0; task < 8; ++task) {
    const uint8_t* const slot = workspace.data() + prepared + task * scratch;
    EXPECT_TRUE(std::any_of(slot, slot + scratch, [](uint8_t byte) { return byte != 0xFF; })) << kernel() << " task " << task;
  }
}

TEST_P(Conv1dRow, EveryTypeAndEpilogue) {
  for (const uint16_t y : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
    for (uint32_t epilogue = 0; epilogue < 4; ++epilogue) {
      for (const uint16_t residual : {OMNI_DTYPE_BF16, OMNI_DTYPE_F32}) {
        const bool has_residual = (epilogue & OMNI_EPILOGUE_RESIDUAL) != 0;
        if (!has_residual && residual == OMNI_DTYPE_F32) continue;
        for (const uint32_t m : {3U, 14U}) {
          ConvShape shape = base();
          shape.n = 87;
          shape.inputs = 50;
          shape.taps = 2;
          shape.m = m;
          shape.y_type = y;
          shape.epilogue = epilogue;
          shape.residual_type = has_residual ? residual : static_cast<uint16_t>(OMNI_DTYPE_NONE);
          shape.y_padding = 3;
          shape.flush = m == 3 ? Flush::kFront : Flush::kBack;
          check(shape, epilogue);
        }
      }
    }
  }
}

TEST_P(Conv1dRow, RandomShapes) {
  std::mt19937_64 random(std::hash<std::string>()(GetParam()));
  const auto pick = [&](int64_t low, int64_t high) { return std::uniform_int_distribution<int64_t>(low, high)(random); };
  for (int i = 0; i < 60; ++i) {
    ConvShape shape = base();
    shape.n = pick(1, 200);
    shape.inputs = static_cast<uint32_t>(pick(1, 150));
    shape.taps = static_cast<uint32_t>(pick(1, 8));
    if (!shape.is_served()) ++shape.inputs;
    shape.dilation = static_cast<uint32_t>(pick(1, 9));
    shape.stride = static_cast<uint32_t>(pick(1, 4));
    shape.m = static_cast<uint32_t>(pick(1, 30));
    shape.y_type = pick(0, 1) == 0 ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32;
    shape.epilogue = static_cast<uint32_t>(pick(0, 3));
    if (shape.epilogue & OMNI_EPILOGUE_RESIDUAL) shape.residual_type = pick(0, 1) == 0 ? OMNI_DTYPE_BF16 : OMNI_DTYPE_F32;
    shape.x_padding = pick(0, 9);
    shape.y_padding = pick(0, 9);
    shape.flush = pick(0, 1) == 0 ? Flush::kFront : Flush::kBack;
    check(shape, static_cast<uint64_t>(i));
    if (HasFatalFailure()) return;
  }
}

// How audio is chunked never shows: any cut of the rows into runs, on any pool, gives the bits of one run.
TEST_P(Conv1dRow, CutsAndThreadsNeverShow) {
  std::mt19937_64 random(3);
  for (const uint32_t inputs : {2U, 96U}) {
    ConvShape shape = base();
    shape.n = 96;
    shape.inputs = inputs;
    shape.taps = 7;
    shape.dilation = 3;
    shape.stride = 2;
    shape.m = 61;
    shape.y_type = OMNI_DTYPE_BF16;
    ConvCase problem(shape, inputs);
    const std::vector<uint32_t> expected = problem.expected();
    for (const uint32_t threads : {1U, 2U, 5U}) {
      run_conv(problem, kernel(), fresh_threads(&threads));
      ASSERT_EQ(problem.difference(expected), "") << kernel() << " threads " << threads;
    }
    const OwnedPlan plan = make_plan(problem.query(kernel()));
    const omni_parallel parallel = backwards(3);
    for (int round = 0; round < 10; ++round) {
      problem.clear_y();
      for (uint32_t first = 0; first < shape.m;) {
        const uint32_t rows = std::min(shape.m - first, 1 + static_cast<uint32_t>(random() % 25));
        GuardedBuffer workspace = make_conv_workspace(plan.get(), rows, Flush::kBack);
        omni_conv1d_args args = problem.args();
        args.m = rows;
        args.x = problem.x.data() + first * shape.stride * static_cast<size_t>(problem.ldx()) * bytes_of_type(shape.x_type);
        args.y = problem.y.as<uint16_t>() + first * problem.ldy();
        args.workspace = workspace.data();
        args.workspace_bytes = workspace.size();
        args.parallel = &parallel;
        ASSERT_EQ(omni_conv1d_run(plan.get(), &args), OMNI_OK) << omni_last_error();
        first += rows;
      }
      ASSERT_EQ(problem.difference(expected), "") << kernel() << " round " << round;
    }
  }
}

// NaN, infinities, subnormals and values about the scrub threshold reach the outputs whose taps read them and no others.
TEST_P(Conv1dRow, EdgeValues) {
  for (const uint32_t inputs : {6U, 64U}) {
    ConvShape shape = base();
    shape.inputs = inputs;
    shape.m = 40;
    shape.dilation = 2;
    ConvCase problem(shape, 9);
    const float edges[] = {0.0F,
                           -0.0F,
                           from_bits(0x7F800000),
                           from_bits(0xFF800000),
                           from_bits(0x7FC12300),
                           0x1p-56F,
                           0x1.8p-57F,
                           -0x1.FEp-57F,
                           from_bits(0x00010000),
                           0x1p-126F,
                           3e38F,
                           -3e38F,
                           0x1p-60F,
                           from_bits(0x1),
                           from_bits(0x80400000)};
    int64_t at = 0;
    for (const float edge : edges) problem.set_x(at * 2 + 1, (at * 5) % inputs, edge), ++at;
    run_conv(problem, kernel(), backwards(2));
    ASSERT_EQ(problem.difference(problem.expected()), "") << kernel() << " " << shape.text();
  }
}

// y[t * s + r] = b + sum over q of W[:, :, r + s * q] x[t - q], W as PyTorch has it: [in][out][kernel]. In double, from the
// definition, against a run with the weights laid out as omni/conv1d.h says.
TEST_P(Conv1dRow, TransposedConvolutionIsACaseOfIt) {
  struct Transposed {
    int64_t stride, taps, inputs, outputs;
  };
  for (const Transposed t : {Transposed{2, 1, 40, 24}, {3, 2, 36, 17}, {8, 2, 64, 12}, {4, 3, 34, 5}}) {
    ConvShape shape = base();
    shape.n = t.stride * t.outputs;
    shape.inputs = static_cast<uint32_t>(t.inputs);
    shape.taps = static_cast<uint32_t>(t.taps);
    shape.m = 9;
    ConvCase problem(shape, 21);
    const int64_t length = t.stride * t.taps;
    std::vector<float> w(static_cast<size_t>(t.inputs * t.outputs * length));
    const auto at = [&](int64_t c, int64_t o, int64_t k) -> float& {
      return w[static_cast<size_t>((c * t.outputs + o) * length + k)];
    };
    for (int64_t r = 0; r < t.stride; ++r) {
      for (int64_t o = 0; o < t.outputs; ++o) {
        for (int64_t j = 0; j < t.taps; ++j) {
          for (int64_t c = 0; c < t.inputs; ++c) {
            at(c, o, r + t.stride * (t.taps - 1 - j)) = problem.weight(r * t.outputs + o, j * t.inputs + c);
          }
        }
      }
    }
    run_conv(problem, kernel(), backwards(2));
    // Row i of a run computes time step t = i + taps - 1 of x.
    for (int64_t time = t.taps - 1; time < shape.input_rows(); ++time) {
      for (int64_t r = 0; r < t.stride; ++r) {
        for (int64_t o = 0; o < t.outputs; ++o) {
          double sum = 0;
          for (int64_t q = 0; q < t.taps; ++q) {
            for (int64_t c = 0; c < t.inputs; ++c) sum += double{at(c, o, r + t.stride * q)} * problem.x_at(time - q, c);
          }
          const float actual = from_bits(problem.actual(time - t.taps + 1, r * t.outputs + o));
          ASSERT_NEAR(actual, sum, 1e-4) << kernel() << " time " << time << " phase " << r << " output " << o;
        }
      }
    }
  }
}

}  // namespace
}  // namespace okl::test
