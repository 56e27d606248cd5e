// SPDX-License-Identifier: Apache-2.0
// What a packed Spark-X2.5 model is made of.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "reference/core/model_weights.h"
#include "reference/io/checkpoint.h"
#include "reference/pack/plan.h"
#include "reference/spark/config.h"

namespace ref::spark {

// Of a checkpoint in Hugging Face layout. Throws Error naming the tensor that is absent or of another shape than the config says.
PackPlan plan_pack(const Checkpoint& checkpoint, const nlohmann::json& config, const PackOptions& options);

// Of a model of random weights, whose logits are finite.
PackPlan plan_synthetic(const Config& config, const PackOptions& options);

// Throws Error naming the first tensor that is absent or of another shape than the config says.
void check_weights(const ModelWeights& weights);

}  // namespace ref::spark
