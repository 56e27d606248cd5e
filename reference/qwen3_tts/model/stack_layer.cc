// SPDX-License-Identifier: Apache-2.0
#include "reference/core/describe.h"
#include "reference/qwen3_tts/model/stack.h"

namespace ref::tts {
namespace {

const omni_plan* headnorm_plan(const StackShape& shape, PlanMap& plans) {
  omni_headnorm_query query = {};
  query.type = OMNI_DTYPE_F32;
  query.q_heads = static_cast<uint32_t>(shape.heads);
  query.k_heads = static_cast<uint32_t>(shape.kv_heads);
  query.head_dim = static_cast<uint32_t>(shape.head_dim);
  query.eps = static_cast<float>(shape.eps);
  return plans.find("norm of heads", omni_headnorm_select, query);
}

const omni_plan* rope_plan(const StackShape& shape, PlanMap& plans) {
  omni_rope_query query = {};
  query.type = OMNI_DTYPE_F32;
  query.heads = static_cast<uint32_t>(shape.heads + shape.kv_heads);
  query.head_dim = static_cast<uint32_t>(shape.head_dim);
  query.rot = static_cast<uint32_t>(shape.head_dim);
  return plans.find("rope", omni_rope_select, query);
}

const omni_plan* attention_plan(const StackShape& shape, omni_dtype cache, omni_dtype out_type, PlanMap& plans) {
  omni_attention_query query = {};
  query.cache_type = static_cast<uint16_t>(cache);
  query.q_type = OMNI_DTYPE_F32;
  query.kv_type = OMNI_DTYPE_F32;
  query.out_type = static_cast<uint16_t>(out_type);
  query.heads = static_cast<uint32_t>(shape.heads);
  query.kv_heads = static_cast<uint32_t>(shape.kv_heads);
  query.head_dim = static_cast<uint32_t>(shape.head_dim);
  return plans.attention(query);
}

const omni_plan* swiglu_plan(const StackShape& shape, omni_dtype y_type, PlanMap& plans) {
  omni_swiglu_query query = {};
  query.x_type = OMNI_DTYPE_F32;
  query.y_type = static_cast<uint16_t>(y_type);
  query.n = shape.intermediate;
  return plans.find("swiglu", omni_swiglu_select, query);
}

}  // namespace

StackLayer::StackLayer(const StackShape& shape, const std::string& prefix, std::string label, const ModelContext& context)
    : shape_(shape),
      backend_(context.backend),
      label_(std::move(label)),
      q_norm_(context.vector(prefix + "self_attn.q_norm.weight", shape.head_dim)),
      k_norm_(context.vector(prefix + "self_attn.k_norm.weight", shape.head_dim)) {
  const int64_t hidden = shape.hidden, feed = shape.intermediate;
  const auto rows_of = [&](const std::string& part, int64_t n, int64_t k) {
    return common_row_type({&context.weights.matrix(prefix + part, n, k)}, context.policy);
  };
  const auto linear = [&](const std::string& part, int64_t n, int64_t k, omni_dtype x_type) {
    return context.linear(prefix + part, n, k, false, x_type);
  };
  const auto norm = [&](const char* part, omni_dtype y_type) {
    return StreamNorm(context.vector(prefix + part, hidden), shape.eps, y_type, context.plans);
  };
  const omni_dtype normed = rows_of("self_attn.q_k_v_proj", shape.qkv_rows(), hidden);
  attention_norm_.emplace(norm("input_layernorm.weight", normed));
  qkv_.emplace(linear("self_attn.q_k_v_proj", shape.qkv_rows(), hidden, normed));
  headnorm_plan_ = headnorm_plan(shape, context.plans);
  rope_plan_ = rope_plan(shape, context.plans);
  attention_type_ = rows_of("self_attn.o_proj", hidden, shape.q_width());
  attention_plan_ = attention_plan(shape, context.cache, attention_type_, context.plans);
  out_.emplace(linear("self_attn.o_proj", hidden, shape.q_width(), attention_type_));

  const omni_dtype feed_normed = rows_of("mlp.gate_up_proj", 2 * feed, hidden);
  feed_norm_.emplace(norm("post_attention_layernorm.weight", feed_normed));
  gate_up_.emplace(linear("mlp.gate_up_proj", 2 * feed, hidden, feed_normed));
  product_type_ = rows_of("mlp.down_proj", hidden, feed);
  swiglu_plan_ = swiglu_plan(shape, product_type_, context.plans);
  down_.emplace(linear("mlp.down_proj", hidden, feed, product_type_));
}

void StackLayer::see(const Call& call, const char* what, uint32_t first, int64_t columns, const Rows2d& rows,
                     int64_t column) const {
  if (call.observer == nullptr) return;
  observe(call.observer, label_ + what, call.position + first, call.rows - first, columns, rows.type, rows.at(first, column),
          rows.ld);
}

void StackLayer::run(const Call& call) const {
  attention_norm_->run(call.buffers, 0, call.rows, call.pending, backend_);
  append(call);
  if (call.skip == call.rows) return;
  attend(call);
  feed_forward(call);
}

// q, k and v of every row; keys and values into the cache.
void StackLayer::append(const Call& call) const {
  const StackBuffers& buffers = call.buffers;
  const Rows2d normed = buffers.normed.as(attention_norm_->type());
  const Rows2d& qkv = buffers.qkv;
  const int64_t q_width = shape_.q_width(), kv_width = shape_.kv_width();
  see(call, "attn_norm", 0, shape_.hidden, normed);
  qkv_->run(call.rows, normed.at(0), normed.ld, qkv.at(0), qkv.ld);
  see(call, "qkv", 0, shape_.qkv_rows(), qkv);

  omni_headnorm_args norm = {};
  norm.size = sizeof norm;
  norm.m = call.rows;
  norm.x = qkv.at(0);
  norm.ldx = qkv.ld;
  norm.q_weight = q_norm_.data();
  norm.k_weight = k_norm_.data();
  norm.parallel = &backend_.parallel;
  check(omni_headnorm_run(headnorm_plan_, &norm), "norm of heads");

  omni_rope_args rope = {};
  rope.size = sizeof rope;
  rope.m = call.rows;
  rope.x = qkv.at(0);
  rope.ldx = qkv.ld;
  rope.positions = buffers.positions;
  rope.table = call.rope.data();
  rope.table_bytes = call.rope.made_bytes();
  rope.p0 = 0;
  rope.p1 = call.rope.made();
  rope.parallel = &backend_.parallel;
  check(omni_rope_run(rope_plan_, &rope), "rope");
  see(call, "q_rope", 0, q_width, qkv);
  see(call, "k_rope", 0, kv_width, qkv, q_width);

  omni_attention_append_args args = {};
  args.size = sizeof args;
  args.rows = call.rows;
  args.position = call.position;
  args.cache = &call.cache;
  args.k = qkv.at(0, q_width);
  args.ldk = qkv.ld;
  args.v = qkv.at(0, q_width + kv_width);
  args.ldv = qkv.ld;
  args.parallel = &backend_.parallel;
  check(omni_attention_append(attention_plan_, &args), "attention");
}

void StackLayer::attend(const Call& call) const {
  const StackBuffers& buffers = call.buffers;
  const Rows2d heads = buffers.attention.as(attention_type_);
  omni_attention_args args = {};
  args.size = sizeof args;
  args.m = call.rows - call.skip;
  args.position = call.position + call.skip;
  args.cache = &call.cache;
  args.q = buffers.qkv.at(call.skip);
  args.ldq = buffers.qkv.ld;
  args.out = heads.at(call.skip);
  args.ld_out = heads.ld;
  args.workspace = backend_.workspace.data();
  args.workspace_bytes = backend_.workspace.size();
  args.parallel = &backend_.parallel;
  check(omni_attention_run(attention_plan_, &args), "attention");
  see(call, "attn", call.skip, shape_.q_width(), heads);
  const Rows2d& branch = buffers.branch;
  out_->run(args.m, heads.at(call.skip), heads.ld, branch.at(call.skip), branch.ld);
  see(call, "attn_proj", call.skip, shape_.hidden, branch);
}

void StackLayer::feed_forward(const Call& call) const {
  const StackBuffers& buffers = call.buffers;
  const uint32_t skip = call.skip, rows = call.rows - skip;
  feed_norm_->run(buffers, skip, call.rows, true, backend_);
  const Rows2d normed = buffers.normed.as(feed_norm_->type()), product = buffers.product.as(product_type_);
  const Rows2d &gate_up = buffers.gate_up, &branch = buffers.branch;
  see(call, "ffn_norm", skip, shape_.hidden, normed);
  gate_up_->run(rows, normed.at(skip), normed.ld, gate_up.at(skip), gate_up.ld);
  omni_swiglu_args args = {};
  args.size = sizeof args;
  args.m = rows;
  args.gate_up = gate_up.at(skip);
  args.ld_gate_up = gate_up.ld;
  args.y = product.at(skip);
  args.ldy = product.ld;
  args.parallel = &backend_.parallel;
  check(omni_swiglu_run(swiglu_plan_, &args), "swiglu");
  see(call, "ffn_act", skip, shape_.intermediate, product);
  down_->run(rows, product.at(skip), product.ld, branch.at(skip), branch.ld);
  see(call, "mlp", skip, shape_.hidden, branch);
}

uint64_t StackLayer::weight_bytes() const {
  return attention_norm_->bytes() + feed_norm_->bytes() + qkv_->bytes() + out_->bytes() + gate_up_->bytes() + down_->bytes() +
         (q_norm_.size() + k_norm_.size()) * sizeof(float);
}

void StackLayer::describe(std::vector<std::string>* lines) const {
  const auto add = [&](std::string line) { add_line(lines, std::move(line)); };
  add(linear_line("q_k_v_proj", *qkv_, attention_norm_->type()));
  add(linear_line("o_proj", *out_, attention_type_));
  add(linear_line("gate_up_proj", *gate_up_, feed_norm_->type()));
  add(linear_line("down_proj", *down_, product_type_));
  add(kernel_line("norm of heads", headnorm_plan_));
  add(kernel_line("rope", rope_plan_));
  add(kernel_line("attention", attention_plan_));
  add(kernel_line("swiglu", swiglu_plan_));
  add(kernel_line("norm, residual added", attention_norm_->plan(true)));
}

}  // namespace ref::tts
