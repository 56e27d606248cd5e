// SPDX-License-Identifier: Apache-2.0
// The voice that options ask for: a name, a recording, or a file that holds one encoded.
#pragma once

#include <optional>

#include "reference/audio/reader.h"
#include "reference/qwen3_tts/model/prompt.h"
#include "reference/speak/model.h"
#include "reference/speak/speak_options.h"

namespace ref::speak {

class VoiceRequest {
 public:
  // Whether options fit each other and the model; reads the recording or the voice file. Throws Failure.
  VoiceRequest(const VoiceOptions& options, const Model& model);

  bool needs_encoders() const { return recording_.has_value(); }
  // Lines for the user: what the model ignores, what is odd about the recording.
  const std::vector<std::string>& notes() const { return notes_; }
  // After the model is loaded. Throws Failure.
  tts::Voice voice(const Model& model) const;

 private:
  void check_custom(const Model& model) const;
  void note_ignored(const Model& model);

  const VoiceOptions& options_;
  std::optional<audio::Recording> recording_;
  tts::Voice voice_;
  std::vector<std::string> notes_;
};

}  // namespace ref::speak
