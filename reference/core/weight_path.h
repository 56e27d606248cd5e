// SPDX-License-Identifier: Apache-2.0
// Which form of the weights a machine should run: a pure function of the machine and of what its user cares for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "omni/cpu.h"
#include "reference/pack/options.h"

namespace ref {

enum class Priority : uint8_t { kSpeed, kFidelity };

struct WeightPath {
  WeightType type;
  std::string reason;  // one line
};

// AMX: W4A8. x86 with VNNI: W4A8 for speed, W4A16 for fidelity. x86 without: W4A16. Anything else: W4A16, unverified.
WeightPath choose_weight_path(const omni_machine& machine, Priority priority);

// The same for a speech model, on any machine: 8 bits. Four change what it says, and that shows on long texts
// (docs/quantisation.md).
WeightPath choose_speech_path();
// The code predictor's, where nothing was asked for: never less than 8 bits, otherwise the talker's. It is small, and four bits
// cost it sixty times the divergence of eight.
WeightType choose_predictor(WeightType talker);

// Of a head where nothing was asked for: 8 bits behind quantised layers; whoever keeps the layers wants the head as it is, too.
HeadType default_head(WeightType layers);
// Inputs that share a scale where nothing was asked for: 128 of 4-bit weights, all of a row of 8-bit ones.
int64_t default_group(WeightType layers);

// What was asked for of the parts of a speech model beside its talker; the rest follows from the talker's form.
struct SpeechWishes {
  std::optional<WeightType> predictor = {};
  std::optional<HeadType> head = {}, predictor_head = {};  // the predictor's heads are as the talker's unless they were asked for
  std::optional<int64_t> group = {};
  CodecType codec = CodecType::kFp32;
  bool encoders = true;
};
SpeechOptions speech_options(const SpeechWishes& wishes, WeightType talker);

// "keep", "bf16", "w8a8", "w4a8", "w4a16".
std::string_view weight_type_name(WeightType type);
std::optional<WeightType> parse_weight_type(std::string_view name);
// "keep", "bf16", "w8", "w4".
std::string_view head_type_name(HeadType type);
std::optional<HeadType> parse_head_type(std::string_view name);

}  // namespace ref
