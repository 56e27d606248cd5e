// SPDX-License-Identifier: Apache-2.0
// Rows of activations, and those that the residual stream of a decoder is made of.
#pragma once

#include <cstddef>
#include <cstdint>

#include "reference/core/check.h"

namespace ref {

// [rows][ld] elements of `type`.
struct Rows2d {
  std::byte* data = nullptr;
  omni_dtype type = OMNI_DTYPE_F32;
  int64_t ld = 0;

  std::byte* at(int64_t row, int64_t column = 0) const { return data + (row * ld + column) * element_bytes(type); }
  float* f32(int64_t row, int64_t column = 0) const { return reinterpret_cast<float*>(at(row, column)); }
  Rows2d as(omni_dtype other) const { return {data, other, ld}; }
};

struct StreamRows {
  Rows2d stream;  // residual stream, fp32
  Rows2d branch;  // what a branch adds to it, fp32
  Rows2d normed;  // input of the linear layers
};

}  // namespace ref
