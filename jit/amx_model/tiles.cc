// SPDX-License-Identifier: Apache-2.0
#include "jit/amx_model/tiles.h"

#include <cmath>
#include <cstring>
#include <limits>

namespace okl::amx_model {
namespace {

constexpr int kPaletteAt = 0, kStartRowAt = 1, kRowBytesAt = 16, kRowsAt = 48;

bool all_zero(const uint8_t* bytes, int first, int last) {
  for (int i = first; i < last; ++i) {
    if (bytes[i] != 0) return false;
  }
  return true;
}

float flush(float value) { return std::fabs(value) < std::numeric_limits<float>::min() ? std::copysign(0.0F, value) : value; }

float widen(const uint8_t* bf16) {
  uint32_t bits = 0;
  std::memcpy(reinterpret_cast<uint8_t*>(&bits) + 2, bf16, 2);
  float value = 0;
  std::memcpy(&value, &bits, 4);
  return flush(value);
}

// fma(x, y, sum) for bf16 x and y. The product has 16 bits and is exact in double; the sum then rounds to 53 bits and to 24, which
// is one rounding: an inexact double lies no nearer to a tie of floats than 2^-53 of it, while 40 bits reach every such tie.
float multiply_add(float x, float y, float sum) {
  return flush(static_cast<float>(static_cast<double>(sum) + static_cast<double>(x) * static_cast<double>(y)));
}

template <typename A, typename B>
void accumulate(int32_t* sums, int columns, const uint8_t* a, const uint8_t* b) {
  for (int n = 0; n < columns; ++n) {
    int32_t sum = 0;  // four products of 8 bits each: at most 4 * 255 * 255
    for (int i = 0; i < 4; ++i)
      sum += static_cast<int32_t>(static_cast<A>(a[i])) * static_cast<int32_t>(static_cast<B>(b[4 * n + i]));
    sums[n] = static_cast<int32_t>(static_cast<uint32_t>(sums[n]) + static_cast<uint32_t>(sum));
  }
}

using Accumulate = void (*)(int32_t* sums, int columns, const uint8_t* a, const uint8_t* b);

}  // namespace

Fault Tiles::configure(const uint8_t* bytes) {
  const uint8_t palette = bytes[kPaletteAt];
  if (palette > 1) return Fault::kProtection;
  if (palette == 0) {
    release();
    return Fault::kNone;
  }
  if (!all_zero(bytes, 2, kRowBytesAt) || !all_zero(bytes, kRowBytesAt + 2 * kCount, kRowsAt) ||
      !all_zero(bytes, kRowsAt + kCount, kConfigurationBytes)) {
    return Fault::kProtection;
  }
  uint16_t row_bytes[kCount];
  std::memcpy(row_bytes, bytes + kRowBytesAt, sizeof row_bytes);
  for (int tile = 0; tile < kCount; ++tile) {
    const uint8_t rows = bytes[kRowsAt + tile];
    if (rows > kMaxRows || row_bytes[tile] > kMaxRowBytes || (rows == 0) != (row_bytes[tile] == 0)) return Fault::kProtection;
  }
  configured_ = true;
  start_row_ = bytes[kStartRowAt];
  std::memcpy(row_bytes_, row_bytes, sizeof row_bytes);
  std::memcpy(rows_, bytes + kRowsAt, sizeof rows_);
  clear_data();
  return Fault::kNone;
}

void Tiles::store_configuration(uint8_t* out) const {
  std::memset(out, 0, kConfigurationBytes);
  if (!configured_) return;
  out[kPaletteAt] = 1;
  out[kStartRowAt] = start_row_;
  std::memcpy(out + kRowBytesAt, row_bytes_, sizeof row_bytes_);
  std::memcpy(out + kRowsAt, rows_, sizeof rows_);
}

void Tiles::clear_data() { std::memset(data_, 0, sizeof data_); }

void Tiles::release() {
  configured_ = false;
  start_row_ = 0;
  std::memset(rows_, 0, sizeof rows_);
  std::memset(row_bytes_, 0, sizeof row_bytes_);
  clear_data();
}

Fault Tiles::zero(int tile) {
  if (!usable(tile)) return Fault::kUndefined;
  std::memset(data_[tile], 0, sizeof data_[tile]);
  start_row_ = 0;
  return Fault::kNone;
}

Fault Tiles::load(int tile, const uint8_t* first_row, int64_t stride) {
  if (!usable(tile)) return Fault::kUndefined;
  if (start_row_ == 0) std::memset(data_[tile], 0, sizeof data_[tile]);
  for (int row = start_row_; row < rows_[tile]; ++row) {
    std::memset(data_[tile][row], 0, kMaxRowBytes);
    std::memcpy(data_[tile][row], first_row + row * stride, row_bytes_[tile]);
  }
  start_row_ = 0;
  return Fault::kNone;
}

Fault Tiles::store(int tile, uint8_t* first_row, int64_t stride) {
  if (!usable(tile)) return Fault::kUndefined;
  for (int row = start_row_; row < rows_[tile]; ++row) std::memcpy(first_row + row * stride, data_[tile][row], row_bytes_[tile]);
  start_row_ = 0;
  return Fault::kNone;
}

Fault Tiles::check_dot(int dst, int a, int b) const {
  const bool shapes_fit = usable(dst) && usable(a) && usable(b) && row_bytes_[dst] % 4 == 0 && row_bytes_[a] % 4 == 0 &&
                          row_bytes_[b] % 4 == 0 && rows_[a] == rows_[dst] && row_bytes_[a] / 4 == rows_[b] &&
                          row_bytes_[b] == row_bytes_[dst];
  return shapes_fit && dst != a && a != b && b != dst ? Fault::kNone : Fault::kUndefined;
}

Fault Tiles::dot_int8(int dst, int a, int b, bool a_signed, bool b_signed) {
  if (const Fault fault = check_dot(dst, a, b); fault != Fault::kNone) return fault;
  constexpr Accumulate kKinds[2][2] = {{accumulate<uint8_t, uint8_t>, accumulate<uint8_t, int8_t>},
                                       {accumulate<int8_t, uint8_t>, accumulate<int8_t, int8_t>}};
  const Accumulate add = kKinds[a_signed ? 1 : 0][b_signed ? 1 : 0];
  for (int m = 0; m < rows_[dst]; ++m) {
    int32_t sums[kMaxRowBytes / 4];
    std::memcpy(sums, data_[dst][m], sizeof sums);
    for (int k = 0; k < row_bytes_[a] / 4; ++k) add(sums, row_bytes_[dst] / 4, data_[a][m] + 4 * k, data_[b][k]);
    std::memcpy(data_[dst][m], sums, sizeof sums);
  }
  for (int m = rows_[dst]; m < kMaxRows; ++m) std::memset(data_[dst][m], 0, kMaxRowBytes);
  start_row_ = 0;
  return Fault::kNone;
}

Fault Tiles::dot_bf16(int dst, int a, int b) {
  if (const Fault fault = check_dot(dst, a, b); fault != Fault::kNone) return fault;
  const int columns = row_bytes_[dst] / 4;
  for (int m = 0; m < rows_[dst]; ++m) {
    float chains[2][kMaxRowBytes / 4] = {};
    for (int k = 0; k < row_bytes_[a] / 4; ++k) {
      const float x[2] = {widen(data_[a][m] + 4 * k), widen(data_[a][m] + 4 * k + 2)};
      for (int n = 0; n < columns; ++n) {
        for (int half = 0; half < 2; ++half) {
          chains[half][n] = multiply_add(x[half], widen(data_[b][k] + 4 * n + 2 * half), chains[half][n]);
        }
      }
    }
    float sums[kMaxRowBytes / 4];
    std::memcpy(sums, data_[dst][m], sizeof sums);
    for (int n = 0; n < columns; ++n) sums[n] = flush(flush(sums[n]) + flush(chains[0][n] + chains[1][n]));
    std::memcpy(data_[dst][m], sums, sizeof sums);
  }
  for (int m = rows_[dst]; m < kMaxRows; ++m) std::memset(data_[dst][m], 0, kMaxRowBytes);
  start_row_ = 0;
  return Fault::kNone;
}

}  // namespace okl::amx_model
