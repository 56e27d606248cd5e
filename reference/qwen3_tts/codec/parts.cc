// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/codec/parts.h"

#include <cstring>

#include "reference/core/half.h"

namespace ref::tts {
namespace {

const omni_plan* activation_plan(omni_activation function, int64_t n, omni_dtype y_type, PlanMap& plans) {
  omni_activation_query query = {};
  query.function = static_cast<uint16_t>(function);
  query.x_type = OMNI_DTYPE_F32;
  query.y_type = static_cast<uint16_t>(y_type);
  query.n = n;
  return plans.find("activation", omni_activation_select, query);
}

// By the library: the bits of libm's exp vary with the processor.
std::vector<float> exponentials(const ModelContext& context, const std::string& name, int64_t n) {
  std::vector<float> values = context.vector(name, n);
  omni_activation_args args = {};
  args.size = sizeof args;
  args.m = 1;
  args.x = args.y = values.data();
  args.ldx = args.ldy = n;
  args.parallel = &context.backend.parallel;
  check(omni_activation_run(activation_plan(OMNI_ACTIVATION_EXP, n, OMNI_DTYPE_F32, context.plans), &args), name.c_str());
  return values;
}

}  // namespace

Conv1d make_conv(const ModelContext& context, const std::string& name, const Conv1dShape& shape, bool add, int64_t most_rows,
                 int64_t repeat) {
  const Matrix& matrix = context.weights.matrix(name, shape.outputs, shape.taps * shape.inputs);
  const std::vector<float> once = context.vector(name + ".bias", shape.outputs / repeat);
  std::vector<float> bias;
  for (int64_t i = 0; i < repeat; ++i) bias.insert(bias.end(), once.begin(), once.end());
  return {context.weights.name + ": " + name,
          matrix,
          std::move(bias),
          shape,
          conv1d_row_type(matrix, shape, context.policy),
          LinearOutput{OMNI_DTYPE_F32, add},
          static_cast<uint32_t>(most_rows),
          context.plans};
}

omni_dtype conv_rows(const ModelContext& context, const std::string& name, const Conv1dShape& shape) {
  return conv1d_row_type(context.weights.matrix(name, shape.outputs, shape.taps * shape.inputs), shape, context.policy);
}

Snake::Snake(const ModelContext& context, const std::string& name, int64_t channels, omni_dtype y_type)
    : a_(exponentials(context, name + ".alpha", channels)),
      b_(exponentials(context, name + ".beta", channels)),
      backend_(&context.backend),
      plan_(activation_plan(OMNI_ACTIVATION_SNAKE, channels, y_type, context.plans)) {
  for (float& b : b_) b = 1.0F / (b + 1e-9F);
}

void Snake::run(uint32_t rows, const Rows2d& x, const Rows2d& y) const {
  omni_activation_args args = {};
  args.size = sizeof args;
  args.m = rows;
  args.x = x.at(0);
  args.ldx = x.ld;
  args.a = a_.data();
  args.b = b_.data();
  args.y = y.at(0);
  args.ldy = y.ld;
  args.parallel = &backend_->parallel;
  check(omni_activation_run(plan_, &args), "snake");
}

void cast_rows(const Rows2d& x, int64_t rows, const Rows2d& to) {
  const int64_t count = rows * to.ld;
  const float* from = x.f32(0);
  if (to.type == OMNI_DTYPE_F32) {
    std::memcpy(to.at(0), from, static_cast<size_t>(count) * sizeof(float));
    return;
  }
  auto* out = reinterpret_cast<uint16_t*>(to.at(0));
  for (int64_t i = 0; i < count; ++i) out[i] = round_bf16(from[i]);
}

}  // namespace ref::tts
