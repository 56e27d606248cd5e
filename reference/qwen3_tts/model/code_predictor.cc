// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/model/code_predictor.h"

#include <cstring>
#include <optional>

#include "reference/core/describe.h"
#include "reference/core/row_cast.h"
#include "reference/qwen3_tts/model/frame_tables.h"
#include "reference/qwen3_tts/model/stack.h"

namespace ref::tts {
namespace {

constexpr const char* kProjection = "talker.code_predictor.small_to_mtp_projection";

std::string head_name(int64_t substep) { return "talker.code_predictor.lm_head." + std::to_string(substep); }

// Rows of the talker's width to rows of the predictor's. Where both are the same, nothing.
class Projection {
 public:
  Projection(const Config& config, const ModelContext& context, omni_dtype rows)
      : from_(config.talker.stack.hidden),
        to_(config.predictor.stack.hidden),
        cast_(rows, 2, from_),
        linear_(context.linear(kProjection, to_, from_, true, rows)) {}

  void run(const float* x, uint32_t rows, float* y) const { linear_.run(rows, cast_(x, rows), from_, y, to_); }
  const Linear& linear() const { return linear_; }
  omni_dtype type() const { return cast_.type(); }

 private:
  int64_t from_, to_;
  RowCast cast_;
  Linear linear_;
};

}  // namespace

struct CodePredictor::State {
  State(std::shared_ptr<const ModelWeights> model, const PredictorOptions& wanted);

  ModelContext context() {
    return {*weights, {options.precision == Precision::kFp32, true}, options.cache, backend, linear_plans, plans};
  }
  omni_dtype rows_of(const std::string& name, int64_t n, int64_t k) {
    return common_row_type({&weights->matrix(name, n, k)}, context().policy);
  }
  // `rows` rows of `input` through the layers; logits of the last by the head of the sub-step.
  void step(uint32_t rows, size_t substep, Observer* observer);

  std::shared_ptr<const ModelWeights> weights;
  Config config;
  PredictorOptions options;
  Backend backend;
  LinearPlans linear_plans;
  PlanMap plans;
  FrameTables tables;
  std::optional<Projection> projection;
  std::optional<Stack> stack;
  std::vector<RowCast> to_head;
  std::vector<Linear> heads;
  std::vector<float> input, logits;  // [2][talker width]; [vocabulary]
};

CodePredictor::State::State(std::shared_ptr<const ModelWeights> model, const PredictorOptions& wanted)
    : weights(std::move(model)),
      config(read_config(weights->config, weights->name)),
      options(wanted),
      backend(options.parallel, options.max_isa, 2),
      linear_plans(backend),
      plans(backend),
      tables(config, *weights),
      input(static_cast<size_t>(2 * config.talker.stack.hidden)),
      logits(static_cast<size_t>(config.predictor.vocabulary)) {
  if (options.precision == Precision::kFp32) options.cache = OMNI_DTYPE_F32;
  const int64_t width = config.predictor.stack.hidden, vocabulary = config.predictor.vocabulary;
  if (config.projects()) projection.emplace(config, context(), rows_of(kProjection, width, config.talker.stack.hidden));
  stack.emplace(config.predictor.stack, "talker.code_predictor.model.", "predictor", kCodebooks, context());
  for (int64_t j = 0; j + 1 < kCodebooks; ++j) {
    to_head.emplace_back(rows_of(head_name(j), vocabulary, width), 1, width);
    heads.push_back(context().linear(head_name(j), vocabulary, width, false, to_head.back().type()));
  }
  backend.allocate();
}

void CodePredictor::State::step(uint32_t rows, size_t substep, Observer* observer) {
  if (projection) {
    projection->run(input.data(), rows, stack->input(0));
  } else {
    std::memcpy(stack->input(0), input.data(), rows * static_cast<size_t>(config.talker.stack.hidden) * sizeof(float));
  }
  stack->run(rows, 1, observer);
  const int64_t width = config.predictor.stack.hidden;
  heads[substep].run(1, to_head[substep](stack->output(rows - 1), 1), width, logits.data(), config.predictor.vocabulary);
}

CodePredictor::CodePredictor(std::shared_ptr<const ModelWeights> weights, const PredictorOptions& options)
    : state_(std::make_unique<State>(std::move(weights), options)) {}
CodePredictor::~CodePredictor() = default;
CodePredictor::CodePredictor(CodePredictor&&) noexcept = default;

Frame CodePredictor::frame(std::span<const float> hidden, int32_t code0, std::span<const float> code0_row, const Pick& pick,
                           Observer* observer) {
  State& state = *state_;
  const auto width = static_cast<size_t>(state.config.talker.stack.hidden);
  if (hidden.size() != width || code0_row.size() != width) {
    throw Error("rows of " + std::to_string(hidden.size()) + " and " + std::to_string(code0_row.size()) + " values, not " +
                std::to_string(width));
  }
  if (code0 < 0 || code0 >= state.config.predictor.vocabulary) {
    throw Error("code " + std::to_string(code0) + " of codebook 0 is outside of 0.." +
                std::to_string(state.config.predictor.vocabulary - 1));
  }
  std::memcpy(state.input.data(), hidden.data(), hidden.size_bytes());
  std::memcpy(state.input.data() + width, code0_row.data(), code0_row.size_bytes());
  state.stack->reset();
  Frame frame = {code0};
  for (size_t j = 1; j < frame.size(); ++j) {
    if (j > 1) state.tables.code(static_cast<int64_t>(j) - 1, frame[j - 1], state.input.data());
    state.step(j == 1 ? 2 : 1, j - 1, observer);
    frame[j] = pick(static_cast<int64_t>(j), state.logits);
  }
  if (const int32_t last = frame.back(); last < 0 || last >= state.config.predictor.vocabulary) {
    throw Error("code " + std::to_string(last) + " of codebook 15 is outside of 0.." +
                std::to_string(state.config.predictor.vocabulary - 1));
  }
  return frame;
}

uint64_t CodePredictor::weight_bytes_per_frame() const {
  const uint64_t projection = state_->projection ? state_->projection->linear().bytes() : 0;
  uint64_t bytes = (kCodebooks - 1) * (state_->stack->weight_bytes() + projection) + state_->tables.frame_bytes();
  for (const Linear& head : state_->heads) bytes += head.bytes();
  return bytes;
}

std::vector<std::string> CodePredictor::describe() const {
  std::vector<std::string> lines;
  if (state_->projection) {
    add_line(&lines, linear_line("small_to_mtp_projection", state_->projection->linear(), state_->projection->type()));
  }
  state_->stack->describe(&lines);
  for (size_t j = 0; j < state_->heads.size(); ++j) {
    add_line(&lines, linear_line("lm_head", state_->heads[j], state_->to_head[j].type()));
  }
  return lines;
}

}  // namespace ref::tts
