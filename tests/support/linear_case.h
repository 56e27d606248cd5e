// SPDX-License-Identifier: Apache-2.0
// A random or given linear problem with its operands between guard pages, and the oracle: the contract of docs/numerics.md written
// down a second time, scalar and slow, sharing nothing with the kernels.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <random>
#include <vector>

#include "kernels/format/bf16.h"
#include "kernels/format/tg4.h"
#include "omni/omni.h"
#include "tests/support/guarded_buffer.h"

namespace okl::test {

struct LinearShape {
  int64_t n = 64, k = 64;
  uint32_t group = 32, m = 1;
  omni_numerics numerics = OMNI_NUMERICS_GROUP;
  omni_dtype x_type = OMNI_DTYPE_BF16, scale_type = OMNI_DTYPE_BF16, y_type = OMNI_DTYPE_F32, residual_type = OMNI_DTYPE_NONE;
  uint32_t epilogue = OMNI_EPILOGUE_NONE;
  int64_t x_padding = 0, y_padding = 0;  // extra columns: NaN in x, a canary in y
  Flush flush = Flush::kBack;

  int64_t groups() const { return (k + group - 1) / group; }
};

class LinearCase {
 public:
  LinearCase(const LinearShape& shape_in, uint64_t seed) : shape(shape_in), random_(seed) {
    omni_layout_init(&layout, OMNI_FORMAT_TG4, shape.n, shape.k, shape.group, shape.scale_type);
    for (int64_t i = 0; i < shape.n * shape.k; ++i) codes_.push_back(static_cast<uint8_t>(random_() & 15));
    pack();
    make_scales();
    make_x();
    const int64_t ld = shape.n + shape.y_padding;
    y = make(static_cast<int64_t>(shape.m) * ld, shape.y_type, 0x5A);
    if (shape.epilogue & OMNI_EPILOGUE_BIAS) {
      bias = make(shape.n, OMNI_DTYPE_F32);
      for (int64_t i = 0; i < shape.n; ++i) bias.as<float>()[i] = small();
    }
    if (shape.epilogue & OMNI_EPILOGUE_RESIDUAL) {
      residual = make(static_cast<int64_t>(shape.m) * ld, shape.residual_type, 0xFF);  // 0xFF..: NaN in the padding columns
      for (uint32_t row = 0; row < shape.m; ++row) {
        for (int64_t i = 0; i < shape.n; ++i) put(residual, shape.residual_type, row * ld + i, small());
      }
    }
  }

  // Replaces the scales and zeros, [groups][N][2] in fp32.
  void set_scales(const std::vector<float>& values) {
    for (size_t i = 0; i < values.size(); ++i) put(scales, shape.scale_type, static_cast<int64_t>(i), values[i]);
  }
  void set_codes(const std::vector<uint8_t>& values) {
    codes_ = values;
    pack();
  }
  void set_x(const std::vector<uint16_t>& bits) {
    for (uint32_t row = 0; row < shape.m; ++row) {
      for (int64_t i = 0; i < shape.k; ++i) x.as<uint16_t>()[row * ldx() + i] = bits[row * shape.k + i];
    }
  }
  void set_x_everywhere(float value) {
    for (uint32_t row = 0; row < shape.m; ++row) {
      for (int64_t i = 0; i < shape.k; ++i) put(x, shape.x_type, row * ldx() + i, value);
    }
  }

  int64_t ldx() const { return shape.k + shape.x_padding; }
  int64_t ldy() const { return shape.n + shape.y_padding; }

  omni_linear_query query() const {
    omni_linear_query q{};
    q.size = sizeof q;
    q.numerics = static_cast<uint16_t>(shape.numerics);
    q.x_type = static_cast<uint16_t>(shape.x_type);
    q.y_type = static_cast<uint16_t>(shape.y_type);
    q.residual_type = static_cast<uint16_t>(shape.residual_type);
    q.epilogue = shape.epilogue;
    q.max_m = shape.m == 0 ? 1 : shape.m;
    q.weights = layout;
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
    a.scales = scales.data();
    a.scales_bytes = scales.size();
    a.bias = shape.epilogue & OMNI_EPILOGUE_BIAS ? bias.as<float>() : nullptr;
    a.residual = shape.epilogue & OMNI_EPILOGUE_RESIDUAL ? residual.data() : nullptr;
    a.ld_residual = ldy();
    a.y = y.data();
    a.ldy = ldy();
    return a;
  }

  // What the contract says, [m][N], as stored bits.
  std::vector<uint32_t> expected() const {
    std::vector<uint32_t> result;
    for (uint32_t row = 0; row < shape.m; ++row) {
      for (int64_t channel = 0; channel < shape.n; ++channel) result.push_back(expected_bits(row, channel));
    }
    return result;
  }
  uint32_t expected_bits(uint32_t row, int64_t channel) const {
    float c = shape.numerics == OMNI_NUMERICS_GROUP ? group_sum(row, channel) : torch_sum(row, channel);
    if (shape.epilogue & OMNI_EPILOGUE_BIAS) c = c + bias.as<float>()[channel];
    if (shape.epilogue & OMNI_EPILOGUE_RESIDUAL) c = get(residual, shape.residual_type, row * ldy() + channel) + c;
    if (shape.y_type == OMNI_DTYPE_F32) return std::isnan(c) ? kF32NaN : std::bit_cast<uint32_t>(c);
    return shape.numerics == OMNI_NUMERICS_GROUP ? bf16_round_group(c) : bf16_round_torch(c);
  }

