// SPDX-License-Identifier: Apache-2.0
#include "reference/spark/decoder.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "reference/cache/available.h"
#include "reference/cache/kv.h"
#include "reference/core/describe.h"
#include "reference/spark/embedding.h"
#include "reference/spark/layer.h"

namespace ref::spark {
namespace {

// Rows of the head at once where logits only go to an observer: 32 MiB with 131,072 tokens.
constexpr int64_t kObservedHeadRows = 64;

RowPolicy head_policy(const DecoderOptions& options) {
  const bool fp32 = options.precision == Precision::kFp32;
  return {fp32, !fp32 && options.int8_head_rows};
}

}  // namespace

DecoderOptions checked_options(DecoderOptions options) {
  if (options.context < 1) throw Error("a context of " + std::to_string(options.context) + " tokens");
  if (options.chunk < 1) throw Error("chunks of " + std::to_string(options.chunk) + " rows");
  options.chunk = std::min({options.chunk, options.context, int64_t{OMNI_LINEAR_MOST_ROWS}});
  if (options.precision == Precision::kFp32) options.cache = OMNI_DTYPE_F32;
  return options;
}

RowPolicy layer_policy(const DecoderOptions& options) { return {options.precision == Precision::kFp32, true}; }

void check_ids(std::span<const int32_t> ids, const Config& config) {
  for (const int32_t id : ids) {
    if (id < 0 || id >= config.vocabulary) {
      throw Error("token id " + std::to_string(id) + " is outside of the vocabulary of " + std::to_string(config.vocabulary));
    }
  }
}

CacheModel cache_model(const Config& config) {
  CacheModel model{config.kv_heads, config.head_dim, {}};
  for (const bool sliding : config.sliding) model.windows.push_back(sliding ? config.window.value_or(0) : 0);
  return model;
}

struct Decoder::State {
  State(std::shared_ptr<const ModelWeights> model, const DecoderOptions& wanted);

  void run_chunk(const int32_t* ids, uint32_t rows, uint32_t skip, float* logits, bool observe_logits, Observer* observer);
  void head(uint32_t first, uint32_t rows, float* logits, bool observe_logits, Observer* observer);

