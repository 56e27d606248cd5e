// SPDX-License-Identifier: Apache-2.0
// The buffers of activations that the layers of one sequence share.
#pragma once

#include <algorithm>
#include <cstdint>

#include "reference/core/memory.h"
#include "reference/core/rows.h"
#include "reference/spark/config.h"

namespace ref::spark {

// Buffers for `rows` rows, all in one block. Each is as wide as fp32 needs; its users say what it holds.
class Activations : public StreamRows {
 public:
  Activations(const Config& config, int64_t rows) : memory_(layout(config, rows, nullptr)) { layout(config, rows, memory_.data()); }

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
