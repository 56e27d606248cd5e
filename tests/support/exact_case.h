// SPDX-License-Identifier: Apache-2.0
// A problem of class exact with its operands between guard pages, and the oracle: the contract of docs/numerics.md written down a
// second time, scalar and slow, sharing nothing with the kernels.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "kernels/format/bf16.h"
#include "omni/omni.h"
#include "tests/support/guarded_buffer.h"

namespace okl::test {

struct ExactShape {
  omni_format weights = OMNI_FORMAT_W4S;
  int64_t n = 64, k = 64;
  uint32_t group = 32, m = 1;
  omni_dtype x_type = OMNI_DTYPE_S8, scale_type = OMNI_DTYPE_BF16, y_type = OMNI_DTYPE_F32, residual_type = OMNI_DTYPE_NONE;
  uint32_t epilogue = OMNI_EPILOGUE_NONE;
  bool zeros = false, permuted = false;
  int64_t x_padding = 0, y_padding = 0;  // extra columns: NaN or 127 in x, a canary in y
  Flush flush = Flush::kBack;

  bool w4() const { return weights == OMNI_FORMAT_W4S; }
  int64_t groups() const { return (k + group - 1) / group; }
  int64_t block() const { return w4() ? std::min<int64_t>(group, 128) : group; }
  int64_t ldx() const { return k + x_padding; }
  int64_t ldy() const { return n + y_padding; }

  std::string text() const {
    char line[240];
    std::snprintf(line, sizeof line,
                  "%s n=%ld k=%ld g=%u m=%u x=%d s=%d y=%d epilogue=%u residual=%d zeros=%d permuted=%d flush=%d ldx=%ld ldy=%ld",
                  w4() ? "w4s" : "w8s", static_cast<long>(n), static_cast<long>(k), group, m, x_type, scale_type, y_type, epilogue,
                  residual_type, zeros, permuted, static_cast<int>(flush), static_cast<long>(ldx()), static_cast<long>(ldy()));
    return line;
  }
};

class ExactCase {
 public:
  ExactCase(const ExactShape& shape_in, uint64_t seed) : shape(shape_in), random_(seed) {
    EXPECT_EQ(omni_layout_init(&layout, shape.weights, shape.n, shape.k, shape.group, shape.scale_type), OMNI_OK)
        << omni_last_error();
    if (shape.zeros) layout.flags |= OMNI_LAYOUT_ZEROS;
    for (int64_t i = 0; i < shape.n * shape.k; ++i) {
      weights.push_back(shape.w4() ? pick(0, 15) : pick(-128, 127));
    }
    make_scales();
    make_x();
    const int64_t ld = shape.ldy();
    y = buffer(static_cast<int64_t>(shape.m) * ld, shape.y_type, 0x5A);
    if (shape.epilogue & OMNI_EPILOGUE_BIAS) {
      bias = buffer(shape.n, OMNI_DTYPE_F32);
      for (int64_t i = 0; i < shape.n; ++i) bias.as<float>()[i] = small();
    }
    if (shape.epilogue & OMNI_EPILOGUE_RESIDUAL) {
      residual = buffer(static_cast<int64_t>(shape.m) * ld, shape.residual_type, 0xFF);  // NaN in the padding columns
      for (uint32_t row = 0; row < shape.m; ++row) {
        for (int64_t i = 0; i < shape.n; ++i) put(residual, shape.residual_type, row * ld + i, small());
      }
    }
    pack();
  }

