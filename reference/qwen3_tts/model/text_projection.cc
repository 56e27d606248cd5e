// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/model/text_projection.h"

#include <algorithm>

#include "reference/core/describe.h"

namespace ref::tts {
namespace {

constexpr const char* kFc1 = "talker.text_projection.linear_fc1";
constexpr const char* kFc2 = "talker.text_projection.linear_fc2";

const omni_plan* silu_plan(int64_t n, omni_dtype y_type, PlanMap& plans) {
  omni_activation_query query = {};
  query.function = OMNI_ACTIVATION_SILU;
  query.x_type = OMNI_DTYPE_F32;
  query.y_type = static_cast<uint16_t>(y_type);
  query.n = n;
  return plans.find("silu", omni_activation_select, query);
}

omni_dtype rows_of(const char* name, int64_t n, int64_t k, const ModelContext& context) {
  return common_row_type({&context.weights.matrix(name, n, k)}, context.policy);
}

}  // namespace

TextProjection::TextProjection(const TalkerConfig& config, const ModelContext& context)
    : backend_(context.backend),
      embedding_(context.weights.plain("talker.model.text_embedding.weight", {config.text_vocabulary, config.text_hidden})),
      hidden_(config.stack.hidden),
      to_fc1_(rows_of(kFc1, config.text_hidden, config.text_hidden, context), context.backend.max_rows, config.text_hidden),
      product_type_(rows_of(kFc2, config.stack.hidden, config.text_hidden, context)),
      fc1_(context.linear(kFc1, config.text_hidden, config.text_hidden, true, to_fc1_.type())),
      fc2_(context.linear(kFc2, config.stack.hidden, config.text_hidden, true, product_type_)),
      silu_(silu_plan(config.text_hidden, product_type_, context.plans)) {
  const size_t bytes = static_cast<size_t>(context.backend.max_rows * config.text_hidden) * sizeof(float);
  embedded_ = Memory(bytes);
  inner_ = Memory(bytes);
  product_ = Memory(bytes);
}

void TextProjection::run(std::span<const int32_t> ids, float* out) const {
  for (const int32_t id : ids) {
    if (id < 0 || id >= embedding_.rows()) {
      throw Error("text id " + std::to_string(id) + " is outside of the vocabulary of " + std::to_string(embedding_.rows()));
    }
  }
  while (!ids.empty()) {
    const size_t count = std::min<size_t>(ids.size(), backend_.max_rows);
    run_chunk(ids.first(count), out);
    out += static_cast<int64_t>(count) * hidden_;
    ids = ids.subspan(count);
  }
}

std::vector<float> TextProjection::operator()(std::span<const int32_t> ids) const {
  std::vector<float> rows(ids.size() * static_cast<size_t>(hidden_));
  run(ids, rows.data());
  return rows;
}

void TextProjection::run_chunk(std::span<const int32_t> ids, float* out) const {
  const auto rows = static_cast<uint32_t>(ids.size());
  const int64_t width = embedding_.columns();
  auto* embedded = reinterpret_cast<float*>(embedded_.data());
  for (size_t i = 0; i < ids.size(); ++i) embedding_.copy(ids[i], embedded + static_cast<int64_t>(i) * width);
  fc1_.run(rows, to_fc1_(embedded, rows), width, inner_.data(), width);
  omni_activation_args args = {};
  args.size = sizeof args;
  args.m = rows;
  args.x = inner_.data();
  args.ldx = width;
  args.y = product_.data();
  args.ldy = width;
  args.parallel = &backend_.parallel;
  check(omni_activation_run(silu_, &args), "silu");
  fc2_.run(rows, product_.data(), width, out, hidden_);
}

void TextProjection::describe(std::vector<std::string>* lines) const {
  add_line(lines, linear_line("linear_fc1", fc1_, to_fc1_.type()));
  add_line(lines, linear_line("linear_fc2", fc2_, product_type_));
}

}  // namespace ref::tts
