// SPDX-License-Identifier: Apache-2.0
// The parts of a speech model that are measured apart, and the whole.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "reference/worker/serve.h"

namespace ref::worker {

struct SpeechSettings {
  std::string model, memory = "mapped", kv = "bf16";
  int64_t codec_chunk = 4;  // frames that the whole gives the codec at once
  int64_t codec_rows = 8;   // frames that go through the codec's layers at once
  bool codec_fp32 = false;  // rows in fp32 also where the codec is bf16
  bool greedy = false;      // both samplers
  uint32_t threads = 0;     // 0: those of the case
};

// By the name of the question's shape, up to a "-": "talker", "predictor", "codec", "whole", "first". Throws Refused for any other.
std::unique_ptr<Served> make_speech_part(const SpeechSettings& settings, const nlohmann::json& question);

}  // namespace ref::worker
