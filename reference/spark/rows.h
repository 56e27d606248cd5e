// SPDX-License-Identifier: Apache-2.0
// Rows of activations, and the buffers that the layers of one sequence share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reference/core/memory.h"
#include "reference/spark/config.h"

namespace ref::spark {

// [rows][ld] elements of `type`.
struct Rows2d {
  std::byte* data = nullptr;
  omni_dtype type = OMNI_DTYPE_F32;
  int64_t ld = 0;

  std::byte* at(int64_t row, int64_t column = 0) const { return data + (row * ld + column) * element_bytes(type); }
  float* f32(int64_t row, int64_t column = 0) const { return reinterpret_cast<float*>(at(row, column)); }
  Rows2d as(omni_dtype other) const { return {data, other, ld}; }
};

// Buffers for `rows` rows, all in one block. Each is as wide as fp32 needs; its users say what it holds.
class Activations {
 public:
  Activations(const Config& config, int64_t rows) : memory_(layout(config, rows, nullptr)) { layout(config, rows, memory_.data()); }

  Rows2d stream;     // residual stream, fp32
  Rows2d branch;     // what a branch adds to it, fp32
  Rows2d normed;     // input of the linear layers
  Rows2d qkv;        // fp32
  Rows2d attention;  // heads' outputs
  Rows2d gate_up;    // where qkv and attention were, which are done with by then
  Rows2d product;    // of GEGLU
  Rows2d gates;      // one for each head, fp32; written for an observer only
  int32_t* positions = nullptr;

 private:
  size_t layout(const Config& config, int64_t rows, std::byte* base) {
    size_t offset = 0;
    const auto place = [&](Rows2d* out, int64_t columns) {
      *out = {base + offset, OMNI_DTYPE_F32, columns};
      offset += aligned64(static_cast<size_t>(rows * columns) * sizeof(float));
    };
    for (Rows2d* each : {&stream, &branch, &normed}) place(each, config.hidden);
    place(&gates, config.heads);
    positions = reinterpret_cast<int32_t*>(base + offset);
    offset += aligned64(static_cast<size_t>(rows) * sizeof(int32_t));
    const size_t shared = offset;
    place(&qkv, config.qkv_rows());
    place(&attention, config.attention_width());
    const size_t first_end = offset;
    offset = shared;
    place(&gate_up, 2 * config.intermediate);
    place(&product, config.intermediate);
    return std::max(first_end, offset);
  }

  Memory memory_;
};

}  // namespace ref::spark
