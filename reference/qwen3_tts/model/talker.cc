// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/model/talker.h"

#include <algorithm>
#include <cstring>

#include "reference/cache/available.h"
#include "reference/core/describe.h"
#include "reference/core/row_cast.h"
#include "reference/qwen3_tts/model/prompt_builder.h"

namespace ref::tts {
namespace {

constexpr const char* kHead = "talker.codec_head";

TalkerOptions checked(TalkerOptions options, const Config& config) {
  if (options.context < 1) throw Error("a context of " + std::to_string(options.context) + " positions");
  if (options.context > config.talker.positions) {
    throw Error("a context of " + std::to_string(options.context) + " positions: the model has " +
                std::to_string(config.talker.positions));
  }
  if (options.chunk < 1) throw Error("chunks of " + std::to_string(options.chunk) + " rows");
  options.chunk = std::min({options.chunk, options.context, int64_t{OMNI_LINEAR_MOST_ROWS}});
  if (options.precision == Precision::kFp32) options.cache = OMNI_DTYPE_F32;
  return options;
}

}  // namespace

struct Talker::State {
  State(std::shared_ptr<const ModelWeights> model, const TalkerOptions& wanted);

  ModelContext context() {
    return {*weights, {options.precision == Precision::kFp32, true}, options.cache, backend, linear_plans, plans};
  }
  omni_dtype head_rows() {
    const TalkerConfig& talker = config.talker;
    return common_row_type({&weights->matrix(kHead, talker.vocabulary, talker.stack.hidden)}, context().policy);
  }

  std::shared_ptr<const ModelWeights> weights;
  Config config;
  TalkerOptions options;
  Backend backend;
  LinearPlans linear_plans;
  PlanMap plans;
  FrameTables tables;
  TextProjection text;
  std::optional<Stack> stack;
  RowCast to_head;
  Linear head;
  std::optional<PromptBuilder> prompts;  // runs kernels when it is made
  std::vector<float> hidden, logits;     // of the last row
  mutable std::vector<float> row;
};

Talker::State::State(std::shared_ptr<const ModelWeights> model, const TalkerOptions& wanted)
    : weights(std::move(model)),
      config(read_config(weights->config, weights->name)),
      options(checked(wanted, config)),
      backend(options.parallel, options.max_isa, static_cast<uint32_t>(options.chunk)),
      linear_plans(backend),
      plans(backend),
      tables(config, *weights),
      text(config.talker, context()),
      to_head(head_rows(), 1, config.talker.stack.hidden),
      head(context().linear(kHead, config.talker.vocabulary, config.talker.stack.hidden, false, to_head.type())),
      hidden(static_cast<size_t>(config.talker.stack.hidden)),
      logits(static_cast<size_t>(config.talker.vocabulary)),
      row(static_cast<size_t>(config.talker.stack.hidden)) {
  const CacheRequest request = {options.context, options.chunk, options.cache};
  check_budget(weights->name, request, cache_budget(cache_model(config.talker.stack, 1), request),
               options.memory_limit != 0 ? options.memory_limit : available_memory());
  stack.emplace(config.talker.stack, "talker.model.", "talker", options.context, context());
  backend.allocate();
  prompts.emplace(config, text, tables);
}

Talker::Talker(std::shared_ptr<const ModelWeights> weights, const TalkerOptions& options)
    : state_(std::make_unique<State>(std::move(weights), options)) {}
Talker::~Talker() = default;
Talker::Talker(Talker&&) noexcept = default;

const Config& Talker::config() const { return state_->config; }
int64_t Talker::position() const { return state_->stack->position(); }
int64_t Talker::context() const { return state_->options.context; }
void Talker::reset() { state_->stack->reset(); }

Prompt Talker::prompt(const PromptRequest& request) const { return state_->prompts->build(request); }

void Talker::append(std::span<const float> rows, Observer* observer) {
  State& state = *state_;
  Stack& stack = *state.stack;
  const int64_t width = state.config.talker.stack.hidden;
  const int64_t count = static_cast<int64_t>(rows.size()) / width;
  if (count * width != static_cast<int64_t>(rows.size())) {
    throw Error(std::to_string(rows.size()) + " values are no rows of " + std::to_string(width));
  }
  if (count > stack.positions() - stack.position()) {
    throw Error("a sequence of " + std::to_string(stack.position() + count) + " rows does not fit the context of " +
                std::to_string(stack.positions()));
  }
  for (int64_t done = 0; done < count;) {
    const int64_t n = std::min(state.options.chunk, count - done);
    std::memcpy(stack.input(0), rows.data() + done * width, static_cast<size_t>(n * width) * sizeof(float));
    done += n;
    stack.run(static_cast<uint32_t>(n), done == count ? 1 : 0, observer);
    if (done < count) continue;
    std::memcpy(state.hidden.data(), stack.output(n - 1), state.hidden.size() * sizeof(float));
    state.head.run(1, state.to_head(state.hidden.data(), 1), width, state.logits.data(), state.config.talker.vocabulary);
  }
}

std::span<const float> Talker::hidden() const { return state_->hidden; }
std::span<const float> Talker::logits() const { return state_->logits; }

void Talker::embed(const Frame& frame, std::span<float> row) const {
  if (row.size() != state_->row.size()) throw Error("a row of " + std::to_string(row.size()) + " values for an embedding");
  state_->tables.frame(frame, row.data());
}

std::span<const float> Talker::codec_row(int32_t id) const {
  state_->tables.codec(id, state_->row.data());
  return state_->row;
}

std::span<const float> Talker::pad_row() const { return state_->prompts->pad_row(); }

uint64_t Talker::weight_bytes_per_step() const {
  return state_->stack->weight_bytes() + state_->head.bytes() + state_->tables.frame_bytes();
}
uint64_t Talker::cache_bytes() const { return state_->stack->cache_bytes(); }

std::vector<std::string> Talker::describe() const {
  std::vector<std::string> lines;
  state_->stack->describe(&lines);
  add_line(&lines, linear_line("codec_head", state_->head, state_->to_head.type()));
  state_->text.describe(&lines);
  return lines;
}

}  // namespace ref::tts
