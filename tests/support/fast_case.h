// SPDX-License-Identifier: Apache-2.0
// A problem of class fast with its operands between guard pages, and the oracle: the exact sum in double with the bound of
// docs/numerics.md around it.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/format/bf16.h"
#include "kernels/format/tg4.h"
#include "omni/omni.h"
#include "tests/support/guarded_buffer.h"

namespace okl::test {

struct FastShape {
  omni_format weights = OMNI_FORMAT_TG4;
  int64_t n = 64, k = 64;
  uint32_t group = 32, m = 16;
  omni_dtype scale_type = OMNI_DTYPE_BF16, y_type = OMNI_DTYPE_F32, residual_type = OMNI_DTYPE_NONE;
  uint32_t epilogue = OMNI_EPILOGUE_NONE;
  bool permuted = false;
  int64_t x_padding = 0, y_padding = 0;  // extra columns: NaN in x, a canary in y
  Flush flush = Flush::kBack;

  bool w4() const { return weights == OMNI_FORMAT_TG4; }
  int64_t block() const { return w4() ? std::min<int64_t>({group, 128, k}) : k; }
  int64_t groups() const { return w4() ? (k + group - 1) / group : 1; }
  int64_t ldx() const { return k + x_padding; }
  int64_t ldy() const { return n + y_padding; }

  std::string text() const {
    char line[200];
    std::snprintf(line, sizeof line, "%s n=%ld k=%ld g=%u m=%u s=%d y=%d epilogue=%u residual=%d permuted=%d flush=%d",
                  w4() ? "tg4" : "w16", static_cast<long>(n), static_cast<long>(k), group, m, scale_type, y_type, epilogue,
                  residual_type, permuted, static_cast<int>(flush));
    return line;
  }
};

struct Bounded {
  double value, error;  // of y; value NaN when the result must be NaN
};

class FastCase {
 public:
  FastCase(const FastShape& shape_in, uint64_t seed) : shape(shape_in), random_(seed) {
    const uint32_t group = shape.w4() ? shape.group : static_cast<uint32_t>(shape.k);
    const omni_dtype scale_type = shape.w4() ? shape.scale_type : OMNI_DTYPE_NONE;
    EXPECT_EQ(omni_layout_init(&layout, shape.weights, shape.n, shape.k, group, scale_type), OMNI_OK) << omni_last_error();
    if (!shape.w4()) layout.flags |= OMNI_LAYOUT_SCRUBBED;  // no weight is that small; class dense, which may serve, asks for it
    for (int64_t i = 0; i < shape.n * shape.k; ++i) {
      weights.push_back(shape.w4() ? static_cast<uint16_t>(random_() & 15) : bf16_round_ieee(small()));
    }
    pack();
    x = GuardedBuffer(static_cast<size_t>(shape.m * shape.ldx() * 2), shape.flush, 2, 0xFF);  // NaN in the padding columns
    for (uint32_t row = 0; row < shape.m; ++row) {
      for (int64_t i = 0; i < shape.k; ++i) x_at(row, i) = bf16_round_ieee(small());
    }
    if (shape.w4()) {
      scales = buffer(shape.groups() * shape.n * 2, shape.scale_type);
      for (int64_t i = 0; i < shape.groups() * shape.n * 2; ++i)
        put(scales, shape.scale_type, i, i % 2 == 0 ? small() / 8 : small());
    }
    y = buffer(shape.m * shape.ldy(), shape.y_type, 0x5A);
    if (shape.epilogue & OMNI_EPILOGUE_BIAS) {
      bias = buffer(shape.n, OMNI_DTYPE_F32);
      for (int64_t i = 0; i < shape.n; ++i) bias.as<float>()[i] = small();
    }
    if (shape.epilogue & OMNI_EPILOGUE_RESIDUAL) {
      residual = buffer(shape.m * shape.ldy(), shape.residual_type, 0xFF);
      for (uint32_t row = 0; row < shape.m; ++row) {
        for (int64_t i = 0; i < shape.n; ++i) put(residual, shape.residual_type, row * shape.ldy() + i, small());
      }
    }
    for (int64_t i = 0; i < shape.k; ++i) permutation.push_back(static_cast<int32_t>(i));
    if (shape.permuted) std::shuffle(permutation.begin(), permutation.end(), random_);
  }

