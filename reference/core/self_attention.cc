// SPDX-License-Identifier: Apache-2.0
#include "reference/core/self_attention.h"

namespace ref {
namespace {

const omni_plan* rope_plan(const AttentionShape& shape, PlanMap& plans) {
  omni_rope_query query = {};
  query.type = OMNI_DTYPE_F32;
  query.heads = static_cast<uint32_t>(shape.heads + shape.kv_heads);
  query.head_dim = static_cast<uint32_t>(shape.head_dim);
  query.rot = static_cast<uint32_t>(shape.head_dim);
  return plans.find("rope", omni_rope_select, query);
}

const omni_plan* attention_plan(const AttentionShape& shape, omni_dtype out_type, PlanMap& plans) {
  omni_attention_query query = {};
  query.cache_type = static_cast<uint16_t>(shape.cache);
  query.q_type = OMNI_DTYPE_F32;
  query.kv_type = OMNI_DTYPE_F32;
  query.out_type = static_cast<uint16_t>(out_type);
  query.heads = static_cast<uint32_t>(shape.heads);
  query.kv_heads = static_cast<uint32_t>(shape.kv_heads);
  query.head_dim = static_cast<uint32_t>(shape.head_dim);
  query.window = shape.window;
  return plans.attention(query);
}

}  // namespace

SelfAttention::SelfAttention(const AttentionShape& shape, omni_dtype out_type, PlanMap& plans)
    : shape_(shape),
      out_type_(out_type),
      backend_(&plans.backend()),
      rope_plan_(ref::rope_plan(shape, plans)),
      attention_plan_(ref::attention_plan(shape, out_type, plans)) {}

void SelfAttention::run(const Call& call) const {
  const int64_t q_width = shape_.heads * shape_.head_dim, kv_width = shape_.kv_heads * shape_.head_dim;
  omni_rope_args rope = {};
  rope.size = sizeof rope;
  rope.m = call.rows;
  rope.x = call.qkv.at(0);
  rope.ldx = call.qkv.ld;
  rope.positions = call.positions;
  rope.table = call.rope.data;
  rope.table_bytes = call.rope.bytes;
  rope.p0 = call.rope.p0;
  rope.p1 = call.rope.p1;
  rope.parallel = &backend_->parallel;
  check(omni_rope_run(rope_plan_, &rope), "rope");

  omni_attention_append_args append = {};
  append.size = sizeof append;
  append.rows = call.rows;
  append.position = call.position;
  append.cache = call.cache;
  append.k = call.qkv.at(0, q_width);
  append.ldk = call.qkv.ld;
  append.v = call.qkv.at(0, q_width + kv_width);
  append.ldv = call.qkv.ld;
  append.parallel = &backend_->parallel;
  check(omni_attention_append(attention_plan_, &append), "attention");

  omni_attention_args args = {};
  args.size = sizeof args;
  args.m = call.rows;
  args.position = call.position;
  args.cache = call.cache;
  args.q = call.qkv.at(0);
  args.ldq = call.qkv.ld;
  args.out = call.out.at(0);
  args.ld_out = call.out.ld;
  args.workspace = backend_->workspace.data();
  args.workspace_bytes = backend_->workspace.size();
  args.parallel = &backend_->parallel;
  check(omni_attention_run(attention_plan_, &args), "attention");
}

}  // namespace ref
