// SPDX-License-Identifier: Apache-2.0
// A dense convolution over rows of time: a packed matrix of (tap, channel) inputs, its bias, and the plan that serves it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "omni/omni.h"
#include "reference/core/linear.h"
#include "reference/core/plan_map.h"

namespace ref {

struct Conv1dShape {
  int64_t inputs = 0, outputs = 0;  // channels; of a transposed one: stride times as many outputs
  int64_t taps = 1, dilation = 1, stride = 1;

  // Rows of input before the one that an output row stands at.
  int64_t history() const { return (taps - 1) * dilation; }
};

// What rows it takes: those of row_type(), but fp32 where pairs of bf16 would straddle two taps.
omni_dtype conv1d_row_type(const Matrix& matrix, const Conv1dShape& shape, const RowPolicy& policy);

class Conv1d {
 public:
  // Throws Error naming `name` for a matrix whose bytes do not fit its layout. `bias` is empty or has as many as outputs.
  // `most_rows`: output rows of a run.
  Conv1d(std::string name, const Matrix& matrix, std::vector<float> bias, const Conv1dShape& shape, omni_dtype x_type,
         const LinearOutput& output, uint32_t most_rows, PlanMap& plans);

  // y[rows][outputs] from x, which begins at the first row that output row 0 reads. Never allocates.
  void run(uint32_t rows, const void* x, int64_t ldx, void* y, int64_t ldy) const;

  const Conv1dShape& shape() const { return shape_; }
  omni_dtype x_type() const { return x_type_; }
  uint64_t bytes() const { return matrix_.codes.size() + bias_.size() * sizeof(float); }
  std::string describe(const std::string& what) const;

 private:
  std::string name_;
  Matrix matrix_;
  std::vector<float> bias_;
  Conv1dShape shape_;
  omni_dtype x_type_;
  bool add_;
  const Backend* backend_;
  const omni_plan* plan_;
};

}  // namespace ref
