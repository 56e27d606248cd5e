// SPDX-License-Identifier: Apache-2.0
// Two forms of the weights of one model over the same frames: how often they would choose alike, and how far apart their
// distributions are.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "reference/qwen3_tts/model/code_predictor.h"
#include "reference/qwen3_tts/model/generator.h"
#include "reference/qwen3_tts/model/talker.h"

namespace ref::tts {

// Talker and predictor, perhaps of different packed models. Borrowed.
struct SpeechModel {
  Talker* talker;
  CodePredictor* predictor;
};

struct Agreement {
  int64_t steps = 0;
  double top1 = 0;  // share of steps where both rank one id first (the lowest, where several are alike)
  double top5 = 0;  // where the reference's first is among the candidate's first five
  double kl = 0;    // mean of sum p log(p / q) in nats, p of the reference's softmax, q of the candidate's
};

struct CompareReport {
  std::array<Agreement, kCodebooks> codebooks;
  Agreement others;  // codebooks 1..15 together
};

// Frames that a model makes of a request, for the comparison to follow. At most `frames`.
std::vector<Frame> make_frames(const SpeechModel& model, const PromptRequest& request, const SpeechSampling& sampling,
                               int64_t frames);

// Both models read the request, each through its own weights, and then the same frames, whatever they would pick. Codebook 0 is
// compared over codes and the end of speech: nothing else is ever drawn. `progress` is told the frames that are done. Throws Error
// unless both are models of their own with the same vocabularies.
CompareReport compare_models(const SpeechModel& reference, const SpeechModel& candidate, const PromptRequest& request,
                             std::span<const Frame> frames, const std::function<void(int64_t)>& progress = nullptr);

// Several requests together: each report counts by its steps.
CompareReport merge(std::span<const CompareReport> reports);

}  // namespace ref::tts
