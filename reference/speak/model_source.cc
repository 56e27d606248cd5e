// SPDX-License-Identifier: Apache-2.0
#include "reference/speak/model_source.h"

#include <algorithm>

namespace ref::speak {

uint64_t seed_of_piece(uint64_t seed, size_t piece) {
  if (piece == 0) return seed;
  // SplitMix64 of the seed's own stream: neighbouring seeds and pieces give unlike ones.
  uint64_t mixed = seed + piece * 0xD1B54A32D192ED03u;
  mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9u;
  mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EBu;
  return mixed ^ mixed >> 31;
}

void ModelSource::start(size_t piece, int64_t max_frames) {
  piece_ = piece;
  const tts::Voice& voice = first_.frames.empty() ? request_.voice : first_;
  tts::PromptRequest prompt;
  prompt.ids = templates_.all(request_.pieces[piece], voice.reference_text, request_.instruct);
  prompt.language = request_.language;
  prompt.voice = &voice;
  prompt.streaming_text = request_.streaming_text;
  tts::SpeechSampling sampling = request_.sampling;
  sampling.seed = seed_of_piece(sampling.seed, piece);
  recording_ = request_.continue_voice() && first_.frames.empty() && piece + 1 < request_.pieces.size();
  recorded_.clear();
  generator_.start(talker_.prompt(prompt), sampling, max_frames, hooks_);
}

std::optional<tts::Frame> ModelSource::next() {
  const std::optional<tts::Frame> frame = generator_.next();
  if (!recording_) return frame;
  if (frame) {
    recorded_.push_back(*frame);
  } else if (generator_.stop() == tts::Stop::kEndOfSpeech && !recorded_.empty()) {
    first_.frames = std::move(recorded_);
    first_.reference_text = request_.pieces[piece_];
  }
  return frame;
}

int64_t context_needed(const tts::TextTemplates& templates, const SpeechRequest& request, const std::vector<int64_t>& budgets) {
  // Tags, speaker, codec pad, end of text, begin of speech, and one to spare.
  constexpr int64_t kRows = 16;
  const auto size = [](const std::vector<int32_t>& ids) { return static_cast<int64_t>(ids.size()); };
  const tts::PromptText voice = templates.all("", request.voice.reference_text, request.instruct);
  const int64_t fixed = kRows + size(voice.instruct) + size(voice.reference) + static_cast<int64_t>(request.voice.frames.size());
  int64_t most = 0, earlier = 0;
  for (size_t piece = 0; piece < request.pieces.size(); ++piece) {
    const int64_t text = size(templates.all(request.pieces[piece], "", "").text);
    most = std::max(most, fixed + text + earlier + budgets[piece]);
    if (request.continue_voice()) earlier = std::max(earlier, text + budgets[piece]);
  }
  return most;
}

}  // namespace ref::speak