  // Writes `weights` into the packed format: fill of padded positions is 0xEE, which no kernel may let through.
  void pack() {
    const int64_t step = shape.w4() ? 32 : 16, padded_n = (shape.n + step - 1) / step * step, padded_k = (shape.k + 31) / 32 * 32;
    codes = GuardedBuffer(static_cast<size_t>(padded_n * padded_k / (shape.w4() ? 2 : 1)), shape.flush, 16, 0xEE);
    for (int64_t c = 0; c < shape.n; ++c) {
      const int64_t block = c / 64, width = std::min<int64_t>(64, padded_n - block * 64), in = c % 64;
      for (int64_t k = 0; k < shape.k; ++k) {
        const int32_t value = weights[static_cast<size_t>(c * shape.k + k)];
        if (shape.w4()) {
          const int64_t run = block * 64 * padded_k / 2 + k / 4 * width * 2;
          uint8_t& byte = codes.data()[run + in / 32 * 64 + in % 16 * 4 + k % 4];
          const int shift = in % 32 / 16 * 4;
          byte = static_cast<uint8_t>((byte & ~(15 << shift)) | value << shift);
        } else {
          const int64_t run = block * 64 * padded_k + k / 4 * width * 4;
          codes.data()[run + in * 4 + k % 4] = static_cast<uint8_t>(value);
        }
      }
    }
  }

  omni_linear_query query(const char* kernel = nullptr) const {
    omni_linear_query q{};
    q.size = sizeof q;
    q.numerics = OMNI_NUMERICS_EXACT;
    q.x_type = static_cast<uint16_t>(shape.x_type);
    q.y_type = static_cast<uint16_t>(shape.y_type);
    q.residual_type = static_cast<uint16_t>(shape.residual_type);
    q.epilogue = shape.epilogue;
    q.max_m = std::max<uint32_t>(shape.m, 1);
    q.weights = layout;
    q.kernel = kernel;
    return q;
  }
  omni_linear_args args() {
    omni_linear_args a{};
    a.size = sizeof a;
    a.m = shape.m;
    a.x = x.data();
    a.ldx = shape.ldx();
    a.x_scales = shape.x_type == OMNI_DTYPE_S8 ? x_scales.as<float>() : nullptr;
    a.k_permutation = shape.permuted ? permutation.data() : nullptr;
    a.codes = codes.data();
    a.codes_bytes = codes.size();
    a.scales = scales.data();
    a.scales_bytes = scales.size();
    a.bias = shape.epilogue & OMNI_EPILOGUE_BIAS ? bias.as<float>() : nullptr;
    a.residual = shape.epilogue & OMNI_EPILOGUE_RESIDUAL ? residual.data() : nullptr;
    a.ld_residual = shape.ldy();
    a.y = y.data();
    a.ldy = shape.ldy();
    return a;
  }

  // The codes and the scale of one row, before any permutation.
  std::vector<int32_t> row_codes(uint32_t row, float* scale) const {
    std::vector<int32_t> result(static_cast<size_t>(shape.k));
    if (shape.x_type == OMNI_DTYPE_S8) {
      for (int64_t i = 0; i < shape.k; ++i) result[static_cast<size_t>(i)] = x.as<int8_t>()[row * shape.ldx() + i];
      *scale = x_scales.as<float>()[row];
      return result;
    }
    float amax = 1e-7F;
    bool finite = true;
    for (int64_t i = 0; i < shape.k; ++i) {
      finite = finite && std::isfinite(input(row, i));
      amax = std::max(amax, std::fabs(input(row, i)));
    }
    if (!finite) {
      *scale = std::numeric_limits<float>::quiet_NaN();
      return result;
    }
    const float factor = 127.0F / amax;
    *scale = amax / 127.0F;
    for (int64_t i = 0; i < shape.k; ++i) {
      result[static_cast<size_t>(i)] = static_cast<int32_t>(std::nearbyint(input(row, i) * factor));
    }
    return result;
  }

