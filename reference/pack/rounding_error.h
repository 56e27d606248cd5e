// SPDX-License-Identifier: Apache-2.0
// How far stored weights are from the given ones.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "omni/omni.h"
#include "reference/pack/quantiser.h"

namespace ref {

// The first element that no quantiser can take (NaN, or beyond 1e15 in magnitude), as row * k + column.
std::optional<int64_t> find_unusable(const float* w, int64_t rows, int64_t k, const omni_parallel* parallel);

// Sums of squares, row by row in order, so that they do not depend on threads.
class RoundingError {
 public:
  explicit RoundingError(const omni_parallel* parallel) : parallel_(parallel) {}

  // 4-bit rows.
  void add(const float* w, int64_t rows, int64_t k, int64_t group, const QuantisedRows& stored);
  void add_int8(const float* w, int64_t rows, int64_t k, int64_t group, const int8_t* codes, const float* scales);
  // bf16, where values below 2^-56 in magnitude become 0.
  void add_bf16(const float* w, int64_t rows, int64_t k);
  // sqrt(sum (w - w')^2 / sum w^2); 0 when all weights are 0.
  double relative() const;

 private:
  template <typename Stored>
  void add_rows(const float* w, int64_t rows, int64_t k, const Stored& stored);

  const omni_parallel* parallel_;
  double error_ = 0, energy_ = 0;
};

}  // namespace ref
