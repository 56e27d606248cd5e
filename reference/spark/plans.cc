// SPDX-License-Identifier: Apache-2.0
#include "reference/spark/plans.h"

namespace ref::spark {

const omni_plan* Plans::rope(int64_t rot) {
  omni_rope_query query = {};
  query.type = OMNI_DTYPE_F32;
  query.heads = static_cast<uint32_t>(config_.heads + config_.kv_heads);
  query.head_dim = static_cast<uint32_t>(config_.head_dim);
  query.rot = static_cast<uint32_t>(rot);
  return find("rope", omni_rope_select, query);
}

const omni_plan* Plans::attention(int64_t window, omni_dtype out_type) {
  omni_attention_query query = {};
  query.cache_type = static_cast<uint16_t>(cache_);
  query.q_type = OMNI_DTYPE_F32;
  query.kv_type = OMNI_DTYPE_F32;
  query.out_type = static_cast<uint16_t>(out_type);
  query.heads = static_cast<uint32_t>(config_.heads);
  query.kv_heads = static_cast<uint32_t>(config_.kv_heads);
  query.head_dim = static_cast<uint32_t>(config_.head_dim);
  query.window = window;
  return PlanMap::attention(query);
}

const omni_plan* Plans::geglu(omni_dtype x_type, omni_dtype y_type) {
  omni_geglu_query query = {};
  query.x_type = static_cast<uint16_t>(x_type);
  query.y_type = static_cast<uint16_t>(y_type);
  query.n = config_.intermediate;
  return find("geglu", omni_geglu_select, query);
}

const omni_plan* Plans::gate(const omni_headgate_query& query) { return find("head gate", omni_headgate_select, query); }

}  // namespace ref::spark
