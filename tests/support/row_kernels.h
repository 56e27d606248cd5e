// SPDX-License-Identifier: Apache-2.0
// What the tests of element-wise operations share: the rows of an operation, plans, hard values.
#pragma once

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "kernels/cpu/machine.h"
#include "kernels/dispatch/kernel.h"
#include "kernels/format/bf16.h"
#include "omni/omni.h"

namespace okl::test {

struct PlanRelease {
  void operator()(omni_plan* plan) const { omni_plan_destroy(plan); }
};
using OwnedPlan = std::unique_ptr<omni_plan, PlanRelease>;

inline std::vector<std::string> kernels_of(Op op) {
  std::vector<std::string> names;
  for (const KernelRow& row : registry()) {
    if (row.op == op) names.emplace_back(row.name);
  }
  return names;
}

// One test for every row of an operation; rows that the machine lacks show as skipped.
class KernelTest : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    const KernelRow* row = find_kernel(GetParam());
    if (const IsaMask missing = row->required & ~hardware_isa(); missing != 0) GTEST_SKIP() << "needs " << isa_to_text(missing);
  }
  const char* kernel() const { return GetParam().c_str(); }
  const KernelRow& row() const { return *find_kernel(GetParam()); }
};

inline std::string kernel_test_name(const testing::TestParamInfo<std::string>& info) { return info.param; }

// Finite values over a wide range, with exact zeros of both signs among them.
inline float random_value(std::mt19937_64& random, int least_exponent = -20, int most_exponent = 4) {
  const uint64_t bits = random();
  if (bits % 37 == 0) return bits & 64 ? -0.0F : 0.0F;
  const float mantissa = 1.0F + static_cast<float>(bits >> 40) * 0x1p-24F;
  const int exponent = least_exponent + static_cast<int>((bits >> 8) % static_cast<uint64_t>(most_exponent - least_exponent + 1));
  return std::ldexp((bits & 32) != 0 ? -mantissa : mantissa, exponent);
}

inline bool same_bits(float a, float b) { return std::bit_cast<uint32_t>(a) == std::bit_cast<uint32_t>(b); }
inline float from_bits(uint32_t bits) { return std::bit_cast<float>(bits); }

// Floats as a buffer of `type` has them, and back.
inline void put(uint8_t* data, uint16_t type, int64_t index, float value) {
  if (type == OMNI_DTYPE_F32) {
    reinterpret_cast<float*>(data)[index] = value;
  } else {
    reinterpret_cast<uint16_t*>(data)[index] = bf16_round_ieee(value);
  }
}
inline float get(const uint8_t* data, uint16_t type, int64_t index) {
  if (type == OMNI_DTYPE_F32) return reinterpret_cast<const float*>(data)[index];
  return bf16_to_float(reinterpret_cast<const uint16_t*>(data)[index]);
}
inline uint32_t get_bits(const uint8_t* data, uint16_t type, int64_t index) {
  if (type == OMNI_DTYPE_F32) return reinterpret_cast<const uint32_t*>(data)[index];
  return type == OMNI_DTYPE_S8 ? data[index] : reinterpret_cast<const uint16_t*>(data)[index];
}
inline size_t bytes_of_type(uint16_t type) { return type == OMNI_DTYPE_F32 ? 4 : type == OMNI_DTYPE_S8 ? 1 : 2; }

}  // namespace okl::test
