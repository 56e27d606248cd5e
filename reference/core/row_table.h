// SPDX-License-Identifier: Apache-2.0
// Rows of a plain tensor by number, widened to fp32 as they are read: a mapped table of any size costs what is read of it.
#pragma once

#include <cstdint>
#include <cstring>

#include "reference/core/check.h"
#include "reference/core/half.h"
#include "reference/core/model_weights.h"

namespace ref {

class RowTable {
 public:
  // [rows][columns]; the bytes are borrowed.
  explicit RowTable(const Plain& plain)
      : type_(plain.type), rows_(plain.shape.at(0)), columns_(plain.shape.at(1)), data_(plain.bytes.data()) {}

  int64_t rows() const { return rows_; }
  int64_t columns() const { return columns_; }
  uint64_t row_bytes() const { return static_cast<uint64_t>(columns_ * element_bytes(type_)); }
  // The row must exist.
  void copy(int64_t row, float* out) const {
    each(row, [out](int64_t i, float value) { out[i] = value; });
  }
  void add(int64_t row, float* out) const {
    each(row, [out](int64_t i, float value) { out[i] += value; });
  }

 private:
  template <typename Take>
  void each(int64_t row, const Take& take) const {
    const std::byte* from = data_ + static_cast<uint64_t>(row) * row_bytes();
    if (type_ == OMNI_DTYPE_F32) {
      const auto* values = reinterpret_cast<const float*>(from);
      for (int64_t i = 0; i < columns_; ++i) take(i, values[i]);
      return;
    }
    const auto* values = reinterpret_cast<const uint16_t*>(from);
    if (type_ == OMNI_DTYPE_BF16) {
      for (int64_t i = 0; i < columns_; ++i) take(i, widen_bf16(values[i]));
    } else {
      for (int64_t i = 0; i < columns_; ++i) take(i, widen_f16(values[i]));
    }
  }

  omni_dtype type_;
  int64_t rows_, columns_;
  const std::byte* data_;
};

}  // namespace ref