  // What the contract says, [m][N], as stored bits.
  std::vector<uint32_t> expected() const {
    std::vector<uint32_t> result;
    for (uint32_t row = 0; row < shape.m; ++row) {
      float x_scale = 0;
      const std::vector<int32_t> code = row_codes(row, &x_scale);
      for (int64_t c = 0; c < shape.n; ++c) {
        float sum = shape.epilogue & OMNI_EPILOGUE_BIAS ? bias.as<float>()[c] : 0.0F;
        for (int64_t first = 0; first < shape.k; first += shape.block()) {
          const int64_t group = first / shape.group;
          int64_t exact = 0;
          for (int64_t k = first; k < std::min(first + shape.block(), shape.k); ++k) {
            const int64_t from = shape.permuted ? permutation[static_cast<size_t>(k)] : k;
            exact += int64_t{code[static_cast<size_t>(from)]} * (weights[static_cast<size_t>(c * shape.k + k)] - zero(group, c));
          }
          EXPECT_LE(std::abs(exact), int64_t{INT32_MAX});
          sum = std::fma(static_cast<float>(exact) * x_scale, get(scales, shape.scale_type, group * shape.n + c), sum);
        }
        if (shape.epilogue & OMNI_EPILOGUE_RESIDUAL) sum = get(residual, shape.residual_type, row * shape.ldy() + c) + sum;
        if (shape.y_type == OMNI_DTYPE_F32) {
          result.push_back(std::isnan(sum) ? kF32NaN : std::bit_cast<uint32_t>(sum));
        } else {
          result.push_back(bf16_round_group(sum));
        }
      }
    }
    return result;
  }

  std::vector<uint32_t> actual() const {
    std::vector<uint32_t> result;
    for (uint32_t row = 0; row < shape.m; ++row) {
      for (int64_t c = 0; c < shape.n; ++c) {
        const int64_t i = row * shape.ldy() + c;
        result.push_back(shape.y_type == OMNI_DTYPE_F32 ? y.as<uint32_t>()[i] : y.as<uint16_t>()[i]);
      }
    }
    return result;
  }
  void clear_y() { std::memset(y.data(), 0x5A, y.size()); }

  // The first element that differs from `expected`, or "".
  std::string difference(const std::vector<uint32_t>& expected) const {
    const std::vector<uint32_t> found = actual();
    for (size_t i = 0; i < expected.size(); ++i) {
      if (found[i] == expected[i]) continue;
      char line[160];
      std::snprintf(line, sizeof line, "row %zu channel %zu: 0x%08x, expected 0x%08x", i / static_cast<size_t>(shape.n),
                    i % static_cast<size_t>(shape.n), found[i], expected[i]);
      return line;
    }
    const int64_t bytes = shape.y_type == OMNI_DTYPE_F32 ? 4 : 2;
    for (uint32_t row = 0; row < shape.m; ++row) {
      for (int64_t i = (row * shape.ldy() + shape.n) * bytes; i < (row + 1) * shape.ldy() * bytes; ++i) {
        if (y.data()[i] != 0x5A) return "padding of y was written";
      }
    }
    return y.intact() ? "" : "bytes around y were written";
  }

  int32_t zero(int64_t group, int64_t channel) const {
    if (!shape.w4()) return 0;
    if (!shape.zeros) return 8;
    const int64_t elements = shape.groups() * shape.n;
    return scales.data()[elements * (shape.scale_type == OMNI_DTYPE_F32 ? 4 : 2) + group * shape.n + channel];
  }
  void set_zeros(const std::vector<uint8_t>& values) {
    const int64_t elements = shape.groups() * shape.n;
    std::copy(values.begin(), values.end(), scales.data() + elements * (shape.scale_type == OMNI_DTYPE_F32 ? 4 : 2));
  }
  void set_scale(int64_t group, int64_t channel, float value) { put(scales, shape.scale_type, group * shape.n + channel, value); }
  void set_input(uint32_t row, int64_t k, float value) { put(x, shape.x_type, row * shape.ldx() + k, value); }
  float input(uint32_t row, int64_t k) const { return get(x, shape.x_type, row * shape.ldx() + k); }

  ExactShape shape;
  omni_layout layout{};
  std::vector<int32_t> weights;  // [n][k]: codes 0..15 (w4s) or weights (w8s)
  std::vector<int32_t> permutation;
  GuardedBuffer codes{0}, scales{0}, x{0}, x_scales{0}, y{0}, bias{0}, residual{0};

