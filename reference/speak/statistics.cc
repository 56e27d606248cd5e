// SPDX-License-Identifier: Apache-2.0
#include "reference/speak/statistics.h"

#include <fmt/format.h>

namespace ref::speak {

std::vector<Stage> stages_of(const SpeechRun& run) {
  const SpeechTimes& times = run.times;
  std::vector<Stage> stages;
  const auto add = [&](std::string name, double seconds, bool part = false) {
    const double each = run.frames == 0 ? 0 : 1e3 * seconds / static_cast<double>(run.frames);
    stages.push_back({std::move(name), each, seconds, part});
  };
  add("talker", times.talker);
  add("predictor", times.predictor);
  for (size_t i = 0; i < times.substep.size(); ++i) add(fmt::format("sub-step {}", i + 1), times.substep[i], true);
  add("sampling", times.sampling);
  add("decoder", times.decode);
  add("output", times.write);
  add("maker waits", times.maker_waits);
  add("decoder waits", times.decoder_waits);
  return stages;
}

double real_time_factor(const SpeechRun& run) {
  return run.samples == 0 ? 0 : run.times.total * static_cast<double>(tts::kSampleRate) / static_cast<double>(run.samples);
}

std::string statistics_text(const SpeechRun& run) {
  std::string text = "| stage | ms a frame | of 80 ms | s in all |\n|---|---|---|---|\n";
  for (const Stage& stage : stages_of(run)) {
    text += fmt::format("| {}{} | {:.2f} | {:.1f} % | {:.3f} |\n", stage.part ? "- " : "", stage.name, stage.milliseconds,
                        100 * stage.share(), stage.total);
  }
  text += fmt::format("prompts        {:.3f} s for {} piece{}", run.times.prefill, run.pieces.size(),
                      run.pieces.size() == 1 ? "" : "s");
  if (run.times.prefix > 0) text += fmt::format(", reference decoded in {:.3f} s", run.times.prefix);
  text += fmt::format("\nfirst audio    {:.3f} s, {:.3f} s after the prompt\n", run.times.first_audio,
                      run.times.first_audio == 0 ? 0 : run.times.first_audio - run.times.first_prompt);
  return text + fmt::format("real time      {:.3f}: {:.2f} s for {:.2f} s of sound\n", real_time_factor(run), run.times.total,
                            static_cast<double>(run.samples) / static_cast<double>(tts::kSampleRate));
}

nlohmann::ordered_json statistics_json(const SpeechRun& run) {
  const SpeechTimes& times = run.times;
  nlohmann::ordered_json json;
  json["real_time_factor"] = real_time_factor(run);
  json["seconds"] = times.total;
  json["prompt_seconds"] = times.prefill;
  json["reference_seconds"] = times.prefix;
  json["first_audio_seconds"] = times.first_audio;
  json["first_audio_after_prompt_seconds"] = times.first_audio == 0 ? 0 : times.first_audio - times.first_prompt;
  for (const Stage& stage : stages_of(run)) {
    if (stage.part) {
      json["stages"]["predictor"]["substeps_ms"].push_back(stage.milliseconds);
    } else {
      json["stages"][stage.name] = {
          {"ms_per_frame", stage.milliseconds}, {"share_of_frame", stage.share()}, {"seconds", stage.total}};
    }
  }
  return json;
}

}  // namespace ref::speak
