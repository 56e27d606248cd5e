// SPDX-License-Identifier: Apache-2.0
// generation_config.json of a speech model: how its makers want it sampled, and its longest run.
#pragma once

#include <filesystem>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reference/qwen3_tts/model/codec_sampler.h"

namespace ref::speak {

struct SpeechDefaults {
  tts::SpeechSampling sampling;
  int64_t most_frames = 2047;  // max_new_tokens of 2048: a token that ends the run makes no frame
};

// A key that is absent has the reference implementation's own default. Throws Error, a line that begins with `name`, telling the
// key and its value.
SpeechDefaults read_speech_defaults(const nlohmann::json& root, const std::string& name);
// That of a model directory; the defaults when it has none.
SpeechDefaults load_speech_defaults(const std::filesystem::path& directory);

}  // namespace ref::speak