 private:
  static int64_t bytes_of(omni_dtype type) { return type == OMNI_DTYPE_F32 ? 4 : type == OMNI_DTYPE_S8 ? 1 : 2; }
  GuardedBuffer buffer(int64_t elements, omni_dtype type, uint8_t fill = 0) const {
    return GuardedBuffer(static_cast<size_t>(elements * bytes_of(type)), shape.flush, static_cast<size_t>(bytes_of(type)), fill);
  }
  static void put(GuardedBuffer& to, omni_dtype type, int64_t index, float value) {
    if (type == OMNI_DTYPE_F32) {
      to.as<float>()[index] = value;
    } else if (type == OMNI_DTYPE_S8) {
      to.as<int8_t>()[index] = static_cast<int8_t>(value);
    } else {
      to.as<uint16_t>()[index] = bf16_round_ieee(value);
    }
  }
  static float get(const GuardedBuffer& from, omni_dtype type, int64_t index) {
    return type == OMNI_DTYPE_F32 ? from.as<float>()[index] : bf16_to_float(from.as<uint16_t>()[index]);
  }
  int32_t pick(int32_t low, int32_t high) { return std::uniform_int_distribution<int32_t>(low, high)(random_); }
  float small() { return std::uniform_real_distribution<float>(-2.0F, 2.0F)(random_); }

  void make_scales() {
    const int64_t elements = shape.groups() * shape.n, bytes = shape.scale_type == OMNI_DTYPE_F32 ? 4 : 2;
    scales =
        GuardedBuffer(static_cast<size_t>(elements * (bytes + (shape.zeros ? 1 : 0))), shape.flush, static_cast<size_t>(bytes));
    for (int64_t i = 0; i < elements; ++i) put(scales, shape.scale_type, i, small() / 8);
    if (!shape.zeros) return;
    for (int64_t i = 0; i < elements; ++i) scales.data()[elements * bytes + i] = static_cast<uint8_t>(pick(0, 15));
  }
  void make_x() {
    x = buffer(static_cast<int64_t>(shape.m) * shape.ldx(), shape.x_type, shape.x_type == OMNI_DTYPE_S8 ? 127 : 0xFF);
    const bool s8 = shape.x_type == OMNI_DTYPE_S8;
    for (uint32_t row = 0; row < shape.m; ++row) {
      for (int64_t i = 0; i < shape.k; ++i) set_input(row, i, s8 ? static_cast<float>(pick(-128, 127)) : small());
    }
    if (s8) {
      x_scales = buffer(shape.m, OMNI_DTYPE_F32);
      for (uint32_t row = 0; row < shape.m; ++row) x_scales.as<float>()[row] = small() / 64;
    }
    permutation.resize(static_cast<size_t>(shape.k));
    std::iota(permutation.begin(), permutation.end(), 0);
    if (shape.permuted) std::shuffle(permutation.begin(), permutation.end(), random_);
  }

  std::mt19937_64 random_;
};

struct ExactPlanDeleter {
  void operator()(omni_plan* plan) const { omni_plan_destroy(plan); }
};
using ExactPlanPointer = std::unique_ptr<omni_plan, ExactPlanDeleter>;

inline ExactPlanPointer make_exact_plan(const ExactCase& problem, const char* kernel) {
  const omni_linear_query query = problem.query(kernel);
  omni_plan* plan = nullptr;
  EXPECT_EQ(omni_select(&query, &plan), OMNI_OK) << (kernel != nullptr ? kernel : "") << ": " << omni_last_error();
  return ExactPlanPointer(plan);
}

// Runs the whole problem on `parallel` and compares with `expected`.
inline void expect_exact(ExactCase& problem, const std::vector<uint32_t>& expected, const char* kernel,
                         const omni_parallel* parallel) {
  const ExactPlanPointer plan = make_exact_plan(problem, kernel);
  if (plan == nullptr) return;
  size_t bytes = 0;
  ASSERT_EQ(omni_workspace_size(plan.get(), problem.shape.m, &bytes), OMNI_OK);
  GuardedBuffer workspace(bytes, problem.shape.flush, 64, 0xFF);
  problem.clear_y();
  omni_linear_args args = problem.args();
  args.workspace = workspace.data();
  args.workspace_bytes = workspace.size();
  args.parallel = parallel;
  ASSERT_EQ(omni_run(plan.get(), &args), OMNI_OK) << omni_last_error();
  EXPECT_EQ(problem.difference(expected), "") << kernel << " " << problem.shape.text();
}

}  // namespace okl::test
