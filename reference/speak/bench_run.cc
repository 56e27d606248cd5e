// SPDX-License-Identifier: Apache-2.0
#include "reference/speak/bench_run.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <random>

#include "reference/cli/console.h"
#include "reference/cli/failure.h"
#include "reference/speak/statistics.h"

namespace ref::speak {

SpeechRun bench_speech(const BenchModels& models, const SpeechRequest& request, int64_t frames, const ChunkSchedule& schedule,
                       bool overlap) {
  tts::GeneratorHooks never_ends;
  const auto end = static_cast<size_t>(models.talker->config().talker.eos);
  never_ends.talker_logits = [end](int64_t, std::span<float> logits) { logits[end] = -std::numeric_limits<float>::infinity(); };
  ModelSource source(models.talker, models.predictor, *models.templates, request, never_ends);
  CodecSamples decoder(models.codec);
  PipelineOptions options;
  options.budgets = {frames};
  options.prefix = request.voice.frames;
  options.schedule = schedule;
  options.overlap = overlap;
  PipelineHooks hooks;
  hooks.interrupted = cli::interrupted;
  SpeechRun run = run_pipeline(&source, &decoder, options, hooks);
  if (run.end == SpeechEnd::kInterrupted) throw cli::Interrupted();
  return run;
}

double bench_codec(tts::CodecDecoder* codec, int64_t codebook_size, int64_t frames, int64_t chunk) {
  std::mt19937 random(1);
  std::uniform_int_distribution<int32_t> any(0, static_cast<int32_t>(codebook_size - 1));
  std::vector<tts::Frame> codes(static_cast<size_t>(frames));
  for (tts::Frame& frame : codes) {
    for (int32_t& code : frame) code = any(random);
  }
  std::vector<float> samples(static_cast<size_t>(chunk * tts::kFrameSamples));
  codec->reset();
  const auto start = std::chrono::steady_clock::now();
  for (int64_t at = 0; at < frames; at += chunk) {
    if (cli::interrupted()) throw cli::Interrupted();
    const auto count = static_cast<size_t>(std::min(chunk, frames - at));
    codec->decode(std::span(codes).subspan(static_cast<size_t>(at), count), std::span(samples).first(count * tts::kFrameSamples));
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / static_cast<double>(frames);
}

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::ranges::sort(values);
  const size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

const SpeechRun& median_run(const std::vector<SpeechRun>& runs) {
  std::vector<const SpeechRun*> sorted;
  for (const SpeechRun& run : runs) sorted.push_back(&run);
  std::ranges::sort(sorted, {}, [](const SpeechRun* run) { return real_time_factor(*run); });
  return *sorted[(sorted.size() - 1) / 2];
}

}  // namespace ref::speak
