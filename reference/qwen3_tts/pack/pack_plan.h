// SPDX-License-Identifier: Apache-2.0
// What a packed Qwen3-TTS model is made of.
#pragma once

#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <vector>

#include "reference/core/model_weights.h"
#include "reference/io/checkpoint.h"
#include "reference/pack/calibration.h"
#include "reference/pack/plan.h"

namespace ref::tts {

// Of a checkpoint in Hugging Face layout, its speech tokenizer included; `config` as read_model_config() has it. Throws Error
// naming the tensor that is absent or of another shape than the config says.
PackPlan plan_pack(const Checkpoint& checkpoint, const nlohmann::json& config, const PackOptions& options);

// Throws Error: what a talker reads are sums of rows that a text alone does not give.
std::unique_ptr<Calibration> calibrate(const Checkpoint& checkpoint, const nlohmann::json& config, const std::vector<int32_t>& ids,
                                       const CalibrationOptions& options);

// Throws Error naming the first tensor that is absent or of another shape than the config says. The encoders may be absent
// altogether.
void check_weights(const ModelWeights& weights);

}  // namespace ref::tts
