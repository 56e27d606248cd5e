// SPDX-License-Identifier: Apache-2.0
#include "reference/speak/voice_request.h"

#include <fmt/format.h>

#include <ranges>

#include "reference/qwen3_tts/voice/encoders.h"
#include "reference/qwen3_tts/voice/voice_file.h"

namespace ref::speak {
namespace {

void check_together(const VoiceOptions& options) {
  const auto refuse = [](const char* text) { throw Failure(Exit::kUsage, text); };
  if (!options.reference.empty() && !options.voice.empty()) refuse("--reference and --voice: a voice comes from one of them");
  if (!options.reference_text.empty() && options.reference.empty()) refuse("--reference-text: needs --reference");
  if (!options.save_voice.empty() && options.reference.empty()) refuse("--save-voice: needs --reference");
}

}  // namespace

// A CustomVoice model that is told no speaker would take another one for every piece.
void VoiceRequest::check_custom(const Model& model) const {
  if (!options_.speaker.empty()) {
    model.check_speaker(options_.speaker);
    return;
  }
  if (model.config().type != tts::ModelType::kCustomVoice) return;
  throw Failure(Exit::kUsage, fmt::format("no speaker: a CustomVoice model needs --speaker, one of {}",
                                          fmt::join(std::views::keys(model.config().talker.speakers), ", ")));
}

void VoiceRequest::note_ignored(const Model& model) {
  if (!options_.instruct.empty() && !model.config().takes_instruct()) {
    notes_.push_back(fmt::format("--instruct is ignored: {} models were not trained for instructions", model.title()));
  }
  if (model.config().type == tts::ModelType::kBase && options_.reference.empty() && options_.voice.empty()) {
    notes_.emplace_back("no --reference and no --voice: a Base model then speaks in some voice, another for each seed and text");
  }
}

VoiceRequest::VoiceRequest(const VoiceOptions& options, const Model& model) : options_(options) {
  check_together(options);
  check_custom(model);
  const std::string& file = options.reference.empty() ? options.voice : options.reference;
  if (!file.empty() && model.config().type != tts::ModelType::kBase) {
    throw Failure(Exit::kUsage,
                  fmt::format("{} {}: {} is a {} model; only Base models take the voice of a recording",
                              options.reference.empty() ? "--voice" : "--reference", file, model.path().string(), model.title()));
  }
  note_ignored(model);
  voice_.speaker_name = options.speaker;
  if (!options.reference.empty()) {
    recording_ = guarded(Exit::kInput, [&] { return audio::read_recording(options.reference, {}); });
    for (const std::string& line : recording_->warnings) notes_.push_back(line);
  }
  if (!options.voice.empty()) voice_ = guarded(Exit::kInput, [&] { return tts::load_voice(options.voice, model.config()); });
}

tts::Voice VoiceRequest::voice(const Model& model) const {
  if (!recording_) return voice_;
  tts::Voice voice = guarded(Exit::kModel, [&] {
    tts::Voice encoded;
    encoded.speaker = tts::embed_speaker(*model.weights(), recording_->samples, {});
    if (options_.reference_text.empty()) return encoded;
    encoded.frames = tts::encode_speech(*model.weights(), recording_->samples, {});
    encoded.reference_text = options_.reference_text;
    return encoded;
  });
  if (!options_.save_voice.empty()) {
    guarded(Exit::kOutput, [&] { tts::save_voice(voice, model.config(), options_.save_voice); });
  }
  return voice;
}

}  // namespace ref::speak
