// SPDX-License-Identifier: Apache-2.0
// From pieces of text to samples: one thread makes frames, the other decodes and hands them on. Knows no model.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "reference/qwen3_tts/config.h"
#include "reference/qwen3_tts/model/generator.h"
#include "reference/speak/chunk_schedule.h"

namespace ref::speak {

// Makes the frames of pieces, one piece after the other.
class FrameSource {
 public:
  virtual ~FrameSource() = default;
  // Reads the piece. At most `max_frames` frames follow.
  virtual void start(size_t piece, int64_t max_frames) = 0;
  virtual std::optional<tts::Frame> next() = 0;  // nothing once stop() tells why
  virtual tts::Stop stop() const = 0;
  virtual const tts::FrameTimes& times() const = 0;  // of the last frame
};

// One stream of frames to samples.
class SampleDecoder {
 public:
  virtual ~SampleDecoder() = default;
  virtual void decode(std::span<const tts::Frame> frames, std::span<float> samples) = 0;
  virtual void pass(std::span<const tts::Frame> frames) = 0;  // frames of the stream that nobody hears
};

struct PipelineOptions {
  std::vector<int64_t> budgets;                               // frames of each piece at most
  int64_t most_frames = std::numeric_limits<int64_t>::max();  // of all together
  std::vector<tts::Frame> prefix;                             // of the stream, first, and never heard: the reference of a clone
  ChunkSchedule schedule = ChunkSchedule::parse(ChunkSchedule::kRamp);
  size_t queue = 32;    // frames that may be ahead of the decoder
  bool overlap = true;  // else the calling thread does all, in turns
};

struct PipelineHooks {
  std::function<bool(std::span<const float>)> write = nullptr;  // false: nobody reads on
  std::function<bool()> interrupted = nullptr;
  std::function<void(int64_t frames)> progress = nullptr;  // frames that were handed on
};

enum class SpeechEnd : uint8_t { kEndOfSpeech, kMaxFrames, kContextFull, kInterrupted, kClosed };
// "end_of_speech", "max_frames", "context_full", "interrupted", "closed".
std::string_view speech_end_name(SpeechEnd end);

struct PieceOutcome {
  int64_t frames = 0;
  SpeechEnd end = SpeechEnd::kInterrupted;
};

// Seconds, sums over a run.
struct SpeechTimes {
  double prefill = 0, talker = 0, predictor = 0, sampling = 0, decode = 0, write = 0;
  double prefix = 0;                          // frames that are not heard
  double maker_waits = 0, decoder_waits = 0;  // of each thread for the other
  std::array<double, tts::kCodebooks - 1> substep = {};
  double first_prompt = 0;  // from the start until the first piece was read
  double first_audio = 0;   // until samples were handed on; 0 without any
  double total = 0;
};

struct SpeechRun {
  // As the pieces ended: the first that reached a limit decides, unless the run was ended from outside.
  SpeechEnd end = SpeechEnd::kEndOfSpeech;
  std::vector<PieceOutcome> pieces;  // each that the run came to
  int64_t frames = 0;                // that were made
  int64_t samples = 0;               // that were handed on
  SpeechTimes times;
};

// Throws what source, decoder and hooks throw, after the other thread has ended. A piece that reaches its limit ends there, and the
// next follows. Samples are the same whatever schedule, queue and overlap.
SpeechRun run_pipeline(FrameSource* source, SampleDecoder* decoder, const PipelineOptions& options, const PipelineHooks& hooks);

}  // namespace ref::speak
