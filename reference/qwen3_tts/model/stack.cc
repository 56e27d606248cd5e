// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/model/stack.h"

#include <algorithm>
#include <numeric>

namespace ref::tts {
namespace {

CacheRequest cache_request(int64_t positions, const ModelContext& context) {
  return {positions, std::min<int64_t>(positions, context.backend.max_rows), context.cache};
}

std::vector<StackLayer> make_layers(const StackShape& shape, const std::string& prefix, const std::string& observed,
                                    const HeadGroups& groups, const ModelContext& context) {
  std::vector<StackLayer> layers;
  layers.reserve(static_cast<size_t>(shape.layers));
  for (int64_t i = 0; i < shape.layers; ++i) {
    const std::string index = std::to_string(i);
    layers.emplace_back(shape, prefix + "layers." + index + ".", observed + ".layer." + index + ".", groups, context);
  }
  return layers;
}

}  // namespace

CacheModel cache_model(const StackShape& shape, int64_t groups) {
  return {shape.kv_heads / groups, shape.head_dim, std::vector<int64_t>(static_cast<size_t>(shape.layers * groups), 0)};
}

Linear ModelContext::linear(const std::string& name, int64_t n, int64_t k, bool biased, omni_dtype x_type,
                            const LinearOutput& output) const {
  std::vector<float> bias;
  if (biased) bias = vector(name + ".bias", n);
  return {weights.name + ": " + name, weights.matrix(name, n, k), std::move(bias), x_type, output, policy, backend, linear_plans};
}

size_t StackBuffers::layout(const StackShape& shape, int64_t rows, std::byte* base) {
  size_t offset = 0;
  const auto place = [&](Rows2d* out, int64_t columns) {
    *out = {base + offset, OMNI_DTYPE_F32, columns};
    offset += aligned64(static_cast<size_t>(rows * columns) * sizeof(float));
  };
  for (Rows2d* each : {&stream, &branch, &normed, &output}) place(each, shape.hidden);
  positions = reinterpret_cast<int32_t*>(base + offset);
  offset += aligned64(static_cast<size_t>(rows) * sizeof(int32_t));
  const size_t shared = offset;
  place(&qkv, shape.qkv_rows());
  place(&attention, shape.q_width());
  const size_t first_end = offset;
  offset = shared;
  place(&gate_up, 2 * shape.intermediate);
  place(&product, shape.intermediate);
  return std::max(first_end, offset);
}

Stack::Stack(const StackShape& shape, const std::string& prefix, std::string observed, int64_t positions,
             const ModelContext& context)
    : shape_(shape),
      observed_(std::move(observed)),
      positions_(positions),
      backend_(context.backend),
      groups_(shape_, context.cache, context.plans),
      layers_(make_layers(shape_, prefix, observed_, groups_, context)),
      final_norm_(context.vector(prefix + "norm.weight", shape.hidden), shape.eps, OMNI_DTYPE_F32, context.plans),
      rope_(shape.head_dim, shape.theta, positions),
      caches_(cache_model(shape, HeadGroups::count_for(shape, context.backend)), cache_request(positions, context)),
      buffers_(shape, context.backend.max_rows) {}

void Stack::reset() {
  caches_.reset();
  position_ = 0;
}

void Stack::run(uint32_t rows, uint32_t wanted, Observer* observer) {
  observe(observer, observed_ + ".input", position_, rows, shape_.hidden, OMNI_DTYPE_F32, input(0), shape_.hidden);
  std::iota(buffers_.positions, buffers_.positions + rows, static_cast<int32_t>(position_));
  rope_.extend(position_ + rows);
  const uint32_t skip = observer == nullptr ? rows - wanted : 0;
  for (int64_t i = 0; i < shape_.layers; ++i) {
    const bool last = i + 1 == shape_.layers;
    layers_[static_cast<size_t>(i)].run(
        {buffers_, rope_, caches_, i * groups_.count(), position_, rows, last ? skip : 0, i > 0, observer});
  }
  if (skip < rows) {
    const StreamRows to_output = {buffers_.stream, buffers_.branch, buffers_.output};
    final_norm_.run(to_output, skip, rows, true, backend_);
    observe(observer, observed_ + ".hidden", position_, rows, shape_.hidden, OMNI_DTYPE_F32, output(0), shape_.hidden);
  }
  position_ += rows;
}

uint64_t Stack::weight_bytes() const {
  uint64_t bytes = final_norm_.bytes();
  for (const StackLayer& layer : layers_) bytes += layer.weight_bytes();
  return bytes;
}

void Stack::describe(std::vector<std::string>* lines) const {
  for (const StackLayer& layer : layers_) layer.describe(lines);
}

}  // namespace ref::tts
