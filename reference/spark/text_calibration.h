// SPDX-License-Identifier: Apache-2.0
// Calibration of a Spark-X2.5 model: the source's own layers, rounded to bf16, over the windows of a text, one layer at a time.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "reference/io/checkpoint.h"
#include "reference/pack/calibration.h"

namespace ref::spark {

// Holds, beside a layer's weights and its moments, the residual stream of every token. The checkpoint must outlive it.
std::unique_ptr<Calibration> calibrate(const Checkpoint& checkpoint, const nlohmann::json& config, const std::vector<int32_t>& ids,
                                       const CalibrationOptions& options);

}  // namespace ref::spark
