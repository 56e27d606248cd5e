// SPDX-License-Identifier: Apache-2.0
// A random convolution with its operands between guard pages, and the oracle: omni/conv1d.h written down a second time, scalar and
// slow, sharing nothing with the kernels.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "tests/support/guarded_buffer.h"
#include "tests/support/row_kernels.h"

namespace okl::test {

struct ConvShape {
  int64_t n = 80;
  uint32_t inputs = 64, taps = 3, dilation = 1, stride = 1, m = 7;
  omni_format weights = OMNI_FORMAT_W32;
  uint16_t x_type = OMNI_DTYPE_F32, y_type = OMNI_DTYPE_F32, residual_type = OMNI_DTYPE_NONE;
  uint32_t epilogue = OMNI_EPILOGUE_NONE;
  int64_t x_padding = 0, y_padding = 0;  // extra columns: NaN in x, a canary in y
  Flush flush = Flush::kBack;

  int64_t k() const { return int64_t{taps} * inputs; }
  int64_t input_rows() const { return int64_t{m - 1} * stride + int64_t{taps - 1} * dilation + 1; }
  bool pairs() const { return x_type == OMNI_DTYPE_BF16 && weights == OMNI_FORMAT_W16; }
  bool is_served() const { return !pairs() || inputs % 2 == 0 || taps == 1; }
  std::string text() const {
    char out[200];
    std::snprintf(out, sizeof out, "n=%ld c=%u taps=%u dil=%u stride=%u m=%u w=%d x=%d y=%d e=%u r=%d flush=%d",
                  static_cast<long>(n), inputs, taps, dilation, stride, m, weights, x_type, y_type, epilogue, residual_type,
                  static_cast<int>(flush));
    return out;
  }
};

class ConvCase {
 public:
  ConvCase(const ConvShape& shape_in, uint64_t seed) : shape(shape_in), random_(seed) {
    const auto k = static_cast<uint32_t>(shape.k());
    EXPECT_EQ(omni_layout_init(&layout, shape.weights, shape.n, shape.k(), k, OMNI_DTYPE_NONE), OMNI_OK) << omni_last_error();
    if (shape.pairs()) layout.flags |= OMNI_LAYOUT_SCRUBBED;
    for (int64_t i = 0; i < shape.n * shape.k(); ++i) {
      weights.push_back(shape.weights == OMNI_FORMAT_W16 ? bf16_to_float(bf16_round_ieee(small())) : small());
    }
    pack();
    // The last row ends with its last channel.
    x = make(shape.input_rows() * ldx() - shape.x_padding, shape.x_type, 0xFF);
    for (int64_t row = 0; row < shape.input_rows(); ++row) {
      for (int64_t c = 0; c < shape.inputs; ++c) put(x.data(), shape.x_type, row * ldx() + c, small());
    }
    y = make(int64_t{shape.m} * ldy(), shape.y_type, 0x5A);
    if (shape.epilogue & OMNI_EPILOGUE_BIAS) {
      bias = make(shape.n, OMNI_DTYPE_F32, 0);
      for (int64_t i = 0; i < shape.n; ++i) bias.as<float>()[i] = small();
    }
    if (shape.epilogue & OMNI_EPILOGUE_RESIDUAL) {
      residual = make(int64_t{shape.m} * ldy(), shape.residual_type, 0xFF);
      for (int64_t row = 0; row < shape.m; ++row) {
        for (int64_t i = 0; i < shape.n; ++i) put(residual.data(), shape.residual_type, row * ldy() + i, small());
      }
    }
  }

  int64_t ldx() const { return shape.inputs + shape.x_padding; }
  int64_t ldy() const { return shape.n + shape.y_padding; }

  omni_conv1d_query query(const char* kernel) const {
    omni_conv1d_query q{};
    q.size = sizeof q;
    q.x_type = shape.x_type;
    q.y_type = shape.y_type;
    q.residual_type = shape.residual_type;
    q.epilogue = shape.epilogue;
    q.inputs = shape.inputs;
    q.taps = shape.taps;
    q.dilation = shape.dilation;
    q.stride = shape.stride;
    q.max_m = shape.m;
    q.weights = layout;
    q.kernel = kernel;
    return q;
  }
  omni_conv1d_args args() {
    omni_conv1d_args a{};
    a.size = sizeof a;
    a.m = shape.m;
    a.x = x.data();
    a.ldx = ldx();
    a.codes = codes.data();
    a.codes_bytes = codes.size();
    a.bias = shape.epilogue & OMNI_EPILOGUE_BIAS ? bias.as<float>() : nullptr;
    a.residual = shape.epilogue & OMNI_EPILOGUE_RESIDUAL ? residual.data() : nullptr;
    a.ld_residual = ldy();
    a.y = y.data();
    a.ldy = ldy();
    return a;
  }

  // What the contract says, as stored bits: rows by channels.
  std::vector<uint32_t> expected() const {
    std::vector<uint32_t> bits;
    for (int64_t row = 0; row < shape.m; ++row) {
      for (int64_t o = 0; o < shape.n; ++o) bits.push_back(stored(row, o, sum(row, o)));
    }
    return bits;
  }
  uint32_t actual(int64_t row, int64_t channel) const { return get_bits(y.data(), shape.y_type, row * ldy() + channel); }
  void clear_y() { std::memset(y.data(), 0x5A, y.size()); }

