// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/model/head_groups.h"

#include <algorithm>
#include <atomic>
#include <string>

#include "reference/core/parallel.h"

namespace ref::tts {
namespace {

// A group stays on its thread.
constexpr omni_parallel kAlone = {sizeof(omni_parallel), 1, nullptr, [](void*, int64_t count, omni_task task, void* context) {
                                    for (int64_t i = 0; i < count; ++i) task(context, i);
                                  }};

const omni_plan* plan_norm(const StackShape& shape, int64_t q_heads, int64_t k_heads, PlanMap& plans) {
  omni_headnorm_query query = {};
  query.type = OMNI_DTYPE_F32;
  query.q_heads = static_cast<uint32_t>(q_heads);
  query.k_heads = static_cast<uint32_t>(k_heads);
  query.head_dim = static_cast<uint32_t>(shape.head_dim);
  query.eps = static_cast<float>(shape.eps);
  return plans.find("norm of heads", omni_headnorm_select, query);
}

const omni_plan* plan_rope(const StackShape& shape, int64_t heads, PlanMap& plans) {
  omni_rope_query query = {};
  query.type = OMNI_DTYPE_F32;
  query.heads = static_cast<uint32_t>(heads);
  query.head_dim = static_cast<uint32_t>(shape.head_dim);
  query.rot = static_cast<uint32_t>(shape.head_dim);
  return plans.find("rope", omni_rope_select, query);
}

const omni_plan* plan_attention(const StackShape& shape, int64_t groups, omni_dtype cache, omni_dtype out_type, PlanMap& plans) {
  omni_attention_query query = {};
  query.cache_type = static_cast<uint16_t>(cache);
  query.q_type = OMNI_DTYPE_F32;
  query.kv_type = OMNI_DTYPE_F32;
  query.out_type = static_cast<uint16_t>(out_type);
  query.heads = static_cast<uint32_t>(shape.heads / groups);
  query.kv_heads = static_cast<uint32_t>(shape.kv_heads / groups);
  query.head_dim = static_cast<uint32_t>(shape.head_dim);
  query.max_m = plans.backend().max_rows;
  query.max_threads = 1;
  return plans.find("attention", omni_attention_select, query);
}

}  // namespace

int64_t HeadGroups::count_for(const StackShape& shape, const Backend& backend) {
  for (int64_t groups = 1; groups < shape.kv_heads; ++groups) {
    if (shape.kv_heads % groups == 0 && groups >= static_cast<int64_t>(backend.parallel.threads)) return groups;
  }
  return shape.kv_heads;
}

HeadGroups::HeadGroups(const StackShape& shape, omni_dtype cache, PlanMap& plans)
    : backend_(plans.backend()),
      groups_(count_for(shape, backend_)),
      q_width_(shape.q_width() / groups_),
      kv_width_(shape.kv_width() / groups_),
      k_column_(shape.q_width()),
      v_column_(shape.q_width() + shape.kv_width()),
      q_norm_(plan_norm(shape, shape.heads / groups_, 0, plans)),
      k_norm_(plan_norm(shape, 0, shape.kv_heads / groups_, plans)),
      q_rope_(plan_rope(shape, shape.heads / groups_, plans)),
      k_rope_(plan_rope(shape, shape.kv_heads / groups_, plans)),
      to_fp32_(plan_attention(shape, groups_, cache, OMNI_DTYPE_F32, plans)),
      to_bf16_(plan_attention(shape, groups_, cache, OMNI_DTYPE_BF16, plans)) {
  for (uint32_t rows = 1; rows <= backend_.max_rows; ++rows) {  // no rising function of the rows; the same for both outputs
    size_t bytes = 0;
    check(omni_attention_workspace_size(to_fp32_, rows, &bytes), "attention");
    workspace_bytes_ = std::max(workspace_bytes_, aligned64(bytes));
  }
  workspace_ = Memory(static_cast<size_t>(groups_) * workspace_bytes_);
}

void HeadGroups::run(const Call& call) const {
  if (groups_ == 1) {
    check(run_group(call, 0), "attention");
    return;
  }
  // An error's text belongs to the thread that it is met on.
  std::atomic<bool> failed = false;
  std::string problem;
  parallel_for(&backend_.parallel, groups_, [&](int64_t group) {
    if (run_group(call, group) != OMNI_OK && !failed.exchange(true)) problem = omni_last_error();
  });
  if (failed) throw Error("attention: " + problem);
}

omni_status HeadGroups::run_group(const Call& call, int64_t group) const {
  if (const omni_status status = norm(call, group); status != OMNI_OK) return status;
  if (const omni_status status = rotate(call, q_rope_, group * q_width_); status != OMNI_OK) return status;
  if (const omni_status status = rotate(call, k_rope_, k_column_ + group * kv_width_); status != OMNI_OK) return status;
  return attend(call, group);
}

omni_status HeadGroups::norm(const Call& call, int64_t group) const {
  omni_headnorm_args args = {};
  args.size = sizeof args;
  args.m = call.rows;
  args.x = call.qkv.at(0, group * q_width_);
  args.ldx = call.qkv.ld;
  args.q_weight = call.q_norm;
  args.k_weight = call.k_norm;
  args.parallel = &kAlone;
  if (const omni_status status = omni_headnorm_run(q_norm_, &args); status != OMNI_OK) return status;
  args.x = call.qkv.at(0, k_column_ + group * kv_width_);
  return omni_headnorm_run(k_norm_, &args);
}

omni_status HeadGroups::rotate(const Call& call, const omni_plan* plan, int64_t column) const {
  omni_rope_args args = {};
  args.size = sizeof args;
  args.m = call.rows;
  args.x = call.qkv.at(0, column);
  args.ldx = call.qkv.ld;
  args.positions = call.positions;
  args.table = call.rope.data();
  args.table_bytes = call.rope.made_bytes();
  args.p0 = 0;
  args.p1 = call.rope.made();
  args.parallel = &kAlone;
  return omni_rope_run(plan, &args);
}

// Keys and values of every row into the cache; then the rows that are read.
omni_status HeadGroups::attend(const Call& call, int64_t group) const {
  const omni_plan* plan = attention_plan(call.heads.type);
  omni_attention_append_args keys = {};
  keys.size = sizeof keys;
  keys.rows = call.rows;
  keys.position = call.position;
  keys.cache = &call.caches.layer(call.first_cache + group);
  keys.k = call.qkv.at(0, k_column_ + group * kv_width_);
  keys.ldk = call.qkv.ld;
  keys.v = call.qkv.at(0, v_column_ + group * kv_width_);
  keys.ldv = call.qkv.ld;
  keys.parallel = &kAlone;
  if (const omni_status status = omni_attention_append(plan, &keys); status != OMNI_OK) return status;

  omni_attention_args args = {};
  args.size = sizeof args;
  args.m = call.rows - call.skip;
  args.position = call.position + call.skip;
  args.cache = keys.cache;
  args.q = call.qkv.at(call.skip, group * q_width_);
  args.ldq = call.qkv.ld;
  args.out = call.heads.at(call.skip, group * q_width_);
  args.ld_out = call.heads.ld;
  args.workspace = workspace_.data() + static_cast<size_t>(group) * workspace_bytes_;
  args.workspace_bytes = workspace_bytes_;
  args.parallel = &kAlone;
  return omni_attention_run(plan, &args);
}

}  // namespace ref::tts
