// SPDX-License-Identifier: Apache-2.0
#include "reference/spark/plans.h"

namespace ref::spark {

template <typename Query>
const omni_plan* Plans::find(const std::string& key, omni_status (*select)(const Query*, omni_plan**), Query query) {
  Plan& known = plans_[key];
  if (known) return known.get();
  query.size = sizeof query;
  query.max_isa = backend_.isa();
  omni_plan* plan = nullptr;
  check(select(&query, &plan), key.c_str());
  known.reset(plan);
  return plan;
}

const omni_plan* Plans::norm(omni_dtype y_type, bool add) {
  omni_rmsnorm_query query = {};
  query.x_type = OMNI_DTYPE_F32;
  query.weight_type = OMNI_DTYPE_F32;
  query.residual_type = add ? OMNI_DTYPE_F32 : OMNI_DTYPE_NONE;
  query.y_type = static_cast<uint16_t>(y_type);
  query.rounding = OMNI_RMSNORM_ONE_ROUNDING;
  query.n = config_.hidden;
  query.eps = static_cast<float>(config_.eps);
  return find("norm " + std::to_string(y_type) + (add ? "+" : ""), omni_rmsnorm_select, query);
}

const omni_plan* Plans::rope(int64_t rot) {
  omni_rope_query query = {};
  query.type = OMNI_DTYPE_F32;
  query.heads = static_cast<uint32_t>(config_.heads + config_.kv_heads);
  query.head_dim = static_cast<uint32_t>(config_.head_dim);
  query.rot = static_cast<uint32_t>(rot);
  return find("rope " + std::to_string(rot), omni_rope_select, query);
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
  query.max_m = backend_.max_rows;
  query.max_threads = backend_.parallel.threads;
  query.window = window;
  const omni_plan* plan =
      find("attention " + std::to_string(window) + " " + std::to_string(out_type), omni_attention_select, query);
  for (uint32_t rows = 1; rows <= backend_.max_rows; ++rows) {
    size_t bytes = 0;
    check(omni_attention_workspace_size(plan, rows, &bytes), "attention");
    backend_.need_workspace(bytes);
  }
  return plan;
}

const omni_plan* Plans::geglu(omni_dtype x_type, omni_dtype y_type) {
  omni_geglu_query query = {};
  query.x_type = static_cast<uint16_t>(x_type);
  query.y_type = static_cast<uint16_t>(y_type);
  query.n = config_.intermediate;
  return find("geglu " + std::to_string(x_type) + " " + std::to_string(y_type), omni_geglu_select, query);
}

const omni_plan* Plans::gate(const omni_headgate_query& query) {
  return find(
      "gate " + std::to_string(query.x_type) + " " + std::to_string(query.weight_type) + " " + std::to_string(query.value_type),
      omni_headgate_select, query);
}

}  // namespace ref::spark
