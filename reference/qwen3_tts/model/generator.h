// SPDX-License-Identifier: Apache-2.0
// Frames of speech, one at a time: talker, code predictor and the two samplers.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reference/core/observer.h"
#include "reference/qwen3_tts/model/code_predictor.h"
#include "reference/qwen3_tts/model/codec_sampler.h"
#include "reference/qwen3_tts/model/talker.h"

namespace ref::tts {

enum class Stop : uint8_t { kRunning, kEndOfSpeech, kMaxFrames, kContextFull };

// Seconds of the last frame by stage.
struct FrameTimes {
  double talker = 0, predictor = 0, sampling = 0;
  std::array<double, kCodebooks - 1> substep = {};
};

// Changes or records logits before they are picked from: tests, parity, teacher forcing.
struct GeneratorHooks {
  std::function<void(int64_t frame, std::span<float> logits)> talker_logits = nullptr;        // raw
  std::function<void(int64_t frame, std::span<const float> scores)> talker_scores = nullptr;  // after penalty and suppression
  std::function<void(int64_t frame, int64_t codebook, std::span<float> logits)> predictor_logits = nullptr;
  std::function<std::optional<int32_t>(int64_t frame, int64_t codebook)> forced = nullptr;  // instead of a pick
  // What was picked or forced, an end of speech and a code beyond the last frame included.
  std::function<void(int64_t frame, int64_t codebook, int32_t id)> picked = nullptr;
  Observer* observer = nullptr;
};

class Generator {
 public:
  // Both models are borrowed, and used by one generator at a time.
  Generator(Talker* talker, CodePredictor* predictor);
  ~Generator();

  // Prefills. max_frames: frames are made until then at most; whether speech ended there, or was cut, is asked of the talker once
  // more, so that a reference's limit of N tokens is one of N - 1 frames. Throws Error for sampling options out of range (naming
  // them), or a prompt that the context does not hold.
  void start(const Prompt& prompt, const SpeechSampling& sampling, int64_t max_frames, const GeneratorHooks& hooks = {});
  // The next frame, or nothing once stop() is not kRunning. The first needs no more than the prefill; every other begins with a
  // step of the talker. After an Error nothing more is made.
  std::optional<Frame> next();
  Stop stop() const;
  int64_t frames() const;
  const FrameTimes& times() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ref::tts
