// SPDX-License-Identifier: Apache-2.0
// Test doubles of the models: frames and samples that tell where they come from, and models that never end.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <limits>
#include <stdexcept>
#include <thread>
#include <vector>

#include "reference/speak/pipeline.h"

namespace ref::speak::test {

inline constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

// A piece whose frames carry its number and their own; it ends after so many.
class FakeSource : public FrameSource {
 public:
  explicit FakeSource(std::vector<int64_t> lengths) : lengths_(std::move(lengths)) {}

  void start(size_t piece, int64_t max_frames) override {
    started.push_back(max_frames);
    piece_ = piece;
    most_ = max_frames;
    made_ = 0;
    stop_ = tts::Stop::kRunning;
    if (throw_at_start == piece) throw std::runtime_error("start");
  }
  std::optional<tts::Frame> next() override {
    if (made_ == lengths_[piece_]) stop_ = tts::Stop::kEndOfSpeech;
    if (stop_ == tts::Stop::kRunning && made_ == most_) stop_ = tts::Stop::kMaxFrames;
    if (stop_ != tts::Stop::kRunning) return std::nullopt;
    if (throw_at_frame == made_) throw std::runtime_error("frame");
    tts::Frame frame = {};
    frame[0] = static_cast<int32_t>(piece_);
    frame[1] = static_cast<int32_t>(made_);
    times_.talker = 0.5;
    times_.predictor = 0.25;
    times_.substep.fill(0.015625);
    ++made_;
    ++all;
    return frame;
  }
  tts::Stop stop() const override { return stop_; }
  const tts::FrameTimes& times() const override { return times_; }

  std::vector<int64_t> started;  // limits
  std::atomic<int64_t> all = 0;  // frames
  size_t throw_at_start = 1000;
  int64_t throw_at_frame = -1;

 private:
  std::vector<int64_t> lengths_;
  size_t piece_ = 0;
  int64_t most_ = 0, made_ = 0;
  tts::Stop stop_ = tts::Stop::kRunning;
  tts::FrameTimes times_;
};

// The first sample of a frame holds its piece and number as piece + number / 65536, the others its place in the stream.
class FakeDecoder : public SampleDecoder {
 public:
  void decode(std::span<const tts::Frame> frames, std::span<float> samples) override {
    calls.push_back(static_cast<int64_t>(frames.size()));
    if (throw_at_call == static_cast<int64_t>(calls.size())) throw std::runtime_error("decode");
    for (size_t i = 0; i < frames.size(); ++i) {
      float* out = samples.data() + i * tts::kFrameSamples;
      std::fill(out, out + tts::kFrameSamples, static_cast<float>(position_++));
      out[0] = value_of(frames[i][0], frames[i][1]);
    }
  }
  void pass(std::span<const tts::Frame> frames) override {
    passes.push_back(static_cast<int64_t>(frames.size()));
    position_ += static_cast<int64_t>(frames.size());
  }
  static float value_of(int64_t piece, int64_t frame) { return static_cast<float>(piece) + static_cast<float>(frame) / 65536.0F; }

  std::vector<int64_t> calls, passes;  // frames of each
  int64_t throw_at_call = -1;

 private:
  int64_t position_ = 0;
};

inline PipelineOptions options_of(std::vector<int64_t> budgets, bool overlap = true) {
  PipelineOptions options;
  options.budgets = std::move(budgets);
  options.overlap = overlap;
  return options;
}

}  // namespace ref::speak::test