  // Writes `weights` into the packed format. Padding is what the packers write: weight zero.
  void pack() {
    const int64_t padded_n = (shape.n + 15) / 16 * 16, padded_k = (shape.k + 31) / 32 * 32;
    codes = GuardedBuffer(static_cast<size_t>(shape.w4() ? padded_n * padded_k / 2 : padded_n * padded_k * 2), shape.flush, 16,
                          shape.w4() ? tg4::kPadByte : 0);
    for (int64_t c = 0; c < shape.n; ++c) {
      for (int64_t k = 0; k < shape.k; ++k) {
        const uint16_t value = weights[static_cast<size_t>(c * shape.k + k)];
        if (shape.w4()) {
          const tg4::Position at = tg4::position(shape.n, shape.k, c, k);
          codes.data()[at.byte] = static_cast<uint8_t>((codes.data()[at.byte] & ~(15 << at.shift)) | value << at.shift);
        } else {
          const int64_t block = c / 64, width = std::min<int64_t>(64, padded_n - block * 64);
          codes.as<uint16_t>()[block * 64 * padded_k + k / 2 * width * 2 + c % 64 * 2 + k % 2] = value;
        }
      }
    }
  }

  uint16_t& x_at(uint32_t row, int64_t k) { return x.as<uint16_t>()[row * shape.ldx() + k]; }
  uint16_t x_at(uint32_t row, int64_t k) const { return x.as<uint16_t>()[row * shape.ldx() + k]; }
  void set_scales(float scale, float zero) {
    for (int64_t i = 0; i < shape.groups() * shape.n; ++i) {
      put(scales, shape.scale_type, 2 * i, scale);
      put(scales, shape.scale_type, 2 * i + 1, zero);
    }
  }

  omni_linear_query query(const char* kernel = nullptr) const {
    omni_linear_query q{};
    q.size = sizeof q;
    q.numerics = OMNI_NUMERICS_FAST;
    q.x_type = OMNI_DTYPE_BF16;
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
    a.k_permutation = shape.permuted ? permutation.data() : nullptr;
    a.codes = codes.data();
    a.codes_bytes = codes.size();
    a.scales = shape.w4() ? scales.data() : nullptr;
    a.scales_bytes = scales.size();
    a.bias = shape.epilogue & OMNI_EPILOGUE_BIAS ? bias.as<float>() : nullptr;
    a.residual = shape.epilogue & OMNI_EPILOGUE_RESIDUAL ? residual.data() : nullptr;
    a.ld_residual = shape.ldy();
    a.y = y.data();
    a.ldy = shape.ldy();
    return a;
  }

