// SPDX-License-Identifier: Apache-2.0
#include "reference/spark/layer.h"

namespace ref::spark {

Linear Layer::linear(const LayerContext& context, const std::string& part, int64_t n, int64_t k, bool biased, omni_dtype x_type,
                     const LinearOutput& output) const {
  const std::string name = prefix_ + part;
  std::vector<float> bias;
  if (biased) bias = widen(context.weights.plain(name + ".bias", {n}));
  return Linear(context.weights.name + ": " + name, context.weights.matrix(name, n, k), std::move(bias), x_type, output,
                context.policy, context.backend, context.linear_plans);
}

Layer::Layer(const LayerContext& context, int64_t index)
    : config_(context.config),
      backend_(context.backend),
      index_(index),
      prefix_("model.layers." + std::to_string(index) + "."),
      fused_norm_(context.fused_norm) {
  const ModelWeights& weights = context.weights;
  const int64_t hidden = config_.hidden, width = config_.attention_width(), feed = config_.intermediate;
  const Matrix& qkv = weights.matrix(prefix_ + "self_attn.q_k_v_proj", config_.qkv_rows(), hidden);
  const Matrix& out = weights.matrix(prefix_ + "self_attn.out_proj", hidden, width);
  const Matrix& down = weights.matrix(prefix_ + "mlp.down_proj", hidden, feed);
  const auto norm_weight = [&](const char* part) { return widen(weights.plain(prefix_ + part, {hidden})); };
  const LinearOutput to_stream = {OMNI_DTYPE_F32, !fused_norm_};

  const omni_dtype normed = common_row_type({&qkv}, context.policy);
  attention_norm_.emplace(norm_weight("input_layernorm.weight"), config_.eps, normed, context.plans);
  qkv_.emplace(linear(context, "self_attn.q_k_v_proj", config_.qkv_rows(), hidden, config_.attention_bias, normed, {}));
  rope_plan_ = context.plans.rope(config_.rope(index).rot);
  attention_type_ = common_row_type({&out}, context.policy);
  const bool sliding = config_.sliding[static_cast<size_t>(index)];
  attention_plan_ = context.plans.attention(sliding ? config_.window.value_or(0) : 0, attention_type_);
  if (config_.gated) {
    std::vector<float> bias;
    if (config_.attention_bias) bias = widen(weights.plain(prefix_ + "self_attn.g_proj.bias", {config_.heads}));
    gate_.emplace(config_, weights.plain(prefix_ + "self_attn.g_proj.weight", {config_.heads, hidden}), std::move(bias), normed,
                  attention_type_, context.plans);
  }
  out_.emplace(linear(context, "self_attn.out_proj", hidden, width, config_.attention_bias, attention_type_, to_stream));

  const bool joined = weights.find_matrix(prefix_ + "mlp.gate_up_proj") != nullptr;
  product_type_ = common_row_type({&down}, context.policy);
  gate_up_type_ = OMNI_DTYPE_F32;
  const LinearOutput to_product = {gate_up_type_, false};
  if (joined) {
    const Matrix& both = weights.matrix(prefix_ + "mlp.gate_up_proj", 2 * feed, hidden);
    const omni_dtype x_type = common_row_type({&both}, context.policy);
    feed_norm_.emplace(norm_weight("post_attention_layernorm.weight"), config_.eps, x_type, context.plans);
    gate_up_.push_back(linear(context, "mlp.gate_up_proj", 2 * feed, hidden, config_.mlp_bias, x_type, to_product));
  } else {
    const Matrix& gate = weights.matrix(prefix_ + "mlp.gate_proj", feed, hidden);
    const Matrix& up = weights.matrix(prefix_ + "mlp.up_proj", feed, hidden);
    const omni_dtype x_type = common_row_type({&gate, &up}, context.policy);
    feed_norm_.emplace(norm_weight("post_attention_layernorm.weight"), config_.eps, x_type, context.plans);
    gate_up_.push_back(linear(context, "mlp.gate_proj", feed, hidden, config_.mlp_bias, x_type, to_product));
    gate_up_.push_back(linear(context, "mlp.up_proj", feed, hidden, config_.mlp_bias, x_type, to_product));
  }
  geglu_plan_ = context.plans.geglu(gate_up_type_, product_type_);
  down_.emplace(linear(context, "mlp.down_proj", hidden, feed, config_.mlp_bias, product_type_, to_stream));
}

void Layer::see(const LayerCall& call, const char* what, uint32_t first, int64_t columns, const Rows2d& rows,
                int64_t column) const {
  if (call.observer == nullptr) return;
  observe(call.observer, "layer." + std::to_string(index_) + "." + what, call.position + first, call.rows - first, columns,
          rows.type, rows.at(first, column), rows.ld);
}

bool Layer::run(const LayerCall& call) const {
  const Activations& buffers = call.activations;
  attention_norm_->run(buffers, 0, call.rows, call.pending, backend_);
  if (call.observer != nullptr) {  // the stream is whole now
    const std::string name = index_ == 0 ? "embed" : "layer." + std::to_string(index_ - 1) + ".out";
    observe(call.observer, name, call.position, call.rows, config_.hidden, OMNI_DTYPE_F32, buffers.stream.at(0), buffers.stream.ld);
  }
  append(call);
  if (call.skip == call.rows) return false;
  attend(call);
  feed_forward(call);
  return fused_norm_;
}

// q, k and v of every row; keys and values into the cache.
void Layer::append(const LayerCall& call) const {
  const Activations& buffers = call.activations;
  const Rows2d normed = buffers.normed.as(attention_norm_->type());
  const int64_t q_width = config_.attention_width(), kv_width = config_.kv_heads * config_.head_dim;
  see(call, "attn_norm", 0, config_.hidden, normed);
  qkv_->run(call.rows, normed.at(0), normed.ld, buffers.qkv.at(0), buffers.qkv.ld);
  see(call, "qkv", 0, config_.qkv_rows(), buffers.qkv);

  omni_rope_args rope = {};
  rope.size = sizeof rope;
  rope.m = call.rows;
  rope.x = buffers.qkv.at(0);
  rope.ldx = buffers.qkv.ld;
  rope.positions = buffers.positions;
  rope.table = call.rope.data();
  rope.table_bytes = call.rope.made_bytes();
  rope.p0 = 0;
  rope.p1 = call.rope.made();
  rope.parallel = &backend_.parallel;
  check(omni_rope_run(rope_plan_, &rope), "rope");
  see(call, "q_rope", 0, q_width, buffers.qkv);
  see(call, "k_rope", 0, kv_width, buffers.qkv, q_width);

  omni_attention_append_args args = {};
  args.size = sizeof args;
  args.rows = call.rows;
  args.position = call.position;
  args.cache = &call.cache;
  args.k = buffers.qkv.at(0, q_width);
  args.ldk = buffers.qkv.ld;
  args.v = buffers.qkv.at(0, q_width + kv_width);
  args.ldv = buffers.qkv.ld;
  args.parallel = &backend_.parallel;
  check(omni_attention_append(attention_plan_, &args), "attention");
}

void Layer::attend(const LayerCall& call) const {
  const Activations& buffers = call.activations;
  const uint32_t skip = call.skip, rows = call.rows - skip;
  const Rows2d normed = buffers.normed.as(attention_norm_->type());
  const Rows2d heads = buffers.attention.as(attention_type_);
  const int64_t width = config_.attention_width();
  omni_attention_args args = {};
  args.size = sizeof args;
  args.m = rows;
  args.position = call.position + skip;
  args.cache = &call.cache;
  args.q = buffers.qkv.at(skip);
  args.ldq = buffers.qkv.ld;
  args.out = heads.at(skip);
  args.ld_out = heads.ld;
  args.workspace = backend_.workspace.data();
  args.workspace_bytes = backend_.workspace.size();
  args.parallel = &backend_.parallel;
  check(omni_attention_run(attention_plan_, &args), "attention");
  see(call, "attn", skip, width, heads);
  if (gate_) {
    float* gates = call.observer == nullptr ? nullptr : buffers.gates.f32(skip);
    gate_->run(rows, normed.at(skip), normed.ld, heads.at(skip), heads.ld, gates, backend_);
    see(call, "gate", skip, config_.heads, buffers.gates);
  }
  see(call, "attn_gated", skip, width, heads);
  const Rows2d& out = fused_norm_ ? buffers.branch : buffers.stream;
  out_->run(rows, heads.at(skip), heads.ld, out.at(skip), out.ld);
  if (fused_norm_) see(call, "attn_proj", skip, config_.hidden, buffers.branch);
}

void Layer::feed_forward(const LayerCall& call) const {
  const Activations& buffers = call.activations;
  const uint32_t skip = call.skip, rows = call.rows - skip;
  feed_norm_->run(buffers, skip, call.rows, fused_norm_, backend_);
  const Rows2d normed = buffers.normed.as(feed_norm_->type());
  const Rows2d gate_up = buffers.gate_up.as(gate_up_type_), product = buffers.product.as(product_type_);
  see(call, "ffn_norm", skip, config_.hidden, normed);
  int64_t column = 0;
  for (const Linear& part : gate_up_) {
    part.run(rows, normed.at(skip), normed.ld, gate_up.at(skip, column), gate_up.ld);
    column += part.layout().n;
  }
  omni_geglu_args args = {};
  args.size = sizeof args;
  args.m = rows;
  args.gate_up = gate_up.at(skip);
  args.ld_gate_up = gate_up.ld;
  args.y = product.at(skip);
  args.ldy = product.ld;
  args.parallel = &backend_.parallel;
  check(omni_geglu_run(geglu_plan_, &args), "geglu");
  see(call, "ffn_act", skip, config_.intermediate, product);
  const Rows2d& out = fused_norm_ ? buffers.branch : buffers.stream;
  down_->run(rows, product.at(skip), product.ld, out.at(skip), out.ld);
  if (fused_norm_) see(call, "mlp", skip, config_.hidden, buffers.branch);
}

uint64_t Layer::weight_bytes() const {
  uint64_t bytes = attention_norm_->bytes() + feed_norm_->bytes() + qkv_->bytes() + out_->bytes() + down_->bytes();
  for (const Linear& part : gate_up_) bytes += part.bytes();
  return bytes + (gate_ ? gate_->bytes() : 0);
}

}  // namespace ref::spark
