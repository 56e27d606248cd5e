// SPDX-License-Identifier: Apache-2.0
// The one place that knows which models there are: `model_type` of a config to what belongs to it.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reference/core/model_weights.h"
#include "reference/io/checkpoint.h"
#include "reference/pack/plan.h"

namespace ref {

// Throws Error, naming `name` and the type, when no model is of it.
PackPlan plan_model(const Checkpoint& checkpoint, const nlohmann::json& config, const PackOptions& options);
// Throws Error unless the weights are those that their config asks for.
void check_model(const ModelWeights& weights);

}  // namespace ref
