// SPDX-License-Identifier: Apache-2.0
// The gate of an attention's heads: weights packed once, applied in place.
#pragma once

#include <vector>

#include "reference/core/model_weights.h"
#include "reference/spark/plans.h"
#include "reference/spark/rows.h"

namespace ref::spark {

class HeadGate {
 public:
  // `bias` is empty or has an element for each head.
  HeadGate(const Config& config, const Plain& weights, std::vector<float> bias, omni_dtype x_type, omni_dtype value_type,
           Plans& plans);

  // values[row][head] *= gate of x[row]; `gates` receives them unless it is nullptr.
  void run(uint32_t rows, const std::byte* x, int64_t ldx, std::byte* values, int64_t ld_values, float* gates,
           const Backend& backend) const;
  uint64_t bytes() const { return packed_.size(); }
  const omni_plan* plan() const { return plan_; }

 private:
  uint32_t heads_;
  Memory packed_;
  std::vector<float> bias_;
  const omni_plan* plan_;
};

}  // namespace ref::spark
