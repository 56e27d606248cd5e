// SPDX-License-Identifier: Apache-2.0
// What a convolution reads: the last rows of the calls before, and behind them the new ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "reference/core/memory.h"
#include "reference/core/rows.h"

namespace ref::tts {

// Puts rows into one block of memory. The first pass, over no memory, counts its bytes.
class Placement {
 public:
  explicit Placement(std::byte* base) : base_(base) {}

  std::byte* bytes(size_t count) {
    std::byte* here = base_ == nullptr ? nullptr : base_ + used_;
    used_ += aligned64(count);
    return here;
  }
  Rows2d rows(omni_dtype type, int64_t count, int64_t columns) {
    return {bytes(static_cast<size_t>(count * columns * element_bytes(type))), type, columns};
  }
  size_t used() const { return used_; }

 private:
  std::byte* base_;
  size_t used_ = 0;
};

class HistoryRows {
 public:
  HistoryRows() = default;
  HistoryRows(omni_dtype type, int64_t columns, int64_t history) : type_(type), columns_(columns), history_(history) {}

  // For up to `most` new rows.
  void place(Placement* placement, int64_t most) { all_ = placement->rows(type_, history_ + most, columns_); }
  // The row that a causal convolution begins at; new rows begin at fresh().
  std::byte* first() const { return all_.at(0); }
  Rows2d fresh() const { return {all_.at(history_), type_, columns_}; }
  // The last of `rows` new rows become history.
  void advance(int64_t rows) const { std::memmove(all_.at(0), all_.at(rows), bytes()); }
  // Before the first row of a stream stand zeros.
  void reset() const { std::memset(all_.at(0), 0, bytes()); }

  omni_dtype type() const { return type_; }
  int64_t columns() const { return columns_; }
  int64_t history() const { return history_; }
  // Of the history: what a stream has to keep.
  size_t bytes() const { return static_cast<size_t>(history_ * columns_ * element_bytes(type_)); }

 private:
  omni_dtype type_ = OMNI_DTYPE_F32;
  int64_t columns_ = 0, history_ = 0;
  Rows2d all_;
};

}  // namespace ref::tts
