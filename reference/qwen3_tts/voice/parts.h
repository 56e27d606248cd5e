// SPDX-License-Identifier: Apache-2.0
// What both encoders are made of. Everything is fp32 whatever the weights' source is: a reference is read once, and codes and
// speaker rows are what later speech is built on.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "reference/core/conv1d.h"
#include "reference/core/linear.h"
#include "reference/core/plan_map.h"
#include "reference/core/rows.h"
#include "reference/qwen3_tts/model/stack.h"
#include "reference/qwen3_tts/voice/encoders.h"

namespace ref::tts {

// Backend, plans and weights of one encoder.
class EncoderContext {
 public:
  // `most_rows` of a linear layer or of attention.
  EncoderContext(const ModelWeights& weights, const EncoderOptions& options, uint32_t most_rows)
      : backend_(options.parallel, options.max_isa, most_rows),
        linear_plans_(backend_),
        plans_(backend_),
        context_{weights, RowPolicy{.fp32 = true}, OMNI_DTYPE_F32, backend_, linear_plans_, plans_} {}

  Backend& backend() { return backend_; }
  const ModelContext& context() const { return context_; }

 private:
  Backend backend_;
  LinearPlans linear_plans_;
  PlanMap plans_;
  ModelContext context_;
};

// Convolution `name` of a checkpoint over fp32 rows. `most_rows` of a run.
Conv1d encoder_conv(const ModelContext& context, const std::string& name, const Conv1dShape& shape, int64_t most_rows,
                    bool biased = true, bool add = false);

// A function of single elements.
class Elementwise {
 public:
  Elementwise(omni_activation function, int64_t columns, const ModelContext& context);
  // y may be x.
  void run(int64_t rows, const float* x, int64_t ldx, float* y, int64_t ldy) const;

 private:
  const Backend* backend_;
  const omni_plan* plan_;
};

class LayerNorm {
 public:
  LayerNorm(const std::string& name, int64_t columns, double eps, const ModelContext& context);
  void run(int64_t rows, const float* x, int64_t ldx, float* y, int64_t ldy) const;

 private:
  std::vector<float> weight_, bias_;
  const Backend* backend_;
  const omni_plan* plan_;
};

// Throws Error naming the model and what is wrong with `samples`: too few, or some that are not finite.
void check_samples(const ModelWeights& weights, std::span<const float> samples, int64_t least);
// Throws Error when the model was packed without this matrix.
void need_encoder(const ModelWeights& weights, const char* matrix, const char* what);

}  // namespace ref::tts
