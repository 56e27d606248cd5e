// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/codec/transformer.h"

#include <algorithm>
#include <numeric>

#include "reference/core/describe.h"

namespace ref::tts {
namespace {

constexpr char kPrefix[] = "decoder.pre_transformer.";

std::string layer_prefix(int64_t index) { return std::string(kPrefix) + "layers." + std::to_string(index) + "."; }

const omni_plan* swiglu_plan(const StackShape& shape, omni_dtype y_type, PlanMap& plans) {
  omni_swiglu_query query = {};
  query.x_type = OMNI_DTYPE_F32;
  query.y_type = static_cast<uint16_t>(y_type);
  query.n = shape.intermediate;
  return plans.find("swiglu", omni_swiglu_select, query);
}

omni_dtype rows_of(const ModelContext& context, const std::string& name, int64_t n, int64_t k) {
  return common_row_type({&context.weights.matrix(name, n, k)}, context.policy);
}

void scale_rows(const Rows2d& rows, uint32_t count, const std::vector<float>& scale) {
  for (uint32_t row = 0; row < count; ++row) {
    float* x = rows.f32(row);
    for (size_t i = 0; i < scale.size(); ++i) x[i] *= scale[i];
  }
}

std::vector<CodecLayer> make_layers(const CodecDecoderConfig& config, const ModelContext& context) {
  std::vector<CodecLayer> layers;
  layers.reserve(static_cast<size_t>(config.stack.layers));
  for (int64_t i = 0; i < config.stack.layers; ++i) layers.emplace_back(config, i, context);
  return layers;
}

// Rings: how long a stream gets does not matter.
KvCaches make_caches(const CodecDecoderConfig& config, int64_t most_rows) {
  const std::vector<int64_t> windows(static_cast<size_t>(config.stack.layers), config.window);
  return {{config.stack.kv_heads, config.stack.head_dim, windows}, {OMNI_ROPE_MOST_POSITIONS, most_rows, OMNI_DTYPE_F32}};
}

}  // namespace

CodecLayer::CodecLayer(const CodecDecoderConfig& config, int64_t index, const ModelContext& context)
    : shape_(config.stack), index_(index), backend_(&context.backend) {
  const std::string prefix = layer_prefix(index);
  const int64_t hidden = shape_.hidden, feed = shape_.intermediate;
  const auto linear = [&](const std::string& part, int64_t n, int64_t k) {
    return context.linear(prefix + part, n, k, false, rows_of(context, prefix + part, n, k));
  };
  const auto norm = [&](const char* part, omni_dtype type) {
    return StreamNorm(context.vector(prefix + part, hidden), shape_.eps, type, context.plans);
  };
  attention_scale_ = context.vector(prefix + "self_attn_layer_scale.scale", hidden);
  feed_scale_ = context.vector(prefix + "mlp_layer_scale.scale", hidden);
  attention_norm_.emplace(
      norm("input_layernorm.weight", rows_of(context, prefix + "self_attn.q_k_v_proj", shape_.qkv_rows(), hidden)));
  qkv_.emplace(linear("self_attn.q_k_v_proj", shape_.qkv_rows(), hidden));
  attention_.emplace(AttentionShape{shape_.heads, shape_.kv_heads, shape_.head_dim, config.window, OMNI_DTYPE_F32},
                     rows_of(context, prefix + "self_attn.o_proj", hidden, shape_.q_width()), context.plans);
  out_.emplace(linear("self_attn.o_proj", hidden, shape_.q_width()));
  feed_norm_.emplace(norm("post_attention_layernorm.weight", rows_of(context, prefix + "mlp.gate_up_proj", 2 * feed, hidden)));
  gate_up_.emplace(linear("mlp.gate_up_proj", 2 * feed, hidden));
  product_type_ = rows_of(context, prefix + "mlp.down_proj", hidden, feed);
  swiglu_plan_ = swiglu_plan(shape_, product_type_, context.plans);
  down_.emplace(linear("mlp.down_proj", hidden, feed));
}

void CodecLayer::run(const Call& call) const {
  const StackBuffers& buffers = call.buffers;
  attention_norm_->run(buffers, 0, call.rows, call.pending, *backend_);
  if (index_ > 0) {  // the stream is whole now
    observe_rows(call.observer, "pre_transformer_layer" + std::to_string(index_ - 1), call.position, call.rows, shape_.hidden,
                 buffers.stream);
  }
  qkv_->run(call.rows, buffers.normed.at(0), buffers.normed.ld, buffers.qkv.at(0), buffers.qkv.ld);
  const Rows2d heads = buffers.attention.as(attention_->out_type());
  attention_->run({call.rows, call.position, buffers.positions, call.rope, call.cache, buffers.qkv, heads});
  out_->run(call.rows, heads.at(0), heads.ld, buffers.branch.at(0), buffers.branch.ld);
  scale_rows(buffers.branch, call.rows, attention_scale_);

  feed_norm_->run(buffers, 0, call.rows, true, *backend_);
  gate_up_->run(call.rows, buffers.normed.at(0), buffers.normed.ld, buffers.gate_up.at(0), buffers.gate_up.ld);
  const Rows2d product = buffers.product.as(product_type_);
  omni_swiglu_args args = {};
  args.size = sizeof args;
  args.m = call.rows;
  args.gate_up = buffers.gate_up.at(0);
  args.ld_gate_up = buffers.gate_up.ld;
  args.y = product.at(0);
  args.ldy = product.ld;
  args.parallel = &backend_->parallel;
  check(omni_swiglu_run(swiglu_plan_, &args), "swiglu");
  down_->run(call.rows, product.at(0), product.ld, buffers.branch.at(0), buffers.branch.ld);
  scale_rows(buffers.branch, call.rows, feed_scale_);
}

uint64_t CodecLayer::weight_bytes() const {
  const uint64_t scales = (attention_scale_.size() + feed_scale_.size()) * sizeof(float);
  return scales + attention_norm_->bytes() + feed_norm_->bytes() + qkv_->bytes() + out_->bytes() + gate_up_->bytes() +
         down_->bytes();
}

void CodecLayer::describe(std::vector<std::string>* lines) const {
  add_line(lines, linear_line("q, k, v", *qkv_, attention_norm_->type()));
  add_line(lines, kernel_line("rope", attention_->rope_plan()));
  add_line(lines, kernel_line("attention", attention_->attention_plan()));
  add_line(lines, linear_line("attention output", *out_, attention_->out_type()));
  add_line(lines, linear_line("gate, up", *gate_up_, feed_norm_->type()));
  add_line(lines, kernel_line("swiglu", swiglu_plan_));
  add_line(lines, linear_line("down", *down_, product_type_));
}

CodecTransformer::CodecTransformer(const CodecDecoderConfig& config, const ModelContext& context, int64_t most_rows,
                                   StageClock* clock)
    : most_rows_(most_rows),
      backend_(&context.backend),
      layers_(make_layers(config, context)),
      input_proj_(context.linear(std::string(kPrefix) + "input_proj", config.stack.hidden, config.latent, true,
                                 rows_of(context, std::string(kPrefix) + "input_proj", config.stack.hidden, config.latent))),
      output_proj_(context.linear(std::string(kPrefix) + "output_proj", config.latent, config.stack.hidden, true,
                                  rows_of(context, std::string(kPrefix) + "output_proj", config.latent, config.stack.hidden))),
      input_type_(rows_of(context, std::string(kPrefix) + "input_proj", config.stack.hidden, config.latent)),
      normed_type_(rows_of(context, std::string(kPrefix) + "output_proj", config.latent, config.stack.hidden)),
      final_norm_(context.vector(std::string(kPrefix) + "norm.weight", config.stack.hidden), config.stack.eps, normed_type_,
                  context.plans),
      rope_(config.stack.head_dim, config.stack.theta, most_rows),
      caches_(make_caches(config, most_rows)),
      buffers_(config.stack, most_rows),
      input_{nullptr, input_type_, config.latent},
      output_{nullptr, OMNI_DTYPE_F32, config.latent},
      lap_(clock->stage("transformer")) {}

void CodecTransformer::place(Placement* placement) {
  input_ = placement->rows(input_type_, most_rows_, input_.ld);
  output_ = placement->rows(OMNI_DTYPE_F32, most_rows_, output_.ld);
}

void CodecTransformer::reset() { caches_.reset(); }

void CodecTransformer::run(const Rows2d& x, uint32_t rows, int64_t position, StageClock* clock, Observer* observer) {
  cast_rows(x, rows, input_);
  input_proj_.run(rows, input_.at(0), input_.ld, buffers_.stream.at(0), buffers_.stream.ld);
  std::iota(buffers_.positions, buffers_.positions + rows, static_cast<int32_t>(position));
  const RopeSlice rope = rope_.reach(position, position + rows);
  bool pending = false;
  for (size_t i = 0; i < layers_.size(); ++i) {
    layers_[i].run({buffers_, rope, &caches_.layer(static_cast<int64_t>(i)), position, rows, pending, observer});
    pending = true;
  }
  final_norm_.run(buffers_, 0, rows, pending, *backend_);
  observe_rows(observer, "pre_transformer_layer" + std::to_string(layers_.size() - 1), position, rows, buffers_.stream.ld,
               buffers_.stream);
  output_proj_.run(rows, buffers_.normed.at(0), buffers_.normed.ld, output_.at(0), output_.ld);
  observe_rows(observer, "pre_transformer", position, rows, output_.ld, output_);
  clock->lap(lap_);
}

uint64_t CodecTransformer::weight_bytes() const {
  uint64_t bytes = input_proj_.bytes() + output_proj_.bytes() + final_norm_.bytes();
  for (const CodecLayer& layer : layers_) bytes += layer.weight_bytes();
  return bytes;
}

void CodecTransformer::describe(std::vector<std::string>* lines) const {
  add_line(lines, linear_line("input_proj", input_proj_, input_type_));
  for (const CodecLayer& layer : layers_) layer.describe(lines);
  add_line(lines, linear_line("output_proj", output_proj_, normed_type_));
}

}  // namespace ref::tts