  // docs/numerics.md, class fast: gamma over the additions of a block and its folds, what flushing and scrubbing may drop, and the
  // roundings of epilogue and store.
  Bounded expected(uint32_t row, int64_t channel) const {
    double sum = 0, magnitude = 0, weight_sum = 0;
    for (int64_t k = 0; k < shape.k; ++k) {
      const double input = bf16_to_float(x_at(row, permutation[static_cast<size_t>(k)]));
      const uint16_t stored = weights[static_cast<size_t>(channel * shape.k + k)];
      double weight = bf16_to_float(stored), absolute = std::fabs(weight);
      if (shape.w4()) {
        const int64_t at = (k / shape.group * shape.n + channel) * 2;
        const double scale = get(scales, shape.scale_type, at), zero = get(scales, shape.scale_type, at + 1);
        weight = (stored - 8.0) * scale + zero;
        absolute = std::fabs((stored - 8.0) * scale) + std::fabs(zero);
      }
      sum += input * weight;
      magnitude += std::fabs(input) * absolute;
      weight_sum += absolute;
    }
    const double blocks = std::ceil(static_cast<double>(shape.k) / static_cast<double>(shape.block()));
    const double steps = (static_cast<double>(shape.block()) + 2 + 2 * blocks) * 0x1p-24;
    double error = steps / (1 - steps) * magnitude + 0x1p-119 * weight_sum + static_cast<double>(4 * shape.k) * 0x1p-126;
    for (const uint32_t bit : {OMNI_EPILOGUE_BIAS, OMNI_EPILOGUE_RESIDUAL}) {
      if ((shape.epilogue & bit) == 0) continue;
      sum +=
          bit == OMNI_EPILOGUE_BIAS ? bias.as<float>()[channel] : get(residual, shape.residual_type, row * shape.ldy() + channel);
      // The bias may be where the sums start: its magnitude then takes part in every fold.
      error += (std::fabs(sum) + error + 4) * 0x1p-24 * (2 * blocks + 2);
    }
    if (shape.y_type == OMNI_DTYPE_BF16) error += (std::fabs(sum) + error) * 0x1p-8 + 0x1p-126;
    return {sum, error};
  }

  double actual(uint32_t row, int64_t channel) const { return get(y, shape.y_type, row * shape.ldy() + channel); }

  // The first element outside its bound, or "".
  std::string first_violation() const {
    for (uint32_t row = 0; row < shape.m; ++row) {
      for (int64_t channel = 0; channel < shape.n; ++channel) {
        const Bounded want = expected(row, channel);
        const double got = actual(row, channel);
        const bool right = std::isnan(want.value)   ? std::isnan(got)
                           : std::isinf(want.value) ? got == want.value
                                                    : std::fabs(got - want.value) <= want.error;
        if (right) continue;
        char text[160];
        std::snprintf(text, sizeof text, "row %u channel %ld: %g, expected %g +- %g", row, static_cast<long>(channel), got,
                      want.value, want.error);
        return text;
      }
      for (int64_t i = shape.n; i < shape.ldy(); ++i) {
        for (int64_t b = 0; b < bytes_of(shape.y_type); ++b) {
          if (y.data()[(row * shape.ldy() + i) * bytes_of(shape.y_type) + b] != 0x5A) return "padding of y was written";
        }
      }
    }
    return y.intact() ? "" : "memory around y was written";
  }
  void clear_y() { std::memset(y.data(), 0x5A, y.size()); }

  const FastShape shape;
  omni_layout layout{};
  std::vector<uint16_t> weights;  // [N][K] codes, or bf16
  std::vector<int32_t> permutation;
  GuardedBuffer x{0}, codes{0}, scales{0}, bias{0}, residual{0}, y{0};

 private:
  static int64_t bytes_of(omni_dtype type) { return type == OMNI_DTYPE_F32 ? 4 : 2; }
  GuardedBuffer buffer(int64_t elements, omni_dtype type, uint8_t fill = 0xA5) const {
    return GuardedBuffer(static_cast<size_t>(elements * bytes_of(type)), shape.flush, static_cast<size_t>(bytes_of(type)), fill);
  }
  static void put(GuardedBuffer& buffer, omni_dtype type, int64_t i, float value) {
    if (type == OMNI_DTYPE_F32) {
      buffer.as<float>()[i] = value;
    } else {
      buffer.as<uint16_t>()[i] = bf16_round_ieee(value);
    }
  }
  static double get(const GuardedBuffer& buffer, omni_dtype type, int64_t i) {
    return type == OMNI_DTYPE_F32 ? double{buffer.as<float>()[i]} : double{bf16_to_float(buffer.as<uint16_t>()[i])};
  }
  float small() { return std::uniform_real_distribution<float>(-2, 2)(random_); }

  std::mt19937_64 random_;
};

}  // namespace okl::test
