// SPDX-License-Identifier: Apache-2.0
// RMSNorm of a residual stream, which first adds what a branch has left where the stream still lacks it.
#pragma once

#include <cstdint>
#include <vector>

#include "reference/core/plan_map.h"
#include "reference/core/rows.h"

namespace ref {

class StreamNorm {
 public:
  // Rows are as wide as `weight`; normed rows are of `y_type`.
  StreamNorm(std::vector<float> weight, double eps, omni_dtype y_type, PlanMap& plans);
  // Rows [first, rows) of the stream to rows.normed, of the type that it is then of; `pending`: rows.branch is added first.
  void run(const StreamRows& buffers, uint32_t first, uint32_t rows, bool pending, const Backend& backend) const;

  omni_dtype type() const { return type_; }
  const omni_plan* plan(bool adding) const { return adding ? adding_ : plain_; }
  uint64_t bytes() const { return weight_.size() * sizeof(float); }

 private:
  std::vector<float> weight_;
  omni_dtype type_;
  const omni_plan *plain_, *adding_;
};

}  // namespace ref
