// SPDX-License-Identifier: Apache-2.0
#include "reference/core/describe.h"
#include "reference/qwen3_tts/model/stack.h"

namespace ref::tts {
namespace {

const omni_plan* swiglu_plan(const StackShape& shape, omni_dtype y_type, PlanMap& plans) {
  omni_swiglu_query query = {};
  query.x_type = OMNI_DTYPE_F32;
  query.y_type = static_cast<uint16_t>(y_type);
  query.n = shape.intermediate;
  return plans.find("swiglu", omni_swiglu_select, query);
}

}  // namespace

StackLayer::StackLayer(const StackShape& shape, const std::string& prefix, std::string label, const HeadGroups& groups,
                       const ModelContext& context)
    : shape_(shape),
      backend_(context.backend),
      label_(std::move(label)),
      groups_(groups),
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
  attention_type_ = rows_of("self_attn.o_proj", hidden, shape.q_width());
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
  attend(call);
  if (call.skip < call.rows) feed_forward(call);
}

// Keys and values of every row into the cache; the output of the rows behind `skip`.
void StackLayer::attend(const Call& call) const {
  const StackBuffers& buffers = call.buffers;
  const Rows2d normed = buffers.normed.as(attention_norm_->type()), heads = buffers.attention.as(attention_type_);
  const Rows2d &qkv = buffers.qkv, &branch = buffers.branch;
  const uint32_t skip = call.skip;
  see(call, "attn_norm", 0, shape_.hidden, normed);
  qkv_->run(call.rows, normed.at(0), normed.ld, qkv.at(0), qkv.ld);
  see(call, "qkv", 0, shape_.qkv_rows(), qkv);
  groups_.run({qkv, heads, q_norm_.data(), k_norm_.data(), buffers.positions, call.rope, call.caches, call.first_cache,
               call.position, call.rows, skip});
  see(call, "q_rope", 0, shape_.q_width(), qkv);
  see(call, "k_rope", 0, shape_.kv_width(), qkv, shape_.q_width());
  if (skip == call.rows) return;
  see(call, "attn", skip, shape_.q_width(), heads);
  out_->run(call.rows - skip, heads.at(skip), heads.ld, branch.at(skip), branch.ld);
  see(call, "attn_proj", skip, shape_.hidden, branch);
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
  add(kernel_line("norm of heads", groups_.norm_plan()));
  add(kernel_line("rope", groups_.rope_plan()));
  add(kernel_line("attention", groups_.attention_plan(attention_type_)));
  add(kernel_line("swiglu", swiglu_plan_));
  add(kernel_line("norm, residual added", attention_norm_->plan(true)));
}

}  // namespace ref::tts
