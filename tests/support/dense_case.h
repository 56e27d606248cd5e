// SPDX-License-Identifier: Apache-2.0
// A random or given problem of the dense family (w16, w32, and w8s in class group) with its operands between guard pages, every
// padding byte NaN or noise, and the oracle: docs/numerics.md written down a second time, scalar and slow.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/machine.h"
#include "kernels/dispatch/kernel.h"
#include "kernels/format/bf16.h"
#include "omni/omni.h"
#include "tests/support/guarded_buffer.h"
#include "tests/support/linear_run.h"

namespace okl::test {

struct DenseShape {
  int64_t n = 64, k = 64;
  uint32_t m = 1;
  uint32_t group = 0;  // w8s; 0: K
  omni_format weights = OMNI_FORMAT_W16;
  omni_dtype x_type = OMNI_DTYPE_BF16, scale_type = OMNI_DTYPE_F32, y_type = OMNI_DTYPE_F32, residual_type = OMNI_DTYPE_NONE;
  uint32_t epilogue = OMNI_EPILOGUE_NONE;
  int64_t x_padding = 0, y_padding = 0;
  Flush flush = Flush::kBack;

  bool w8s() const { return weights == OMNI_FORMAT_W8S; }
  int64_t group_inputs() const { return group == 0 || group > k ? k : group; }
  int64_t groups() const { return (k + group_inputs() - 1) / group_inputs(); }
  bool pairs() const { return x_type == OMNI_DTYPE_BF16 && weights != OMNI_FORMAT_W32; }

  std::string text() const {
    char out[200];
    std::snprintf(out, sizeof out, "n=%ld k=%ld m=%u g=%u w=%d x=%d s=%d y=%d e=%u r=%d flush=%d", static_cast<long>(n),
                  static_cast<long>(k), m, group, weights, x_type, scale_type, y_type, epilogue, residual_type,
                  static_cast<int>(flush));
    return out;
  }
};

class DenseCase {
 public:
  DenseCase(const DenseShape& shape_in, uint64_t seed) : shape(shape_in), random_(seed) {
    const uint32_t group = static_cast<uint32_t>(shape.w8s() && shape.group != 0 ? shape.group : shape.k);
    EXPECT_EQ(omni_layout_init(&layout, shape.weights, shape.n, shape.k, group, shape.w8s() ? shape.scale_type : OMNI_DTYPE_NONE),
              OMNI_OK)
        << omni_last_error();
    if (shape.weights == OMNI_FORMAT_W16 && shape.x_type == OMNI_DTYPE_BF16) layout.flags |= OMNI_LAYOUT_SCRUBBED;
    for (int64_t i = 0; i < shape.n * shape.k; ++i) weights_.push_back(random_weight());
    pack();
    if (shape.w8s()) {
      scales = make(shape.groups() * shape.n, shape.scale_type);
      for (int64_t i = 0; i < shape.groups() * shape.n; ++i) put(scales, shape.scale_type, i, small() / 8);
    }
    x = make(static_cast<int64_t>(shape.m) * ldx(), shape.x_type, 0xFF);  // NaN in the padding columns
    for (uint32_t row = 0; row < shape.m; ++row) {
      for (int64_t i = 0; i < shape.k; ++i) put(x, shape.x_type, row * ldx() + i, small());
    }
    y = make(static_cast<int64_t>(shape.m) * ldy(), shape.y_type, 0x5A);
    if (shape.epilogue & OMNI_EPILOGUE_BIAS) {
      bias = make(shape.n, OMNI_DTYPE_F32);
      for (int64_t i = 0; i < shape.n; ++i) bias.as<float>()[i] = small();
    }
    if (shape.epilogue & OMNI_EPILOGUE_RESIDUAL) {
      residual = make(static_cast<int64_t>(shape.m) * ldy(), shape.residual_type, 0xFF);
      for (uint32_t row = 0; row < shape.m; ++row) {
        for (int64_t i = 0; i < shape.n; ++i) put(residual, shape.residual_type, row * ldy() + i, small());
      }
    }
  }

  int64_t ldx() const { return shape.k + shape.x_padding; }
  int64_t ldy() const { return shape.n + shape.y_padding; }

  // Values of W, [N][K] in fp32; they must be exact in the format.
  void set_weights(const std::vector<float>& values) {
    weights_ = values;
    pack();
  }
  void set_x(uint32_t row, int64_t i, float value) { put(x, shape.x_type, row * ldx() + i, value); }
  void set_x_bits(uint32_t row, int64_t i, uint16_t bits) { x.as<uint16_t>()[row * ldx() + i] = bits; }
  void set_scale(int64_t group, int64_t channel, float value) { put(scales, shape.scale_type, group * shape.n + channel, value); }

