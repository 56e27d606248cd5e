// SPDX-License-Identifier: Apache-2.0
#include "reference/speak/speak_report.h"

#include <fmt/format.h>

#include "reference/speak/statistics.h"

namespace ref::speak {
namespace {

bool reached_limit(SpeechEnd end) { return end == SpeechEnd::kMaxFrames || end == SpeechEnd::kContextFull; }

Json sampling_json(const tts::SpeechSampling& sampling) {
  return {{"do_sample", sampling.sample},
          {"temperature", sampling.temperature},
          {"top_k", sampling.top_k},
          {"top_p", sampling.top_p},
          {"repetition_penalty", sampling.repetition_penalty},
          {"subtalker_dosample", sampling.predictor_sample},
          {"subtalker_temperature", sampling.predictor_temperature},
          {"subtalker_top_k", sampling.predictor_top_k},
          {"subtalker_top_p", sampling.predictor_top_p}};
}

Json pieces_json(const SpokenText& spoken) {
  Json pieces = Json::array();
  for (size_t i = 0; i < spoken.request.pieces.size(); ++i) {
    const bool reached = i < spoken.run.pieces.size();
    pieces.push_back({{"text", spoken.request.pieces[i]},
                      {"frames", reached ? spoken.run.pieces[i].frames : 0},
                      {"max_frames", spoken.budgets[i]},
                      {"stop_reason", reached ? Json(speech_end_name(spoken.run.pieces[i].end)) : Json(nullptr)}});
  }
  return pieces;
}

Json voice_json(const tts::Voice& voice) {
  return {{"speaker", voice.speaker_name.empty() ? Json(nullptr) : Json(voice.speaker_name)},
          {"vector", voice.speaker.size()},
          {"reference_frames", voice.frames.size()}};
}

}  // namespace

std::string limit_text(const SpokenText& spoken) {
  if (!reached_limit(spoken.run.end)) return "";
  size_t first = 0, count = 0;
  for (size_t i = spoken.run.pieces.size(); i-- > 0;) {
    if (!reached_limit(spoken.run.pieces[i].end)) continue;
    first = i;
    ++count;
  }
  const PieceOutcome& piece = spoken.run.pieces[first];
  std::string text = fmt::format("{}: ", speech_end_name(spoken.run.end));
  if (spoken.request.pieces.size() > 1) {
    text += fmt::format("{} of {} pieces, the first number {}, ", count, spoken.request.pieces.size(), first + 1);
  }
  return text + fmt::format("stopped after {} frames ({:.2f} s) without an end of speech; the sound so far is kept", piece.frames,
                            static_cast<double>(piece.frames) * kFrameSeconds);
}

Json speech_json(const SpokenText& spoken, const SoundOutput& output, const std::vector<std::string>& notes) {
  const SpeechRun& run = spoken.run;
  Json json;
  json["stop_reason"] = speech_end_name(run.end);
  json["complete"] = run.end == SpeechEnd::kEndOfSpeech;
  json["frames"] = run.frames;
  json["samples"] = run.samples;
  json["seconds"] = static_cast<double>(run.samples) / static_cast<double>(tts::kSampleRate);
  json["sample_rate"] = tts::kSampleRate;
  json["format"] = output.format();
  json["clipped_samples"] = output.clipped();
  json["pieces"] = pieces_json(spoken);
  json["left_out_characters"] = spoken.left_out;
  json["language"] = spoken.request.language;
  json["voice"] = voice_json(spoken.request.voice);
  json["instruct"] = spoken.model.config().takes_instruct() ? Json(spoken.request.instruct) : Json(nullptr);
  json["text_feed"] = spoken.request.streaming_text ? "stream" : "whole";
  json["seed"] = spoken.request.sampling.seed;
  json["sampling"] = sampling_json(spoken.request.sampling);
  json["pipeline"] = spoken.overlap ? "overlap" : "alternate";
  json["statistics"] = statistics_json(run);
  json["model"] = model_json(spoken.model);
  json["peak_resident_bytes"] = cli::peak_resident_bytes();
  json["notes"] = notes;
  return json;
}

std::string summary_text(const SpokenText& spoken) {
  const SpeechRun& run = spoken.run;
  const tts::SpeechSampling& sampling = spoken.request.sampling;
  const std::string seed = sampling.sample || sampling.predictor_sample ? fmt::format("seed {}", sampling.seed) : "greedy";
  return fmt::format("spoke    {:.2f} s in {:.2f} s (real-time factor {:.2f}), first sound after {:.2f} s, {}, peak {}",
                     static_cast<double>(run.samples) / static_cast<double>(tts::kSampleRate), run.times.total,
                     real_time_factor(run), run.times.first_audio, seed, cli::gb_text(cli::peak_resident_bytes()));
}

}  // namespace ref::speak
