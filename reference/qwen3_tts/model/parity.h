// SPDX-License-Identifier: Apache-2.0
// Compares a model with the golden tensors of one request of the reference implementation: which one departs first, and by how
// much.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "reference/qwen3_tts/model/code_predictor.h"
#include "reference/qwen3_tts/model/generator.h"
#include "reference/qwen3_tts/model/talker.h"
#include "tools/common/safetensors.h"

namespace ref::tts {

struct ParityTolerance {
  double rows = 1e-4;  // largest difference of an element of rows, logits and scores
  double wave = 1e-3;  // of a sample
};

// One golden tensor. Ids must be equal: their difference counts as one.
struct SpeechTensor {
  std::string name;
  double largest = 0;   // difference of one element; infinite where one side is NaN, or the sides are not equally long
  double relative = 0;  // sqrt(sum (ours - golden)^2 / sum golden^2)
  double tolerance = 0;
  int64_t row = -1;         // of the largest difference
  int64_t differences = 0;  // elements beyond the tolerance

  bool departs() const { return !(largest <= tolerance); }
};

struct SpeechParity {
  // In the order in which a request makes them; every one is made from golden inputs, so one that departs does not drag others
  // along.
  std::vector<SpeechTensor> tensors;
  int64_t frames = 0;
  std::string note;  // what could not be compared, and why; or empty

  const SpeechTensor* first_departure() const;
  const SpeechTensor* find(const std::string& name) const;
};

struct SpeechParityOptions {
  ParityTolerance tolerance = {};
  // The speaker of a clone; nullptr: what the golden's own prompt holds.
  const std::vector<float>* speaker = nullptr;
  // Samples of frames, in chunks as the reference decodes them. Without it the waveform is not compared.
  std::function<std::vector<float>(std::span<const Frame> frames)> decode = nullptr;
};

// The golden's request: its ids, its metadata "info", and the reference frames that its codec decoded first. Throws Error naming
// the file and the tensor or key for one that is absent or does not fit.
struct GoldenRequest {
  PromptText ids;
  std::string language;
  Voice voice;
  bool streaming_text = true;
  std::vector<Frame> frames;  // new ones

  PromptRequest request() const { return {ids, language, &voice, streaming_text}; }
};
GoldenRequest read_golden_request(const Talker& talker, const omni_files::SafetensorsFile& golden,
                                  const std::vector<float>* speaker = nullptr);

// Builds the prompt, then goes through the golden's frames whatever is picked.
SpeechParity compare_with_golden(Talker* talker, CodePredictor* predictor, const omni_files::SafetensorsFile& golden,
                                 const SpeechParityOptions& options = {});

}  // namespace ref::tts
