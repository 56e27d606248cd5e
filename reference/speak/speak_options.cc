// SPDX-License-Identifier: Apache-2.0
#include "reference/speak/speak_options.h"

#include <CLI/CLI.hpp>

#include "reference/core/error.h"
#include "reference/speak/chunk_schedule.h"

namespace ref::speak {
namespace {

CLI::Validator schedule() {
  return {[](std::string& text) {
            try {
              ChunkSchedule::parse(text);
            } catch (const Error& error) {
              return std::string(error.what());
            }
            return std::string();
          },
          ""};
}

void add_voice_options(CLI::App* app, VoiceOptions* voice) {
  const char* group = "Voice";
  const auto add = [&](const char* name, std::string& target, const char* type, const char* help) {
    app->add_option(name, target, help)->type_name(type)->group(group);
  };
  add("--speaker", voice->speaker, "NAME", "A speaker of a CustomVoice model");
  add("--instruct", voice->instruct, "TEXT", "How to speak, of a 1.7B CustomVoice model; the voice itself, of a VoiceDesign model");
  add("--reference", voice->reference, "FILE", "A recording to take the voice from; of a Base model");
  add("--reference-text", voice->reference_text, "TEXT", "What the recording says, all of it: speech then goes on from it");
  add("--voice", voice->voice, "FILE", "A voice that --save-voice wrote");
  add("--save-voice", voice->save_voice, "FILE", "Writes the encoded --reference to FILE; without a text, that is all");
}

void add_output_options(CLI::App* app, SpeakOptions* options) {
  const char* group = "Output";
  OutputOptions* output = &options->output;
  app->add_option("-o,--output", output->file, "A .wav or .flac file; - is standard output")->type_name("FILE")->group(group);
  app->add_flag("--stream", output->stream, "To standard output, as it is made")->group(group);
  app->add_option("--stream-format", output->stream_format, "Of standard output: wav or raw (wav)")
      ->check(cli::one_of({"wav", "raw"}))
      ->type_name("NAME")
      ->group(group);
  app->add_option("--sample-format", output->sample_format, "int16, int24 or float (int16)")
      ->check(cli::one_of({"int16", "int24", "float"}))
      ->type_name("NAME")
      ->group(group);
  app->add_flag("--json", options->json, "One JSON object at the end: on standard output, or on stderr when sound goes there")
      ->group(group);
  app->add_flag("--stats", options->stats, "A table of where the time went, on stderr")->group(group);
  app->add_option("--stats-plot", options->stats_plot, "The same as a drawing, SVG")->type_name("FILE")->group(group);
}

void add_run_options(CLI::App* app, SpeakOptions* options) {
  const char* group = "Limits and pace";
  app->add_option("--max-frames", options->max_frames, "Most frames of 80 ms of a piece of text (by the length of its text)")
      ->check(cli::whole(1, int64_t{1} << 24))
      ->type_name("N")
      ->group(group);
  app->add_option("--max-seconds", options->max_seconds, "Most seconds of all (no limit); pieces then have none by their text")
      ->check(cli::number(0.08, 1e6))
      ->type_name("S")
      ->group(group);
  app->add_option("--piece-letters", options->piece_letters,
                  "A longer text is cut behind sentences, in pieces of so many letters; an ideograph is three; 0: never")
      ->check(cli::whole(0, 100000))
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  app->add_option("--chunk-frames", options->chunks, "Frames that are decoded at once: the first, the second, ...; the last stays")
      ->check(schedule())
      ->type_name("LIST")
      ->default_str(ChunkSchedule::kRamp)
      ->group(group);
  app->add_option("--queue-frames", options->queue, "Frames that may be made ahead of what is decoded and read")
      ->check(cli::whole(1, 10000))
      ->type_name("N")
      ->capture_default_str()
      ->group(group);
  app->add_option("--pipeline", options->pipeline, "overlap: frames are made while others are decoded; alternate: in turns (auto)")
      ->check(cli::one_of({"auto", "overlap", "alternate"}))
      ->type_name("NAME")
      ->group(group);
  app->add_option("--text-feed", options->text_feed,
                  "stream: a token of text for each frame; whole: all of it before (auto: stream for Base)")
      ->check(cli::one_of({"auto", "stream", "whole"}))
      ->type_name("NAME")
      ->group(group);
}

}  // namespace

void add_speak_options(CLI::App* app, SpeakOptions* options) {
  app->add_option("MODEL", options->model, "A packed directory, or a directory as published")->required();
  app->add_option("TEXT", options->text, "What to say; - reads standard input, and so does no text when that is no terminal");
  app->add_option("--file", options->file, "Reads the text from FILE")->type_name("FILE");
  app->add_option("--language", options->language, "Of the text, or auto")->type_name("NAME")->capture_default_str();
  app->add_flag("--list-speakers", options->list_speakers, "The model's speakers, and nothing else");
  app->add_flag("--list-languages", options->list_languages, "The model's languages, and nothing else");
  add_config_option(app);
  add_voice_options(app, &options->voice);
  add_output_options(app, options);
  add_run_options(app, options);
  add_sampling_options(app, &options->sampling);
  add_weight_options(app, "--", &options->weights);
  cli::add_machine_options(app, &options->machine);
}

}  // namespace ref::speak
