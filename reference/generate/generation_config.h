// SPDX-License-Identifier: Apache-2.0
// generation_config.json: how a model's makers want it sampled, and which tokens end its text.
#pragma once

#include <cstdint>
#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <vector>

#include "reference/sampling/sampler.h"

namespace ref {

struct GenerationConfig {
  SamplingOptions sampling;                                // greedy unless do_sample is true; no end tokens
  std::optional<std::vector<int32_t>> eos = std::nullopt;  // eos_token_id, a number or a list; nullopt when absent or null
};

// A key that is absent is off (not Hugging Face's default, which for top_k is 50). Throws Error, a line that begins with `name` and
// tells the key and its value.
GenerationConfig read_generation_config(const nlohmann::json& root, const std::string& name);
// That of a model directory; greedy when it has none.
GenerationConfig load_generation_config(const std::filesystem::path& directory);

}  // namespace ref