  omni_linear_query query(const char* kernel) const {
    omni_linear_query q{};
    q.size = sizeof q;
    q.numerics = shape.w8s() ? OMNI_NUMERICS_GROUP : OMNI_NUMERICS_DENSE;
    q.x_type = static_cast<uint16_t>(shape.x_type);
    q.y_type = static_cast<uint16_t>(shape.y_type);
    q.residual_type = static_cast<uint16_t>(shape.residual_type);
    q.epilogue = shape.epilogue;
    q.max_m = shape.m == 0 ? 1 : shape.m;
    q.weights = layout;
    q.kernel = kernel;
    return q;
  }
  omni_linear_args args() {
    omni_linear_args a{};
    a.size = sizeof a;
    a.m = shape.m;
    a.x = x.data();
    a.ldx = ldx();
    a.codes = codes.data();
    a.codes_bytes = codes.size();
    a.scales = shape.w8s() ? scales.data() : nullptr;
    a.scales_bytes = shape.w8s() ? scales.size() : 0;
    a.bias = shape.epilogue & OMNI_EPILOGUE_BIAS ? bias.as<float>() : nullptr;
    a.residual = shape.epilogue & OMNI_EPILOGUE_RESIDUAL ? residual.data() : nullptr;
    a.ld_residual = ldy();
    a.y = y.data();
    a.ldy = ldy();
    return a;
  }

  // What the contract says, as stored bits.
  uint32_t expected(uint32_t row, int64_t channel) const {
    float c = shape.w8s() ? group_sum(row, channel) : dense_sum(row, channel);
    if (shape.epilogue & OMNI_EPILOGUE_BIAS) c = c + bias.as<float>()[channel];
    if (shape.epilogue & OMNI_EPILOGUE_RESIDUAL) c = get(residual, shape.residual_type, row * ldy() + channel) + c;
    if (shape.y_type == OMNI_DTYPE_F32) return std::isnan(c) ? kF32NaN : std::bit_cast<uint32_t>(c);
    return bf16_round_group(c);
  }
  std::vector<uint32_t> expected() const {
    std::vector<uint32_t> result;
    for (uint32_t row = 0; row < shape.m; ++row) {
      for (int64_t channel = 0; channel < shape.n; ++channel) result.push_back(expected(row, channel));
    }
    return result;
  }
  uint32_t actual(uint32_t row, int64_t channel) const {
    const int64_t i = row * ldy() + channel;
    return shape.y_type == OMNI_DTYPE_F32 ? y.as<uint32_t>()[i] : y.as<uint16_t>()[i];
  }
  void clear_y() { std::memset(y.data(), 0x5A, y.size()); }

  // The first element that differs, or "".
  std::string difference(const std::vector<uint32_t>& wanted) const {
    for (uint32_t row = 0; row < shape.m; ++row) {
      for (int64_t channel = 0; channel < shape.n; ++channel) {
        const uint32_t bits = actual(row, channel), right = wanted[static_cast<size_t>(row * shape.n + channel)];
        if (bits == right) continue;
        char text[120];
        std::snprintf(text, sizeof text, "row %u channel %ld: 0x%08x, expected 0x%08x", row, static_cast<long>(channel), bits,
                      right);
        return text;
      }
      const int64_t bytes = shape.y_type == OMNI_DTYPE_F32 ? 4 : 2;
      for (int64_t i = (row * ldy() + shape.n) * bytes; i < (row + 1) * ldy() * bytes; ++i) {
        if (y.data()[i] != 0x5A) return "padding of y was written";
      }
    }
    return y.intact() ? "" : "memory around y was written";
  }

  DenseShape shape;
  omni_layout layout{};
  GuardedBuffer codes{0}, scales{0}, x{0}, y{0}, bias{0}, residual{0};