  std::shared_ptr<const ModelWeights> weights;
  Config config;
  DecoderOptions options;
  Backend backend;
  LinearPlans linear_plans;
  Plans plans;
  Embedding embedding;
  std::vector<Layer> layers;
  std::optional<StreamNorm> final_norm;
  std::optional<Linear> lm_head;
  RopeTable sliding_rope, full_rope;
  std::optional<KvCaches> caches;
  std::optional<Activations> activations;
  int64_t position = 0;
};

Decoder::State::State(std::shared_ptr<const ModelWeights> model, const DecoderOptions& wanted)
    : weights(std::move(model)),
      config(read_config(weights->config, weights->name)),
      options(checked_options(wanted)),
      backend(options.parallel, options.max_isa, static_cast<uint32_t>(options.chunk)),
      linear_plans(backend),
      plans(config, options.cache, backend),
      embedding(config, *weights, backend),
      sliding_rope(config.sliding_rope.rot, config.sliding_rope.theta, options.context),
      full_rope(config.full_rope.rot, config.full_rope.theta, options.context) {
  const CacheModel shape = cache_model(config);
  const CacheRequest request = {options.context, options.chunk, options.cache};
  check_budget(weights->name, request, cache_budget(shape, request),
               options.memory_limit != 0 ? options.memory_limit : available_memory());
  const LayerContext context = {config, *weights, layer_policy(options), options.fused_norm, backend, linear_plans, plans};
  layers.reserve(static_cast<size_t>(config.layers));
  for (int64_t i = 0; i < config.layers; ++i) layers.emplace_back(context, i);
  const RowPolicy policy = head_policy(options);
  const Matrix& matrix = weights->matrix("lm_head", config.vocabulary, config.hidden);
  const omni_dtype rows = common_row_type({&matrix}, policy);
  final_norm.emplace(widen(weights->plain("model.norm.weight", {config.hidden})), config.eps, rows, plans);
  lm_head.emplace(weights->name + ": lm_head", matrix, std::vector<float>(), rows, LinearOutput{}, policy, backend, linear_plans);
  caches.emplace(shape, request);
  activations.emplace(config, options.chunk);
  backend.allocate();
}

void Decoder::State::head(uint32_t first, uint32_t rows, float* logits, bool observe_logits, Observer* observer) {
  const Rows2d normed = activations->normed.as(final_norm->type());
  const int64_t vocabulary = config.vocabulary;
  if (logits != nullptr) {
    lm_head->run(rows - first, normed.at(first), normed.ld, logits, vocabulary);
    observe(observer, "logits", position + first, rows - first, vocabulary, OMNI_DTYPE_F32, logits, vocabulary);
    return;
  }
  if (!observe_logits) return;
  std::vector<float> block(static_cast<size_t>(std::min<int64_t>(kObservedHeadRows, rows - first) * vocabulary));
  for (int64_t row = first; row < rows; row += kObservedHeadRows) {
    const int64_t count = std::min<int64_t>(kObservedHeadRows, rows - row);
    lm_head->run(static_cast<uint32_t>(count), normed.at(row), normed.ld, block.data(), vocabulary);
    observe(observer, "logits", position + row, count, vocabulary, OMNI_DTYPE_F32, block.data(), vocabulary);
  }
}

// Rows [skip, rows) get logits.
void Decoder::State::run_chunk(const int32_t* ids, uint32_t rows, uint32_t skip, float* logits, bool observe_logits,
                               Observer* observer) {
  const Activations& buffers = *activations;
  embedding.gather(ids, rows, buffers.stream.f32(0));
  std::iota(buffers.positions, buffers.positions + rows, static_cast<int32_t>(position));
  sliding_rope.extend(position + rows);
  full_rope.extend(position + rows);
  bool pending = false;
  const uint32_t last_skip = observer == nullptr ? skip : 0;  // an observer sees every row of every layer
  for (int64_t i = 0; i < config.layers; ++i) {
    RopeTable& rope = config.sliding[static_cast<size_t>(i)] ? sliding_rope : full_rope;
    const uint32_t layer_skip = i + 1 == config.layers ? last_skip : 0;
    pending = layers[static_cast<size_t>(i)].run({buffers, rope, caches->layer(i), position, rows, layer_skip, pending, observer});
  }
  if (last_skip < rows) {
    final_norm->run(buffers, last_skip, rows, pending, backend);
    if (observer != nullptr) {
      const Rows2d normed = buffers.normed.as(final_norm->type());
      observe(observer, "layer." + std::to_string(config.layers - 1) + ".out", position, rows, config.hidden, OMNI_DTYPE_F32,
              buffers.stream.at(0), buffers.stream.ld);
      observe(observer, "final_norm", position, rows, config.hidden, normed.type, normed.at(0), normed.ld);
    }
    if (skip < rows) head(skip, rows, logits, observe_logits, observer);
  }
  position += rows;
}

Decoder::Decoder(std::shared_ptr<const ModelWeights> weights, const DecoderOptions& options)
    : state_(std::make_unique<State>(std::move(weights), options)) {}
Decoder::~Decoder() = default;
Decoder::Decoder(Decoder&&) noexcept = default;
Decoder& Decoder::operator=(Decoder&&) noexcept = default;

const Config& Decoder::config() const { return state_->config; }
const DecoderOptions& Decoder::options() const { return state_->options; }
int64_t Decoder::position() const { return state_->position; }

void Decoder::reset() {
  state_->caches->reset();
  state_->position = 0;
}

void Decoder::rewind(int64_t position) {
  if (position < 0 || position > state_->position) {
    throw Error("rewind to position " + std::to_string(position) + ": the sequence has " + std::to_string(state_->position) +
                " tokens");
  }
  if (!state_->caches->rewind(position)) {
    throw Error("rewind to position " + std::to_string(position) + ": of " + std::to_string(state_->position) +
                " tokens the windows no longer hold what the next one would see");
  }
  state_->position = position;
}

void Decoder::forward(std::span<const int32_t> ids, Rows rows, std::span<float> logits, Observer* observer) {
  State& state = *state_;
  const auto count = static_cast<int64_t>(ids.size()), vocabulary = state.config.vocabulary;
  check_ids(ids, state.config);
  if (count > state.options.context - state.position) {
    throw Error("a sequence of " + std::to_string(state.position + count) + " tokens does not fit the context of " +
                std::to_string(state.options.context));
  }
  const int64_t wanted = rows == Rows::kNone ? 0 : rows == Rows::kLast ? std::min<int64_t>(1, count) : count;
  const bool to_observer = wanted > 0 && logits.empty() && observer != nullptr;
  if (!to_observer && logits.size() != static_cast<size_t>(wanted * vocabulary)) {
    throw Error("room for " + std::to_string(logits.size()) + " logits, not for " + std::to_string(wanted) + " rows of " +
                std::to_string(vocabulary));
  }
  float* out = logits.empty() ? nullptr : logits.data();
  for (int64_t done = 0; done < count;) {
    const int64_t n = std::min(state.options.chunk, count - done);
    const int64_t skip = std::clamp<int64_t>(count - wanted - done, 0, n);  // rows before the first that has logits
    state.run_chunk(ids.data() + done, static_cast<uint32_t>(n), static_cast<uint32_t>(skip), out, to_observer, observer);
    if (out != nullptr) out += (n - skip) * vocabulary;
    done += n;
  }
}

uint64_t Decoder::weight_bytes_per_token() const {
  uint64_t bytes = state_->embedding.row_bytes() + state_->final_norm->bytes() + state_->lm_head->bytes();
  for (const Layer& layer : state_->layers) bytes += layer.weight_bytes();
  return bytes;
}

uint64_t Decoder::cache_bytes_at(int64_t position) const { return state_->caches->bytes_read_at(position); }
uint64_t Decoder::cache_bytes() const { return state_->caches->bytes(); }

std::vector<std::string> Decoder::describe() const {
  std::vector<std::string> lines;
  for (const Layer& layer : state_->layers) layer.describe(&lines);
  lines.push_back(linear_line("lm_head", *state_->lm_head, state_->final_norm->type()));
  return lines;
}

}  // namespace ref::spark
