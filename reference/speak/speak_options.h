// SPDX-License-Identifier: Apache-2.0
// What omni-speak's plain form is asked for.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "reference/speak/options.h"
#include "reference/speak/sound_output.h"
#include "tools/common/cli_names.h"

namespace ref::speak {

struct VoiceOptions {
  std::string speaker, instruct, reference, reference_text, voice, save_voice;
};

struct SpeakOptions {
  std::string model, text, file;
  std::string language = "auto", text_feed = "auto", pipeline = "auto", chunks;
  bool list_speakers = false, list_languages = false, json = false, stats = false;
  std::string stats_plot;
  std::optional<int64_t> max_frames;
  std::optional<double> max_seconds;
  int64_t piece_letters = 300, queue = 32;
  VoiceOptions voice;
  OutputOptions output;
  SamplingFlags sampling;
  WeightOptions weights;
  cli::MachineOptions machine;
};

void add_speak_options(CLI::App* app, SpeakOptions* options);

}  // namespace ref::speak
