// SPDX-License-Identifier: Apache-2.0
// The scale array of a matrix, filled row by row: it is ordered by group first, so that a slice of rows has no piece of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "omni/omni.h"
#include "reference/pack/quantiser.h"

namespace ref {

class ScaleArray {
 public:
  explicit ScaleArray(const omni_layout& layout);

  // Rows [n0, n0 + rows) of tg4 or w4s, [rows][groups]. Throws Error for a number that a bf16 array cannot hold: the plan has to
  // see to it that there is none.
  void store(int64_t n0, int64_t rows, const QuantisedRows& quantised);
  // Of w8s.
  void store(int64_t n0, int64_t rows, const float* scales);
  std::span<const std::byte> bytes() const { return bytes_; }
  // Without and with the zero points that follow the scales of w4s.
  size_t scale_bytes() const { return scale_bytes_; }

 private:
  void put(size_t element, float value);

  omni_layout layout_;
  int64_t groups_;
  size_t scale_bytes_;
  std::vector<std::byte> bytes_;
};

}  // namespace ref
