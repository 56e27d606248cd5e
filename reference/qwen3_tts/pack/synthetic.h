// SPDX-License-Identifier: Apache-2.0
// Qwen3-TTS models of random weights in the shapes of the released ones, for speed and memory, not for speech.
#pragma once

#include <map>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reference/pack/plan.h"

namespace ref::tts {

// "qwen3-tts-0.6b" and "qwen3-tts-1.7b" (Base), the same with "-custom", "qwen3-tts-1.7b-design", and "qwen3-tts-tiny" for tests.
std::vector<std::string> synthetic_names();
// config.json with that of the speech tokenizer under its name. `name` is one of the above.
nlohmann::json synthetic_config(std::string_view name);
// Files beside the weights, but for configs. Of the tokenizer, bytes are tokens, and so are the words of the templates.
std::map<std::string, std::string> synthetic_files(const nlohmann::json& config);

// A packed model whose samples are finite, mostly within [-1, 1] and never all the same.
PackPlan plan_synthetic(const nlohmann::json& config, const PackOptions& options);
// Its checkpoint in Hugging Face layout: bf16, and the speech tokenizer in fp32 in a file of its own.
std::vector<PackPlan> plan_synthetic_checkpoint(const nlohmann::json& config);

}  // namespace ref::tts
