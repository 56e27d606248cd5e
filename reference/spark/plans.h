// SPDX-License-Identifier: Apache-2.0
// Plans of the operations beside the linear layers, made once for each question and shared by all layers.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "omni/omni.h"
#include "reference/core/backend.h"
#include "reference/spark/config.h"

namespace ref::spark {

class Plans {
 public:
  Plans(const Config& config, omni_dtype cache, Backend& backend) : config_(config), cache_(cache), backend_(backend) {}

  // Norm of fp32 rows of the residual stream; `add`: of the stream plus what a branch left, which is added first.
  const omni_plan* norm(omni_dtype y_type, bool add);
  // Rotates the query and key heads of a row of q, k, v.
  const omni_plan* rope(int64_t rot);
  // Over q, k and v in fp32; also appends.
  const omni_plan* attention(int64_t window, omni_dtype out_type);
  const omni_plan* geglu(omni_dtype x_type, omni_dtype y_type);
  const omni_plan* gate(const omni_headgate_query& query);

 private:
  template <typename Query>
  const omni_plan* find(const std::string& key, omni_status (*select)(const Query*, omni_plan**), Query query);

  const Config& config_;
  omni_dtype cache_;
  Backend& backend_;
  std::map<std::string, Plan> plans_;
};

}  // namespace ref::spark
