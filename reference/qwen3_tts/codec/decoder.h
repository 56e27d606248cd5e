// SPDX-License-Identifier: Apache-2.0
// The codec's decoder as an exact stream: frames in, 1920 samples each out, whatever chunks they come in.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "omni/omni.h"
#include "reference/core/model_weights.h"
#include "reference/core/observer.h"
#include "reference/qwen3_tts/codec/stage_clock.h"
#include "reference/qwen3_tts/config.h"

namespace ref::tts {

struct CodecDecoderOptions {
  int64_t max_frames = 8;  // that go through the layers at once; longer calls are cut
  bool fp32 = false;       // rows in fp32 also where the weights are bf16
  std::string max_isa = {};
  const omni_parallel* parallel = nullptr;
};

class CodecDecoder {
 public:
  CodecDecoder(std::shared_ptr<const ModelWeights> weights, const CodecDecoderOptions& options);
  ~CodecDecoder();
  CodecDecoder(CodecDecoder&&) noexcept;

  // To the beginning of a stream.
  void reset();
  // Frames held so far.
  int64_t position() const;
  // samples[frames.size() * 1920], within [-1, 1]. The bits do not depend on how a stream is cut into calls, on threads or tier.
  // Throws Error naming frame, codebook and id of a code outside of 0..size-1; then nothing was decoded. The observer sees the
  // stages by the names of the goldens ("rvq", "pre_conv", ... rows of time), "wav_unclamped" included.
  void decode(std::span<const Frame> frames, std::span<float> samples, Observer* observer = nullptr);

  // As decode(), without samples, of what nobody hears: the reference of a clone. What follows has the same bits. Far less work:
  // the waveform's convolutions look back over a few frames, and earlier ones end at their input.
  void pass(std::span<const Frame> frames);

  uint64_t weight_bytes() const;
  // What a stream keeps between calls: rows before each convolution, keys and values in each layer's window.
  uint64_t state_bytes() const;
  // That, rows on their way and scratch: whatever the length of a stream.
  uint64_t working_bytes() const;
  // Seconds of all calls since the last clear, by stage, in the order of the stages.
  std::vector<StageTime> stage_times() const;
  void clear_stage_times();
  std::vector<std::string> describe() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

// The reference implementation's chunks: each of `chunk` frames is decoded from scratch after up to `context` frames before it,
// whose samples are dropped. For parity only. Leaves the decoder at the beginning of a stream.
std::vector<float> decode_chunked(CodecDecoder* decoder, std::span<const Frame> frames, int64_t chunk = 300, int64_t context = 25);

// Frames of a flat list of ids, 16 each. Throws Error naming the count when it is no multiple of 16, or the first id outside.
std::vector<Frame> frames_of(std::span<const int32_t> ids, int64_t codebook_size);

}  // namespace ref::tts
