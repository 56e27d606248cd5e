// SPDX-License-Identifier: Apache-2.0
// Measures of a model: whole runs through the pipeline, and the codec alone.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "reference/speak/model_source.h"
#include "reference/speak/pipeline.h"

namespace ref::speak {

struct BenchModels {
  tts::Talker* talker;
  tts::CodePredictor* predictor;
  tts::CodecDecoder* codec;
  const tts::TextTemplates* templates;
};

// Speaks exactly `frames` frames: the end of speech is never picked. Samples go nowhere. Throws Interrupted.
SpeechRun bench_speech(const BenchModels& models, const SpeechRequest& request, int64_t frames, const ChunkSchedule& schedule,
                       bool overlap);

// Seconds a frame of decoding `frames` frames of fixed random codes in calls of `chunk`. Throws Interrupted.
double bench_codec(tts::CodecDecoder* codec, int64_t codebook_size, int64_t frames, int64_t chunk);

double median(std::vector<double> values);
// The run of the median real-time factor. Not empty.
const SpeechRun& median_run(const std::vector<SpeechRun>& runs);

}  // namespace ref::speak
