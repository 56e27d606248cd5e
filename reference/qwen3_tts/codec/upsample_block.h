// SPDX-License-Identifier: Apache-2.0
// A block of the waveform decoder: SnakeBeta, a transposed convolution that makes `rate` rows of one, three residual units.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "reference/qwen3_tts/codec/parts.h"

namespace ref::tts {

// Rows that are of no use between two operations: one for all blocks.
struct BlockScratch {
  Rows2d inner;   // fp32
  Rows2d narrow;  // of what the second convolution of a unit takes, where that is not fp32
};

// x + conv(snake(conv(snake(x)))), the first of 7 taps, dilated, the second of one.
class ResidualUnit {
 public:
  ResidualUnit(const ModelContext& context, const std::string& name, int64_t channels, int64_t dilation, int64_t most_rows);

  void place(Placement* placement) { input_.place(placement, most_rows_); }
  void reset() const { input_.reset(); }
  int64_t history() const { return input_.history(); }
  // x in place. `laps`: stages of snake, wide convolution, narrow convolution, history.
  struct Laps {
    size_t snake, wide, narrow, history;
  };
  void run(uint32_t rows, const Rows2d& x, const BlockScratch& scratch, const Laps& laps, StageClock* clock) const;

  size_t state_bytes() const { return input_.bytes(); }
  uint64_t weight_bytes() const { return act1_.bytes() + wide_.bytes() + act2_.bytes() + narrow_.bytes(); }
  void describe(std::vector<std::string>* lines) const;

 private:
  int64_t most_rows_;
  Conv1d wide_, narrow_;
  HistoryRows input_;  // of wide_
  Snake act1_, act2_;
};

class UpsampleBlock {
 public:
  struct Shape {
    int64_t index;  // of the block, from 1
    int64_t inputs, outputs, rate;
    int64_t most_rows;  // of input
  };
  UpsampleBlock(const ModelContext& context, const Shape& shape, StageClock* clock);

  void place(Placement* placement);
  void reset() const;
  // rows * rate rows of output() from fp32 rows of x, the first of which stands at `position` of all that this block gets.
  void run(const Rows2d& x, uint32_t rows, int64_t position, const BlockScratch& scratch, StageClock* clock,
           Observer* observer) const;
  const Rows2d& output() const { return output_; }
  // Rows of input before a row whose outputs all have `outputs` rows before them that are right.
  int64_t looks_back(int64_t outputs) const;

  const Shape& shape() const { return shape_; }
  // Elements of what the block needs of each part of the scratch.
  int64_t scratch_elements() const { return shape_.most_rows * shape_.rate * shape_.outputs; }
  size_t state_bytes() const;
  uint64_t weight_bytes() const;
  void describe(std::vector<std::string>* lines) const;

 private:
  Shape shape_;
  std::string label_;
  Conv1d tconv_;
  HistoryRows input_;  // of tconv_
  Snake act_;
  std::vector<ResidualUnit> units_;
  Rows2d output_;
  size_t snake_lap_, tconv_lap_;
  ResidualUnit::Laps laps_;
};

}  // namespace ref::tts
