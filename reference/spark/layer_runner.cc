// SPDX-License-Identifier: Apache-2.0
#include "reference/spark/layer_runner.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>

#include "reference/cache/kv.h"
#include "reference/spark/embedding.h"
#include "reference/spark/layer.h"

namespace ref::spark {

struct LayerRunner::State {
  State(std::shared_ptr<const ModelWeights> model, DecoderOptions wanted)
      : weights(std::move(model)),
        config(read_config(weights->config, weights->name)),
        options(std::move(wanted)),
        backend(options.parallel, options.max_isa, static_cast<uint32_t>(options.chunk)),
        linear_plans(backend),
        plans(config, options.cache, backend),
        embedding(config, *weights, backend),
        sliding_rope(config.sliding_rope.rot, config.sliding_rope.theta, options.context),
        full_rope(config.full_rope.rot, config.full_rope.theta, options.context),
        activations(config, options.chunk) {}

  std::shared_ptr<const ModelWeights> weights;
  Config config;
  DecoderOptions options;
  Backend backend;
  LinearPlans linear_plans;
  Plans plans;
  Embedding embedding;
  RopeTable sliding_rope, full_rope;
  Activations activations;
  std::optional<Layer> layer;
  std::optional<KvCaches> cache;
  int64_t index = 0;
};

LayerRunner::LayerRunner(std::shared_ptr<const ModelWeights> weights, DecoderOptions options)
    : state_(std::make_unique<State>(std::move(weights), checked_options(std::move(options)))) {}
LayerRunner::~LayerRunner() = default;

const Config& LayerRunner::config() const { return state_->config; }

void LayerRunner::embed(std::span<const int32_t> ids, std::span<float> stream) {
  const Config& config = state_->config;
  check_ids(ids, config);
  if (stream.size() != ids.size() * static_cast<size_t>(config.hidden)) throw Error("embed: a stream of another size than its ids");
  state_->embedding.gather(ids.data(), static_cast<int64_t>(ids.size()), stream.data());
}

void LayerRunner::load(int64_t index) {
  State& state = *state_;
  if (index < 0 || index >= state.config.layers) throw Error("there is no layer " + std::to_string(index));
  state.layer.emplace(LayerContext{state.config, *state.weights, layer_policy(state.options), false, state.backend,
                                   state.linear_plans, state.plans},
                      index);
  state.index = index;
  CacheModel model = cache_model(state.config);
  model.windows = {model.windows[static_cast<size_t>(index)]};
  state.cache.emplace(model, CacheRequest{state.options.context, state.options.chunk, state.options.cache});
  state.backend.allocate();
}

void LayerRunner::run(std::span<float> stream, Observer* observer) {
  State& state = *state_;
  if (!state.layer) throw Error("no layer is loaded");
  const int64_t hidden = state.config.hidden, rows = static_cast<int64_t>(stream.size()) / hidden;
  if (static_cast<int64_t>(stream.size()) != rows * hidden || rows > state.options.context) {
    throw Error("a window of " + std::to_string(rows) + " rows for a context of " + std::to_string(state.options.context));
  }
  RopeTable& rope = state.config.sliding[static_cast<size_t>(state.index)] ? state.sliding_rope : state.full_rope;
  rope.extend(rows);
  state.cache->reset();
  const Activations& buffers = state.activations;
  for (int64_t done = 0; done < rows; done += state.options.chunk) {
    const int64_t n = std::min(state.options.chunk, rows - done);
    float* part = stream.data() + done * hidden;
    std::memcpy(buffers.stream.at(0), part, static_cast<size_t>(n * hidden) * sizeof(float));
    std::iota(buffers.positions, buffers.positions + n, static_cast<int32_t>(done));
    state.layer->run({buffers, rope, state.cache->layer(0), done, static_cast<uint32_t>(n), 0, false, observer});
    std::memcpy(part, buffers.stream.at(0), static_cast<size_t>(n * hidden) * sizeof(float));
  }
}

}  // namespace ref::spark
