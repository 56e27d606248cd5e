// SPDX-License-Identifier: Apache-2.0
// Rows in fp32 as a linear layer takes them: themselves, or rounded to bf16 in a buffer.
#pragma once

#include <cstdint>

#include "reference/core/half.h"
#include "reference/core/memory.h"

namespace ref {

class RowCast {
 public:
  // For up to `rows` rows of `columns`.
  RowCast(omni_dtype type, int64_t rows, int64_t columns)
      : type_(type),
        columns_(columns),
        buffer_(type == OMNI_DTYPE_F32 ? 0 : static_cast<size_t>(rows * columns) * sizeof(uint16_t)) {}

  // [rows][columns], without gaps. Never allocates.
  const void* operator()(const float* x, int64_t rows) const {
    if (type_ == OMNI_DTYPE_F32) return x;
    auto* out = reinterpret_cast<uint16_t*>(buffer_.data());
    for (int64_t i = 0; i < rows * columns_; ++i) out[i] = round_bf16(x[i]);
    return out;
  }
  omni_dtype type() const { return type_; }

 private:
  omni_dtype type_;
  int64_t columns_;
  Memory buffer_;
};

}  // namespace ref