  // The first element that differs, or "".
  std::string difference(const std::vector<uint32_t>& wanted) const {
    for (int64_t row = 0; row < shape.m; ++row) {
      for (int64_t o = 0; o < shape.n; ++o) {
        const uint32_t right = wanted[static_cast<size_t>(row * shape.n + o)];
        if (actual(row, o) == right) continue;
        char text[120];
        std::snprintf(text, sizeof text, "row %ld channel %ld: 0x%08x, expected 0x%08x", static_cast<long>(row),
                      static_cast<long>(o), actual(row, o), right);
        return text;
      }
      const auto bytes = static_cast<int64_t>(bytes_of_type(shape.y_type));
      for (int64_t i = (row * ldy() + shape.n) * bytes; i < (row + 1) * ldy() * bytes; ++i) {
        if (y.data()[i] != 0x5A) return "padding of y was written";
      }
    }
    return y.intact() ? "" : "memory around y was written";
  }
  float x_at(int64_t row, int64_t channel) const { return get(x.data(), shape.x_type, row * ldx() + channel); }
  void set_x(int64_t row, int64_t channel, float value) { put(x.data(), shape.x_type, row * ldx() + channel, value); }
  float weight(int64_t o, int64_t i) const { return weights[static_cast<size_t>(o * shape.k() + i)]; }

  const ConvShape shape;
  omni_layout layout{};
  std::vector<float> weights;  // [n][k]
  GuardedBuffer codes{0}, x{0}, y{0}, bias{0}, residual{0};

 private:
  GuardedBuffer make(int64_t elements, uint16_t type, uint8_t fill) const {
    const size_t bytes = bytes_of_type(type);
    return GuardedBuffer(static_cast<size_t>(elements) * bytes, shape.flush, bytes, fill);
  }
  float small() { return std::uniform_real_distribution<float>(-2.0F, 2.0F)(random_); }

  // Padding of inputs and of channels is NaN.
  void pack() {
    size_t bytes = 0;
    EXPECT_EQ(omni_packed_size(&layout, &bytes), OMNI_OK);
    codes = GuardedBuffer(bytes, shape.flush, 16, 0xFF);
    const int64_t k = shape.k(), padded_n = (shape.n + 15) / 16 * 16, padded_k = (k + 31) / 32 * 32;
    for (int64_t o = 0; o < shape.n; ++o) {
      const int64_t first = o / 64 * 64, width = std::min<int64_t>(64, padded_n - first), c = o - first;
      for (int64_t i = 0; i < k; ++i) {
        if (shape.weights == OMNI_FORMAT_W16) {
          codes.as<uint16_t>()[first * padded_k + (i / 2 * width + c) * 2 + i % 2] =
              static_cast<uint16_t>(std::bit_cast<uint32_t>(weight(o, i)) >> 16);
        } else {
          codes.as<float>()[first * k + i * width + c] = weight(o, i);
        }
      }
    }
  }

  float input(int64_t row, int64_t i) const {
    const int64_t tap = i / shape.inputs, channel = i % shape.inputs;
    const float value = x_at(row * shape.stride + tap * shape.dilation, channel);
    return shape.pairs() && std::fabs(value) < 0x1p-56F ? 0.0F : value;
  }
  float sum(int64_t row, int64_t o) const {
    float c = 0.0F;
    const int64_t k = shape.k();
    for (int64_t i = 0; !shape.pairs() && i < k; ++i) c = std::fma(input(row, i), weight(o, i), c);
    for (int64_t i = 0; shape.pairs() && i < k; i += 2) {
      if (i + 1 < k) c = std::fma(input(row, i + 1), weight(o, i + 1), c);
      c = std::fma(input(row, i), weight(o, i), c);
    }
    return c;
  }
  uint32_t stored(int64_t row, int64_t o, float c) const {
    if (shape.epilogue & OMNI_EPILOGUE_BIAS) c = c + bias.as<float>()[o];
    if (shape.epilogue & OMNI_EPILOGUE_RESIDUAL) c = get(residual.data(), shape.residual_type, row * ldy() + o) + c;
    if (shape.y_type == OMNI_DTYPE_F32) return std::isnan(c) ? 0x7FC00000 : std::bit_cast<uint32_t>(c);
    return bf16_round_group(c);
  }

  std::mt19937_64 random_;
};

inline OwnedPlan make_plan(const omni_conv1d_query& query) {
  omni_plan* plan = nullptr;
  EXPECT_EQ(omni_conv1d_select(&query, &plan), OMNI_OK) << omni_last_error();
  return OwnedPlan(plan);
}

// Workspace between guards, poisoned with NaN.
inline GuardedBuffer make_conv_workspace(const omni_plan* plan, uint32_t m, Flush flush) {
  size_t bytes = 0;
  EXPECT_EQ(omni_conv1d_workspace_size(plan, m, &bytes), OMNI_OK);
  return GuardedBuffer(bytes, flush, 64, 0xFF);
}

// Runs the whole case on `kernel`.
inline void run_conv(ConvCase& problem, const char* kernel, const omni_parallel& parallel) {
  omni_conv1d_query query = problem.query(kernel);
  query.max_threads = parallel.threads;
  const OwnedPlan plan = make_plan(query);
  if (plan == nullptr) return;
  GuardedBuffer workspace = make_conv_workspace(plan.get(), problem.shape.m, problem.shape.flush);
  omni_conv1d_args args = problem.args();
  args.workspace = workspace.data();
  args.workspace_bytes = workspace.size();
  args.parallel = &parallel;
  problem.clear_y();
  ASSERT_EQ(omni_conv1d_run(plan.get(), &args), OMNI_OK) << omni_last_error();
  EXPECT_TRUE(workspace.intact()) << problem.shape.text();
}

}  // namespace okl::test
