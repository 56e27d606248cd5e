// SPDX-License-Identifier: Apache-2.0
// Frames of pieces of text by a speech model, all in one voice.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "reference/qwen3_tts/codec/decoder.h"
#include "reference/qwen3_tts/model/generator.h"
#include "reference/qwen3_tts/model/text.h"
#include "reference/speak/pipeline.h"

namespace ref::speak {

struct SpeechRequest {
  std::vector<std::string> pieces;
  std::string instruct;
  std::string language = "auto";
  tts::Voice voice;
  bool streaming_text = true;
  tts::SpeechSampling sampling;
  // Nothing of the request names a voice (a voice design, a base model without a reference): pieces after the first that ended well
  // continue it, as a clone continues its reference.
  bool continue_voice() const { return voice.speaker.empty() && voice.speaker_name.empty() && voice.frames.empty(); }
};

// The seed of a piece. The first piece has the request's own, so that a text of one piece is spoken as if nothing were ever cut.
uint64_t seed_of_piece(uint64_t seed, size_t piece);

class ModelSource : public FrameSource {
 public:
  // All is borrowed but the hooks, which every piece has.
  ModelSource(tts::Talker* talker, tts::CodePredictor* predictor, const tts::TextTemplates& templates, const SpeechRequest& request,
              tts::GeneratorHooks hooks = {})
      : talker_(*talker), templates_(templates), request_(request), hooks_(std::move(hooks)), generator_(talker, predictor) {}

  void start(size_t piece, int64_t max_frames) override;
  std::optional<tts::Frame> next() override;
  tts::Stop stop() const override { return generator_.stop(); }
  const tts::FrameTimes& times() const override { return generator_.times(); }

 private:
  tts::Talker& talker_;
  const tts::TextTemplates& templates_;
  const SpeechRequest& request_;
  tts::GeneratorHooks hooks_;
  tts::Generator generator_;
  size_t piece_ = 0;
  bool recording_ = false;  // of a piece that may become the voice of what follows
  std::vector<tts::Frame> recorded_;
  tts::Voice first_;  // the voice of later pieces, once there is one
};

// Positions that the talker needs for the longest piece.
int64_t context_needed(const tts::TextTemplates& templates, const SpeechRequest& request, const std::vector<int64_t>& budgets);

class CodecSamples : public SampleDecoder {
 public:
  explicit CodecSamples(tts::CodecDecoder* codec) : codec_(*codec) { codec_.reset(); }
  void decode(std::span<const tts::Frame> frames, std::span<float> samples) override { codec_.decode(frames, samples); }
  void pass(std::span<const tts::Frame> frames) override { codec_.pass(frames); }

 private:
  tts::CodecDecoder& codec_;
};

}  // namespace ref::speak
