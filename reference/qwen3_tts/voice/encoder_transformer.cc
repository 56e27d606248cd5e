// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/voice/encoder_transformer.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace ref::tts {
namespace {

struct Layer {
  Layer(const StackShape& shape, int64_t index, const ModelContext& context)
      : Layer(shape, "encoder.encoder_transformer.layers." + std::to_string(index) + ".", context) {}
  Layer(const StackShape& shape, const std::string& prefix, const ModelContext& context)
      : attention_norm(prefix + "input_layernorm", shape.hidden, shape.eps, context),
        feed_norm(prefix + "post_attention_layernorm", shape.hidden, shape.eps, context),
        qkv(context.linear(prefix + "self_attn.q_k_v_proj", shape.qkv_rows(), shape.hidden, false, OMNI_DTYPE_F32)),
        out(context.linear(prefix + "self_attn.o_proj", shape.hidden, shape.q_width(), false, OMNI_DTYPE_F32)),
        up(context.linear(prefix + "mlp.fc1", shape.intermediate, shape.hidden, false, OMNI_DTYPE_F32)),
        down(context.linear(prefix + "mlp.fc2", shape.hidden, shape.intermediate, false, OMNI_DTYPE_F32)),
        attention_scale(context.vector(prefix + "self_attn_layer_scale.scale", shape.hidden)),
        feed_scale(context.vector(prefix + "mlp_layer_scale.scale", shape.hidden)) {}

  LayerNorm attention_norm, feed_norm;
  Linear qkv, out, up, down;
  std::vector<float> attention_scale, feed_scale;
};

void add_scaled(const std::vector<float>& branch, const std::vector<float>& scale, int64_t rows, float* x) {
  const size_t columns = scale.size();
  for (size_t row = 0; row < static_cast<size_t>(rows); ++row) {
    const float* from = branch.data() + row * columns;
    float* to = x + row * columns;
    for (size_t i = 0; i < columns; ++i) to[i] += from[i] * scale[i];
  }
}

// A block of rows and what it goes through.
struct Block {
  Block(const StackShape& shape, int64_t most)
      : normed(static_cast<size_t>(most * shape.hidden)),
        branch(static_cast<size_t>(most * shape.hidden)),
        heads(static_cast<size_t>(most * shape.q_width())),
        wide(static_cast<size_t>(most * std::max(shape.qkv_rows(), shape.intermediate))),
        positions(static_cast<size_t>(most)) {}

  std::vector<float> normed, branch, heads, wide;
  std::vector<int32_t> positions;
};

Rows2d rows_of(std::vector<float>* values, int64_t ld) {
  return {reinterpret_cast<std::byte*>(values->data()), OMNI_DTYPE_F32, ld};
}

}  // namespace

void run_encoder_transformer(const StackShape& shape, EncoderContext* encoder, float* x, int64_t rows) {
  const ModelContext& context = encoder->context();
  const int64_t hidden = shape.hidden, most = encoder->backend().max_rows;
  const SelfAttention attention({shape.heads, shape.kv_heads, shape.head_dim, 0, OMNI_DTYPE_F32}, OMNI_DTYPE_F32, context.plans);
  const Elementwise gelu(OMNI_ACTIVATION_GELU, shape.intermediate, context);
  std::vector<Layer> layers;
  layers.reserve(static_cast<size_t>(shape.layers));
  for (int64_t i = 0; i < shape.layers; ++i) layers.emplace_back(shape, i, context);
  encoder->backend().allocate();

  RopeTable rope(shape.head_dim, shape.theta, rows);
  rope.extend(rows);
  KvCaches caches({shape.kv_heads, shape.head_dim, {0}}, {rows, std::min(rows, most), OMNI_DTYPE_F32});
  Block block(shape, std::min(rows, most));
  for (const Layer& layer : layers) {
    caches.reset();
    for (int64_t done = 0; done < rows; done += most) {
      const int64_t count = std::min(most, rows - done);
      const auto m = static_cast<uint32_t>(count);
      float* stream = x + done * hidden;
      std::iota(block.positions.begin(), block.positions.begin() + count, static_cast<int32_t>(done));
      layer.attention_norm.run(count, stream, hidden, block.normed.data(), hidden);
      layer.qkv.run(m, block.normed.data(), hidden, block.wide.data(), shape.qkv_rows());
      attention.run({m,
                     done,
                     block.positions.data(),
                     {rope.data(), rope.made_bytes(), 0, rope.made()},
                     &caches.layer(0),
                     rows_of(&block.wide, shape.qkv_rows()),
                     rows_of(&block.heads, shape.q_width())});
      layer.out.run(m, block.heads.data(), shape.q_width(), block.branch.data(), hidden);
      add_scaled(block.branch, layer.attention_scale, count, stream);
      layer.feed_norm.run(count, stream, hidden, block.normed.data(), hidden);
      layer.up.run(m, block.normed.data(), hidden, block.wide.data(), shape.intermediate);
      gelu.run(count, block.wide.data(), shape.intermediate, block.wide.data(), shape.intermediate);
      layer.down.run(m, block.wide.data(), shape.intermediate, block.branch.data(), hidden);
      add_scaled(block.branch, layer.feed_scale, count, stream);
    }
  }
}

}  // namespace ref::tts
