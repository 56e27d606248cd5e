// SPDX-License-Identifier: Apache-2.0
// Models of random weights in the shapes of the released ones, for speed and memory, not for text.
#pragma once

#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "reference/pack/plan.h"

namespace ref::spark {

// "spark-1.7b", "spark-4b" and "spark-tiny", which is for tests.
std::vector<std::string> synthetic_names();
// config.json. `name` is one of the above.
nlohmann::json synthetic_config(std::string_view name);
// tokenizer.json: bytes are tokens, and every other id up to `vocabulary` has a text of its own, which no text encodes to.
std::string synthetic_tokenizer(int64_t vocabulary);

// A checkpoint in Hugging Face layout, bf16.
PackPlan plan_synthetic_checkpoint(const nlohmann::json& config);

}  // namespace ref::spark
