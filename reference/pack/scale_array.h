// SPDX-License-Identifier: Apache-2.0
// The scale array of a matrix, filled row by row: it is ordered by group first, so that a slice of rows has no piece of its own.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "omni/omni.h"

namespace ref {

class ScaleArray {
 public:
  explicit ScaleArray(const omni_layout& layout);

  // Rows [n0, n0 + rows) of tg4 or w4s: scales and zero points [rows][groups]. A bf16 array rounds; the plan has seen to it that it
  // need not, save for zeros where that was asked for.
  void store(int64_t n0, int64_t rows, const float* scales, const uint8_t* zeros);
  // Of w8s.
  void store(int64_t n0, int64_t rows, const float* scales);
  // What row n and group g will be multiplied and shifted with.
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
