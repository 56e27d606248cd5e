// SPDX-License-Identifier: Apache-2.0
#include "jit/amx_model/vector_dot.h"

#include <algorithm>
#include <cstring>
#include <limits>

namespace okl::amx_model {
namespace {

int64_t byte_products(const uint8_t* a, const uint8_t* b) {
  int64_t sum = 0;
  for (int i = 0; i < 4; ++i) sum += int64_t{a[i]} * static_cast<int8_t>(b[i]);
  return sum;
}

int64_t word_products(const uint8_t* a, const uint8_t* b) {
  int16_t x[2], y[2];
  std::memcpy(x, a, sizeof x);
  std::memcpy(y, b, sizeof y);
  return int64_t{x[0]} * y[0] + int64_t{x[1]} * y[1];
}

int32_t saturate(int64_t value) {
  using Limits = std::numeric_limits<int32_t>;
  return static_cast<int32_t>(std::clamp<int64_t>(value, Limits::min(), Limits::max()));
}

}  // namespace

void vector_dot(Opcode opcode, VectorBytes& sum, const VectorBytes& a, const VectorBytes& b, int bytes) {
  const bool words = opcode == Opcode::kVpdpwssd || opcode == Opcode::kVpdpwssds;
  const bool saturates = opcode == Opcode::kVpdpbusds || opcode == Opcode::kVpdpwssds;
  for (int at = 0; at < bytes; at += 4) {
    int32_t lane = 0;
    std::memcpy(&lane, sum.data() + at, 4);
    const int64_t total =
        lane + (words ? word_products(a.data() + at, b.data() + at) : byte_products(a.data() + at, b.data() + at));
    lane = saturates ? saturate(total) : static_cast<int32_t>(static_cast<uint32_t>(total));
    std::memcpy(sum.data() + at, &lane, 4);
  }
}

}  // namespace okl::amx_model
