// SPDX-License-Identifier: Apache-2.0
// omni-speak bench: real-time factor, time to first sound, and where the time goes, on a text and a seed that never change.
#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "reference/cli/console.h"
#include "reference/speak/bench_run.h"
#include "reference/speak/commands.h"
#include "reference/speak/model.h"
#include "reference/speak/statistics.h"

namespace ref::speak {
namespace {

constexpr const char* kText = "Hello there.";
// Calls of the codec: a frame alone, and as the pipeline goes on.
constexpr int64_t kCodecChunks[] = {1, 2, 4};

struct Options {
  std::string model, chunks = ChunkSchedule::kRamp, pipeline = "auto", plot;
  int64_t frames = 50, repeats = 5, codec_frames = 48;
  bool json = false;
  SamplingFlags sampling;
  WeightOptions weights;
  cli::MachineOptions machine;
};

struct Figures {
  std::vector<SpeechRun> runs;
  std::vector<std::vector<double>> codec = std::vector<std::vector<double>>(std::size(kCodecChunks));  // seconds a frame

  template <typename Value>
  double median_of(const Value& value) const {
    std::vector<double> values;
    for (const SpeechRun& run : runs) values.push_back(value(run));
    return median(std::move(values));
  }
  double factor() const { return median_of(real_time_factor); }
  double first_sound() const {
    return median_of([](const SpeechRun& run) { return run.times.first_audio - run.times.first_prompt; });
  }
  double prompt() const {
    return median_of([](const SpeechRun& run) { return run.times.first_prompt; });
  }
};

// A voice whose values never change: rows of real speakers are about as large as the codec's embeddings.
SpeechRequest request_of(const Options& options, const Model& model) {
  SpeechRequest request;
  request.pieces = {kText};
  request.streaming_text = model.config().type == tts::ModelType::kBase;
  request.sampling = resolve_sampling(options.sampling, model.defaults().sampling);
  if (model.config().type == tts::ModelType::kCustomVoice) {
    request.voice.speaker_name = model.config().talker.speakers.begin()->first;
  } else if (model.config().type == tts::ModelType::kBase) {
    request.voice.speaker.resize(static_cast<size_t>(model.config().talker.stack.hidden));
    for (size_t i = 0; i < request.voice.speaker.size(); ++i) request.voice.speaker[i] = i % 2 == 0 ? 0.02F : -0.02F;
  }
  return request;
}

Figures measure(const Options& options, const Model& model, const BenchModels& models, const SpeechRequest& request) {
  const ChunkSchedule schedule = guarded(Exit::kUsage, [&] { return ChunkSchedule::parse(options.chunks); });
  const bool overlap = overlaps(options.pipeline);
  Figures figures;
  cli::ProgressLine progress("bench");
  bench_speech(models, request, std::min<int64_t>(options.frames, 4), schedule, overlap);  // pages are touched, code is made
  for (int64_t i = 0; i < options.repeats; ++i) {
    progress.show(static_cast<uint64_t>(i), static_cast<uint64_t>(options.repeats));
    figures.runs.push_back(bench_speech(models, request, options.frames, schedule, overlap));
    for (size_t chunk = 0; chunk < std::size(kCodecChunks) && options.codec_frames > 0; ++chunk) {
      figures.codec[chunk].push_back(
          bench_codec(models.codec, model.config().decoder.codebook_size, options.codec_frames, kCodecChunks[chunk]));
    }
  }
  return figures;
}

std::string to_text(const Options& options, const Figures& figures) {
  std::string text = statistics_text(median_run(figures.runs)) + "\n";
  text += fmt::format("real-time factor  {:.3f}  {} frames, median of {}\n", figures.factor(), options.frames, figures.runs.size());
  text +=
      fmt::format("first sound       {:.3f} s after the prompt, which took {:.3f} s\n", figures.first_sound(), figures.prompt());
  for (size_t i = 0; i < std::size(kCodecChunks) && options.codec_frames > 0; ++i) {
    text += fmt::format("codec alone       {:.2f} ms a frame, {} at a time\n", 1e3 * median(figures.codec[i]), kCodecChunks[i]);
  }
  return text + fmt::format("memory            {} peak resident; GB is 1e9 bytes\n", cli::gb_text(cli::peak_resident_bytes()));
}

Json to_json(const Options& options, const Model& model, const Figures& figures, const SpeechRequest& request) {
  Json json;
  json["frames"] = options.frames;
  json["repeats"] = figures.runs.size();
  json["chunk_frames"] = options.chunks;
  json["pipeline"] = overlaps(options.pipeline) ? "overlap" : "alternate";
  json["seed"] = request.sampling.seed;
  json["real_time_factor"] = figures.factor();
  json["first_audio_after_prompt_seconds"] = figures.first_sound();
  json["prompt_seconds"] = figures.prompt();
  for (const SpeechRun& run : figures.runs) json["all_real_time_factors"].push_back(real_time_factor(run));
  json["median_run"] = statistics_json(median_run(figures.runs));
  for (size_t i = 0; i < std::size(kCodecChunks) && options.codec_frames > 0; ++i) {
    json["codec_alone_ms_per_frame"][std::to_string(kCodecChunks[i])] = 1e3 * median(figures.codec[i]);
  }
  json["peak_resident_bytes"] = cli::peak_resident_bytes();
  json["model"] = model_json(model);
  return json;
}

int run(const Options& options) {
  cli::set_up_machine(options.machine);
  Model model(options.model);
  const SpeechRequest request = request_of(options, model);
  const int64_t context = context_needed(model.templates(), request, {options.frames});
  model.load(options.weights, options.machine, false);
  tts::Talker talker = model.talker(options.weights, options.machine, context);
  tts::CodePredictor predictor = model.predictor(options.weights);
  tts::CodecDecoder codec = model.codec(options.weights);
  note_model(model, options.machine, talker.describe());
  const BenchModels models = {&talker, &predictor, &codec, &model.templates()};
  const Figures figures = guarded(Exit::kMachine, [&] { return measure(options, model, models, request); });
  cli::write_out(options.json ? cli::dump(to_json(options, model, figures, request)) : to_text(options, figures));
  if (options.plot.empty()) return 0;
  const std::string svg = statistics_svg(median_run(figures.runs), fmt::format("{}: {}", model.title(), model.form()));
  if (svg.empty()) throw Failure(Exit::kMachine, fmt::format("--stats-plot {}: gnuplot cannot be run", options.plot));
  cli::write_file("--stats-plot", options.plot, svg);
  return 0;
}

}  // namespace

Run add_bench(CLI::App* app) {
  auto options = std::make_shared<Options>();
  options->sampling.seed = 1;
  const auto count = [&](const char* name, int64_t& target, int64_t least, const char* help) {
    app->add_option(name, target, help)->check(cli::whole(least, 1 << 20))->type_name("N")->capture_default_str();
  };
  app->add_option("MODEL", options->model, "A packed directory, or a directory as published")->required();
  count("--frames", options->frames, 1, "Frames of each run");
  count("--repeats", options->repeats, 1, "Repeats; figures are medians");
  count("--codec-frames", options->codec_frames, 0, "Frames for the codec alone; 0: not measured");
  app->add_option("--chunk-frames", options->chunks, "As omni-speak's")->type_name("LIST")->capture_default_str();
  app->add_option("--pipeline", options->pipeline, "As omni-speak's")
      ->check(cli::one_of({"auto", "overlap", "alternate"}))
      ->type_name("NAME");
  app->add_option("--stats-plot", options->plot, "Draws the stages of the median run, SVG")->type_name("FILE");
  app->add_flag("--json", options->json, "A JSON object");
  add_sampling_options(app, &options->sampling);
  add_weight_options(app, "--", &options->weights);
  cli::add_machine_options(app, &options->machine);
  return [options] { return run(*options); };
}

}  // namespace ref::speak
