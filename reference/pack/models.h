// SPDX-License-Identifier: Apache-2.0
// The one place that knows which models there are: `model_type` of a config to what belongs to it.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "reference/core/model_weights.h"
#include "reference/io/checkpoint.h"
#include "reference/pack/calibration.h"
#include "reference/pack/plan.h"

namespace ref {

// Throws Error, naming `name` and the type, when no model is of it.
PackPlan plan_model(const Checkpoint& checkpoint, const nlohmann::json& config, const PackOptions& options);
// Statistics of a text's ids for PackOptions::calibration. The checkpoint must outlive them.
std::unique_ptr<Calibration> calibrate_model(const Checkpoint& checkpoint, const nlohmann::json& config,
                                             const std::vector<int32_t>& ids, const CalibrationOptions& options);
// Throws Error unless the weights are those that their config asks for.
void check_model(const ModelWeights& weights);

}  // namespace ref
