// SPDX-License-Identifier: Apache-2.0
// What a run tells at its end.
#pragma once

#include <string>
#include <vector>

#include "reference/speak/model.h"
#include "reference/speak/model_source.h"
#include "reference/speak/pipeline.h"
#include "reference/speak/sound_output.h"

namespace ref::speak {

struct SpokenText {
  const Model& model;
  const SpeechRequest& request;
  const std::vector<int64_t>& budgets;
  int64_t left_out;  // characters that nobody could speak
  const SpeechRun& run;
  bool overlap;
};

// The line for a run that a limit ended, or "" for one that ended well.
std::string limit_text(const SpokenText& spoken);
Json speech_json(const SpokenText& spoken, const SoundOutput& output, const std::vector<std::string>& notes);
// "12.40 s of speech in 8.10 s ..."
std::string summary_text(const SpokenText& spoken);

}  // namespace ref::speak
