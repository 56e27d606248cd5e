// SPDX-License-Identifier: Apache-2.0
// The questions of Spark layers to the operations beside the linear layers.
#pragma once

#include <cstdint>

#include "omni/omni.h"
#include "reference/core/plan_map.h"
#include "reference/spark/config.h"

namespace ref::spark {

class Plans : public PlanMap {
 public:
  Plans(const Config& config, omni_dtype cache, Backend& backend) : PlanMap(backend), config_(config), cache_(cache) {}

  // Rotates the query and key heads of a row of q, k, v.
  const omni_plan* rope(int64_t rot);
  // Over q, k and v in fp32; also appends.
  const omni_plan* attention(int64_t window, omni_dtype out_type);
  const omni_plan* geglu(omni_dtype x_type, omni_dtype y_type);
  const omni_plan* gate(const omni_headgate_query& query);

 private:
  const Config& config_;
  omni_dtype cache_;
};

}  // namespace ref::spark
