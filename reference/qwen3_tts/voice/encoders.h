// SPDX-License-Identifier: Apache-2.0
// What a reference recording becomes: codes (Mimi encoder) for a clone that continues it, and a speaker vector (ECAPA-TDNN).
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "omni/omni.h"
#include "reference/core/model_weights.h"
#include "reference/core/observer.h"
#include "reference/qwen3_tts/config.h"

namespace ref::tts {

struct EncoderOptions {
  std::string max_isa = {};
  const omni_parallel* parallel = nullptr;
};

// 24 kHz mono to ceil(samples / 1920) frames. Throws Error for an empty or non-finite recording, or a model packed without
// encoders.
std::vector<Frame> encode_speech(const ModelWeights& weights, std::span<const float> samples, const EncoderOptions& options,
                                 Observer* observer = nullptr);

// 24 kHz mono to the speaker row [talker hidden]. Throws Error when the model has no speaker encoder (only Base has), or for fewer
// samples than a mel frame needs, or samples that are not finite.
std::vector<float> embed_speaker(const ModelWeights& weights, std::span<const float> samples, const EncoderOptions& options,
                                 Observer* observer = nullptr);

}  // namespace ref::tts
