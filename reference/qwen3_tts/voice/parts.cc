// SPDX-License-Identifier: Apache-2.0
#include "reference/qwen3_tts/voice/parts.h"

#include <cmath>

#include "reference/core/error.h"

namespace ref::tts {

Conv1d encoder_conv(const ModelContext& context, const std::string& name, const Conv1dShape& shape, int64_t most_rows, bool biased,
                    bool add) {
  return {context.weights.name + ": " + name,
          context.weights.matrix(name, shape.outputs, shape.taps * shape.inputs),
          biased ? context.vector(name + ".bias", shape.outputs) : std::vector<float>(),
          shape,
          OMNI_DTYPE_F32,
          LinearOutput{OMNI_DTYPE_F32, add},
          static_cast<uint32_t>(most_rows),
          context.plans};
}

Elementwise::Elementwise(omni_activation function, int64_t columns, const ModelContext& context) : backend_(&context.backend) {
  omni_activation_query query = {};
  query.function = static_cast<uint16_t>(function);
  query.x_type = query.y_type = OMNI_DTYPE_F32;
  query.n = columns;
  plan_ = context.plans.find("activation", omni_activation_select, query);
}

void Elementwise::run(int64_t rows, const float* x, int64_t ldx, float* y, int64_t ldy) const {
  omni_activation_args args = {};
  args.size = sizeof args;
  args.m = static_cast<uint32_t>(rows);
  args.x = x;
  args.ldx = ldx;
  args.y = y;
  args.ldy = ldy;
  args.parallel = &backend_->parallel;
  check(omni_activation_run(plan_, &args), "activation");
}

LayerNorm::LayerNorm(const std::string& name, int64_t columns, double eps, const ModelContext& context)
    : weight_(context.vector(name + ".weight", columns)),
      bias_(context.vector(name + ".bias", columns)),
      backend_(&context.backend) {
  omni_layernorm_query query = {};
  query.x_type = query.y_type = OMNI_DTYPE_F32;
  query.n = columns;
  query.eps = static_cast<float>(eps);
  plan_ = context.plans.find(name.c_str(), omni_layernorm_select, query);
}

void LayerNorm::run(int64_t rows, const float* x, int64_t ldx, float* y, int64_t ldy) const {
  omni_layernorm_args args = {};
  args.size = sizeof args;
  args.m = static_cast<uint32_t>(rows);
  args.x = x;
  args.ldx = ldx;
  args.weight = weight_.data();
  args.bias = bias_.data();
  args.y = y;
  args.ldy = ldy;
  args.parallel = &backend_->parallel;
  check(omni_layernorm_run(plan_, &args), "layernorm");
}

void check_samples(const ModelWeights& weights, std::span<const float> samples, int64_t least) {
  const auto count = static_cast<int64_t>(samples.size());
  if (count < least) {
    throw Error(weights.name + ": a reference of " + std::to_string(count) + " samples is too short: " + std::to_string(least) +
                " are needed");
  }
  for (int64_t i = 0; i < count; ++i) {
    if (!std::isfinite(samples[static_cast<size_t>(i)])) {
      throw Error(weights.name + ": sample " + std::to_string(i) + " of the reference is not finite");
    }
  }
}

void need_encoder(const ModelWeights& weights, const char* matrix, const char* what) {
  if (weights.find_matrix(matrix) == nullptr) {
    throw Error(weights.name + ": has no " + what + " (packed without encoders), so it cannot read a reference recording");
  }
}

}  // namespace ref::tts