  std::vector<uint32_t> actual() const {
    std::vector<uint32_t> result;
    for (uint32_t row = 0; row < shape.m; ++row) {
      for (int64_t channel = 0; channel < shape.n; ++channel) {
        const int64_t i = row * ldy() + channel;
        result.push_back(shape.y_type == OMNI_DTYPE_F32 ? y.as<uint32_t>()[i] : y.as<uint16_t>()[i]);
      }
    }
    return result;
  }
  void clear_y() { std::memset(y.data(), 0x5A, y.size()); }
  // Columns beyond N and everything around y still hold what they held.
  bool padding_intact() const {
    const int64_t bytes = bytes_of(shape.y_type);
    for (uint32_t row = 0; row < shape.m; ++row) {
      for (int64_t i = (row * ldy() + shape.n) * bytes; i < (row + 1) * ldy() * bytes; ++i) {
        if (y.data()[i] != 0x5A) return false;
      }
    }
    return y.intact();
  }

  LinearShape shape;
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

  void pack() {
    codes = GuardedBuffer(static_cast<size_t>(tg4::packed_bytes(shape.n, shape.k)), shape.flush, 16, tg4::kPadByte);
    for (int64_t channel = 0; channel < shape.n; ++channel) {
      for (int64_t input = 0; input < shape.k; ++input) {
        const tg4::Position at = tg4::position(shape.n, shape.k, channel, input);
        uint8_t& byte = codes.data()[at.byte];
        byte = static_cast<uint8_t>((byte & ~(15 << at.shift)) | codes_[channel * shape.k + input] << at.shift);
      }
    }
  }
  void make_scales() {
    scales = make(shape.groups() * shape.n * 2, shape.scale_type);
    for (int64_t i = 0; i < shape.groups() * shape.n * 2; ++i) put(scales, shape.scale_type, i, i % 2 == 0 ? small() / 8 : small());
  }
  void make_x() {
    x = make(static_cast<int64_t>(shape.m) * ldx(), shape.x_type, 0xFF);  // NaN in the padding columns
    for (uint32_t row = 0; row < shape.m; ++row) {
      for (int64_t i = 0; i < shape.k; ++i) put(x, shape.x_type, row * ldx() + i, small());
    }
  }

  float scale(int64_t group, int64_t channel) const { return get(scales, shape.scale_type, (group * shape.n + channel) * 2); }
  float zero(int64_t group, int64_t channel) const { return get(scales, shape.scale_type, (group * shape.n + channel) * 2 + 1); }
  float input(uint32_t row, int64_t k) const { return get(x, shape.x_type, row * ldx() + k); }
  float weight(int64_t channel, int64_t k) const { return static_cast<float>(codes_[channel * shape.k + k]) - 8.0F; }

  float group_sum(uint32_t row, int64_t channel) const {
    float c = 0.0F;
    for (int64_t g = 0; g < shape.groups(); ++g) {
      const int64_t first = g * shape.group, end = std::min<int64_t>(first + shape.group, shape.k);
      const auto scrubbed = [&](int64_t k) {
        const float value = k < end ? input(row, k) : 0.0F;
        return std::fabs(value) < 0x1p-119F ? 0.0F : value;
      };
      const auto code = [&](int64_t k) { return k < end ? weight(channel, k) : 0.0F; };
      float d = 0.0F, sum = 0.0F;
      for (int64_t k = first; k < end; k += 2) {
        d = std::fma(scrubbed(k + 1), code(k + 1), d);
        d = std::fma(scrubbed(k), code(k), d);
        sum = std::fma(scrubbed(k + 1), 1.0F, sum);
        sum = std::fma(scrubbed(k), 1.0F, sum);
      }
      c = std::fma(scale(g, channel), d, c);
      c = std::fma(zero(g, channel), sum, c);
    }
    return c;
  }
  float torch_sum(uint32_t row, int64_t channel) const {
    float c = 0.0F;
    for (int64_t k = 0; k < shape.k; ++k) {
      const float w = std::fma(weight(channel, k), scale(k / shape.group, channel), zero(k / shape.group, channel));
      c = std::fma(input(row, k), w, c);
    }
    return c;
  }

  std::mt19937_64 random_;
  std::vector<uint8_t> codes_;
};

// A parallel_for that runs everything on the caller.
inline omni_parallel serial_parallel() {
  omni_parallel p{};
  p.size = sizeof p;
  p.threads = 1;
  p.parallel_for = [](void*, int64_t count, omni_task task, void* context) {
    for (int64_t i = 0; i < count; ++i) task(context, i);
  };
  return p;
}

}  // namespace okl::test