 private:
  static int64_t bytes_of(omni_dtype type) { return type == OMNI_DTYPE_F32 ? 4 : 2; }
  GuardedBuffer make(int64_t elements, omni_dtype type, uint8_t fill = 0) const {
    return GuardedBuffer(static_cast<size_t>(elements * bytes_of(type)), shape.flush, static_cast<size_t>(bytes_of(type)), fill);
  }
  static void put(GuardedBuffer& buffer, omni_dtype type, int64_t index, float value) {
    if (type == OMNI_DTYPE_F32) {
      buffer.as<float>()[index] = value;
    } else {
      buffer.as<uint16_t>()[index] = bf16_round_ieee(value);
    }
  }
  static float get(const GuardedBuffer& buffer, omni_dtype type, int64_t index) {
    return type == OMNI_DTYPE_F32 ? buffer.as<float>()[index] : bf16_to_float(buffer.as<uint16_t>()[index]);
  }
  float small() { return std::uniform_real_distribution<float>(-2.0F, 2.0F)(random_); }
  float random_weight() {
    if (shape.w8s()) return static_cast<float>(std::uniform_int_distribution<int>(-128, 127)(random_));
    return shape.weights == OMNI_FORMAT_W16 ? bf16_to_float(bf16_round_ieee(small())) : small();
  }

  // Padding of inputs and of channels: NaN, and noise for int8.
  void pack() {
    size_t bytes = 0;
    EXPECT_EQ(omni_packed_size(&layout, &bytes), OMNI_OK);
    codes = GuardedBuffer(bytes, shape.flush, 16, shape.w8s() ? 0x7B : 0xFF);
    const int64_t padded_n = (shape.n + 15) / 16 * 16, padded_k = (shape.k + 31) / 32 * 32;
    for (int64_t channel = 0; channel < shape.n; ++channel) {
      const int64_t first = channel / 64 * 64, width = std::min<int64_t>(64, padded_n - first), c = channel - first;
      for (int64_t i = 0; i < shape.k; ++i) {
        const float value = weights_[static_cast<size_t>(channel * shape.k + i)];
        if (shape.w8s()) {
          codes.as<int8_t>()[first * padded_k + i / 4 * width * 4 + 4 * c + i % 4] = static_cast<int8_t>(value);
        } else if (shape.weights == OMNI_FORMAT_W16) {
          codes.as<uint16_t>()[first * padded_k + (i / 2 * width + c) * 2 + i % 2] =
              static_cast<uint16_t>(std::bit_cast<uint32_t>(value) >> 16);
        } else {
          codes.as<float>()[first * shape.k + i * width + c] = value;
        }
      }
    }
  }

  float weight(int64_t channel, int64_t i) const { return weights_[static_cast<size_t>(channel * shape.k + i)]; }
  float input(uint32_t row, int64_t i, float scrub_below) const {
    const float value = get(x, shape.x_type, row * ldx() + i);
    return std::fabs(value) < scrub_below ? 0.0F : value;
  }
  // The pair chain over inputs [first, end).
  float pair_chain(uint32_t row, int64_t channel, int64_t first, int64_t end, float scrub_below) const {
    float d = 0.0F;
    for (int64_t i = first; i < end; i += 2) {
      if (i + 1 < end) d = std::fma(input(row, i + 1, scrub_below), weight(channel, i + 1), d);
      d = std::fma(input(row, i, scrub_below), weight(channel, i), d);
    }
    return d;
  }
  float dense_sum(uint32_t row, int64_t channel) const {
    if (shape.pairs()) return pair_chain(row, channel, 0, shape.k, 0x1p-56F);
    float c = 0.0F;
    for (int64_t i = 0; i < shape.k; ++i) c = std::fma(input(row, i, 0.0F), weight(channel, i), c);
    return c;
  }
  float group_sum(uint32_t row, int64_t channel) const {
    float c = 0.0F;
    for (int64_t g = 0; g < shape.groups(); ++g) {
      const int64_t first = g * shape.group_inputs(), end = std::min(first + shape.group_inputs(), shape.k);
      c = std::fma(get(scales, shape.scale_type, g * shape.n + channel), pair_chain(row, channel, first, end, 0x1p-119F), c);
    }
    return c;
  }

  std::mt19937_64 random_;
  std::vector<float> weights_;
};

inline PlanPointer make_plan(const DenseCase& problem, const char* kernel) {
  const omni_linear_query query = problem.query(kernel);
  omni_plan* plan = nullptr;
  EXPECT_EQ(omni_select(&query, &plan), OMNI_OK) << kernel << ": " << omni_last_error();
  return PlanPointer(plan);
}

// Runs the case on `kernel` and compares every element, padding and slack.
inline void expect_contract(DenseCase& problem, const std::vector<uint32_t>& expected, const char* kernel,
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
  EXPECT_EQ(problem.difference(expected), "") << kernel << " " << problem.shape.text();
}

}  // namespace okl::test
